# SPDX-License-Identifier: GPL-2.0-only
"""The guest's programs: the root's own, or those of another architecture.

Programs of another architecture are unpacked beside the root's, not installed:
they run only in guests.
"""

import re
import shutil
from pathlib import Path

from bulkmm.shell.child import explain_failure
from bulkmm.shell.progress import Progress
from lab.machine.arch import X86_64, Arch
from lab.machine.root import DebianRoot
from lab.paths import content_key, ensure_directory

PACKAGES = ("busybox-static", "e2fsprogs", "ndctl")
BUSYBOX = "usr/bin/busybox"
TOOLS = ("usr/bin/ndctl", "usr/sbin/mke2fs")
# an empty status: nothing counts as installed, so all dependencies are fetched
FETCH = """
cd "$1" && mkdir -p debs/partial tree && arch=$2 && shift 2
apt-get -q -y -o APT::Sandbox::User=root -o APT::Architecture="$arch" \
    -o Dir::State::status=/dev/null -o Dir::Cache::archives="$PWD/debs" \
    --no-install-recommends --download-only install "$@"
for deb in debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C tree
done
"""


def ensure_userland(root: DebianRoot, arch: Arch, progress: Progress) -> Path:
    """Return a tree below the root with the guest's programs."""
    if arch is X86_64:
        return root.path
    return unpack_packages(root, arch, PACKAGES, progress)


def unpack_packages(
    root: DebianRoot, arch: Arch, packages: tuple[str, ...], progress: Progress
) -> Path:
    """Return a tree below the root with packages and their dependencies."""
    step = f"fetching the guest's programs for {arch.name}"

    def fetch(part: Path) -> None:
        script = ["sh", "-ec", FETCH, "sh", root.inner(part), arch.debian]
        with explain_failure(f"{step} failed"):
            root.run([*script, *packages], 600)
        shutil.rmtree(part / "debs")

    place = root.var / "userland" / f"{arch.name}-{content_key([], FETCH, *packages)}"
    return ensure_directory(place, step, progress, fetch) / "tree"


def copy_programs(root: DebianRoot, arch: Arch, programs: Path, tree: Path) -> None:
    """Copy busybox, the tools and the libraries they need into a guest's tree."""
    (tree / "bin").mkdir(exist_ok=True)
    shutil.copy(programs / BUSYBOX, tree / "bin/busybox")
    (tree / "bin/sh").symlink_to("busybox")
    copy_tools(root, arch, programs, TOOLS, tree)


def copy_tools(
    root: DebianRoot, arch: Arch, programs: Path, tools: tuple[str, ...], tree: Path
) -> None:
    """Copy programs and the libraries that they need."""
    for tool in tools:
        (tree / tool).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(programs / tool, tree / tool)
    for name in _needed(root, [programs / tool for tool in tools], programs, arch):
        to = tree / name
        to.parent.mkdir(parents=True, exist_ok=True)
        # the loader is looked up in /lib or /lib64, links in a merged /usr
        shutil.copy(programs / "usr" / name, to)


def _needed(
    root: DebianRoot, tools: list[Path], programs: Path, arch: Arch
) -> list[str]:
    """Return the loader and the libraries of tools, as the loader resolves them."""
    directory = programs / "usr/lib" / arch.triplet
    libraries: dict[str, None] = {}
    todo = tools
    while todo:
        output = root.run(["readelf", "-dlW", *map(root.inner, todo)], 30)
        loader = re.findall(r"program interpreter: /(.+?)\]", output)
        names = re.findall(r"\(NEEDED\).*\[(.+?)\]", output)
        new = {f"lib/{arch.triplet}/{name}": directory / name for name in names}
        new = {
            k: path for k, path in new.items() if k not in libraries and path.is_file()
        }
        todo = list(new.values())
        libraries.update(dict.fromkeys([*loader, *new]))
    return list(libraries)
