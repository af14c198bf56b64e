# SPDX-License-Identifier: GPL-2.0-only
"""A disk with a Debian system on which the project's packages are installed.

They are installed in a chroot, where DKMS compiles at the speed of the machine: in
an emulated guest it takes minutes. The guest gets a disk that is as after "dpkg -i"
on a system with one kernel, and writes to a snapshot of it.
"""

import shutil
from pathlib import Path

from bulkmm.shell import child
from bulkmm.shell.progress import Progress
from lab.machine import debs, kernel_modules, kernels
from lab.machine import root as roots
from lab.machine.kernels import Kernel
from lab.machine.root import SUITES, DebianRoot
from lab.paths import content_key, ensure_directory
from lab.scenario import find_scenario

# the packages of kernel headers depend on gcc and pahole; DKMS makes its signing
# key with openssl; programs find the library with pkgconf
BESIDES = ("dkms", "gcc", "libc6-dev", "openssl", "pahole", "pkgconf", "python3")
# what built its kernels
COMPILERS = {roots.SUITE: "gcc-14", roots.OLDER: "gcc-12"}
OWN_PACKAGES = {"bulkmm", "bulkmm-dkms", "libbulkmm0", "libbulkmm-dev"}
# of the kernel's own: DKMS takes a kernel without any for a removed one
MODULES = find_scenario("packages").machine.modules
ROOM = 600 << 20  # bytes for what a guest installs and builds
LISTS = ("modules.order", "modules.builtin", "modules.builtin.modinfo")
NOTES = "var/cache/bulkmm"  # where the guest finds what was there before
# every file, except what package tools write themselves
FILES = r"""
find / -xdev \( -path /dev -o -path /proc -o -path /run -o -path /sys -o -path /tmp \
	-o -path /var/cache -o -path /var/lib/dpkg -o -path /var/log \) -prune -o \
	! -type d ! -path "/usr/lib/modules/*/modules.*" ! -path "/var/lib/dkms/mok.*" \
	! -path /etc/ld.so.cache -print | sort
"""
INSTALL = """
notes=$1 release=$2
depmod "$release"
sh $notes/files >$notes/before
dpkg -i /tmp/*.deb
rm /tmp/*.deb
"""
LIMIT = 600


def ensure_disk(kernel: Kernel, progress: Progress) -> Path:
    """Return the disk image of a kernel, where QEMU can see it."""
    base = ensure_tree(kernel, progress)
    packages = debs.ensure_packages(kernel.root.path.parent, progress)
    words = (base.path.name, packages.name, kernel.release)
    place = kernel.root.var / "disk" / content_key([Path(__file__)], *words)

    def make(part: Path) -> None:
        guest = DebianRoot(part / "tree")
        child.run_child(["cp", "-a", str(base.path), str(guest.path)], LIMIT)
        _install(guest, kernel, packages)
        _image(kernel.root, guest.path, part / "disk")
        shutil.rmtree(guest.path)

    step = f"installing the packages for {kernel.release}"
    # a guest may be about to start from an older one
    return ensure_directory(place, step, progress, make, keep=2) / "disk"


def ensure_tree(kernel: Kernel, progress: Progress) -> DebianRoot:
    """Return the Debian of a kernel, with what the packages depend on."""
    suite = kernel.suite
    names = sorted(
        {*BESIDES, COMPILERS[suite], *debs.read_field("Depends")} - OWN_PACKAGES
    )
    place = f"disk-tree/{suite}-{content_key([], *SUITES, *names)}"
    system = DebianRoot(kernel.root.var / place, suite)
    roots.install_root(system, names, f"the Debian of guests ({suite})", progress)
    for dull in ("usr/share/doc", "usr/share/locale", "var/lib/apt/lists"):
        shutil.rmtree(system.path / dull, ignore_errors=True)
    return system


def _install(guest: DebianRoot, kernel: Kernel, packages: Path) -> None:
    """Install the packages on a system that has this kernel only."""
    _add_headers(kernel, guest.path)
    notes = guest.path / NOTES
    notes.mkdir()
    (notes / "files").write_text(FILES, encoding="utf-8")
    for deb in debs.list_packages(packages):
        shutil.copy(deb, guest.path / "tmp")
    argv = ["sh", "-ec", INSTALL, "sh", f"/{NOTES}", kernel.release]
    with child.explain_failure("the packages do not install", whole=True):
        guest.run(argv, LIMIT)


def _add_headers(kernel: Kernel, tree: Path) -> None:
    """Add a kernel's headers from the lab's root."""
    lab = kernel.root.path
    version = kernels.find_version(kernel.release)
    wanted = [
        *(f"usr/{one}" for one in kernels.header_places(kernel.release, version)),
        f"usr/lib/modules/{kernel.release}/build",
        f"usr/lib/modules/{kernel.release}/source",
        f"boot/config-{kernel.release}",
    ]
    modules = kernel_modules.list_modules(kernel, MODULES)
    wanted += [
        f"usr/lib/modules/{kernel.release}/{name}" for name in (*LISTS, *modules)
    ]
    for name in wanted:
        if (lab / name).is_symlink() or (lab / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(lab / name, tree / name, follow_symlinks=False)
        elif (lab / name).is_dir():
            shutil.copytree(lab / name, tree / name, symlinks=True)


def _image(root: DebianRoot, tree: Path, disk: Path) -> None:
    used = int(root.run(["du", "-sB1", root.inner(tree)]).split()[0])
    size = f"{(used * 5 // 4 + ROOM) >> 20}M"
    argv = ["mke2fs", "-q", "-t", "ext4", "-d", root.inner(tree)]
    root.run([*argv, root.inner(disk), size])
