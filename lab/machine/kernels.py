# SPDX-License-Identifier: GPL-2.0-only
"""Stock Debian kernels: which release, its packages, unpacked in the root.

Packages are unpacked, not installed: an installed kernel would build an
initramfs, and nothing here boots the root itself. A series (6.12) stands for the
release that is pinned, or for its newest if the archive has that no longer. It is
remembered, so a second run needs no network.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bulkmm.control import requirements
from bulkmm.shell import files
from bulkmm.shell.child import ChildError, explain_failure
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.progress import Progress
from lab.machine import arch as archs
from lab.machine import kernel_kinds, versions
from lab.machine import root as roots
from lab.machine.arch import X86_64, Arch
from lab.machine.root import DebianRoot

SERIES = X86_64.series
# older ones count what changes for modules: 6.1.0-56
RELEASE = re.compile(
    r"(?P<version>\d+\.\d+\.\d+(?:\+deb13(?:\.\d+)?|-\d+))-"
    r"(?:(?:cloud-|rt-)?(?:amd64|arm64)|arm64-16k)"
)
HEADERS = "linux-headers-"


@dataclass(frozen=True)
class Choice:
    """A kernel by its name, which may be neither fetched nor built yet."""

    name: str  # a series, a full release, or one that the lab builds
    arch: Arch
    kind: kernel_kinds.Kind | None  # of one that the lab builds

    @property
    def series(self) -> str:
        """Return the series or full release."""
        return self.kind.series if self.kind else self.name


@dataclass(frozen=True)
class Kernel:
    """A kernel unpacked in the root."""

    root: DebianRoot
    release: str

    @property
    def arch(self) -> Arch:
        """Return its architecture."""
        return archs.of_release(self.release)

    @property
    def suite(self) -> str:
        """Return the Debian that has it."""
        return self.root.suite if "+" in self.release else roots.OLDER

    @property
    def compiler(self) -> str:
        """Return the root's compiler for its modules."""
        kind = kernel_kinds.of_release(self.release)
        return kind.compiler if kind else self.arch.compiler

    @property
    def modules(self) -> Path:
        """Return the directory of its modules."""
        return self.root.path / "usr/lib/modules" / self.release

    @property
    def headers(self) -> str:
        """Return the headers' directory as the root's programs see it."""
        return f"/usr/src/linux-headers-{self.release}"

    @property
    def image(self) -> Path:
        """Return the image to boot; unsplit packages have it in /boot."""
        boot = self.root.path / f"boot/vmlinuz-{self.release}"
        return boot if boot.is_file() else self.modules / "vmlinuz.unsigned"


def find_problem(name: str, arch: Arch = X86_64) -> str:
    """Return why no kernel of an architecture is called so; "" if one is."""
    kind_names = kernel_kinds.list_names(arch)
    if name in (*arch.tested, *kind_names):
        return ""
    if kind := kernel_kinds.find_kind(name):
        return f"kernel {name} is built for {kind.arch.name} only"
    if RELEASE.fullmatch(name):
        is_foreign = archs.of_release(name) is not arch
        return f"kernel {name} is not for {arch.name}" if is_foreign else ""
    return (
        f"unknown kernel {name}: give {' or '.join(arch.tested)}, or a full release "
        f"such as {arch.series[0]}.4+deb13-cloud-{arch.debian}"
        + (f", or the lab's own: {', '.join(kind_names)}" if kind_names else "")
    )


def read_name(name: str, arch: Arch = X86_64) -> Choice:
    """Return what a name says, whether or not there is such a kernel."""
    return Choice(name, arch, kernel_kinds.find_kind(name))


def find_kernel(name: str, arch: Arch = X86_64) -> Choice:
    """Return the kernel of this name, or an architecture's first; reject others."""
    choice = read_name(name or arch.series[0], arch)
    check_name(choice.name, arch)
    return choice


def check_name(name: str, *on: Arch) -> None:
    """Reject a name of no kernel of these architectures, stock or the lab's own."""
    problems = [find_problem(name, one) for one in on or (X86_64,)]
    if all(problems):
        raise UsageError(problems[0])


def _note(root: DebianRoot, name: str, arch: Arch) -> Path:
    return root.var / "kernels" / f"{name}-{arch.name}.json"


def find_fetched(root: DebianRoot, name: str, arch: Arch = X86_64) -> Kernel | None:
    """Return the kernel if an earlier run has fetched it for the same pin."""
    return _recall(root, _note(root, name, arch), versions.find_release(name, arch))


def _recall(root: DebianRoot, note: Path, pinned: str) -> Kernel | None:
    record = files.read_json(note)
    if "release" not in record or record.get("pinned") != pinned:
        return None
    return Kernel(root, record["release"])


def fetch_kernel(
    root: DebianRoot, name: str, progress: Progress, arch: Arch = X86_64
) -> Kernel:
    """Return the kernel of a series or release, fetched if necessary."""
    pinned = versions.find_release(name, arch)
    note = _note(root, name, arch)
    kernel = _recall(root, note, pinned)
    if not kernel:
        kernel = _fetch(root, name, arch, pinned, progress)
        note.parent.mkdir(exist_ok=True)
        text = json.dumps({"release": kernel.release, "pinned": pinned})
        files.write_file(note, text, "a note of the cache")
    if kernel.release != (pinned or kernel.release):
        progress.note(
            f"kernel {pinned} is pinned, but the archive no longer has it: "
            f"{kernel.release} instead"
        )
    return kernel


def find_newest(root: DebianRoot, name: str, arch: Arch) -> str:
    """Return the newest release of a series, whatever is pinned."""
    return _release(_index(root), name, arch)


def update_index(root: DebianRoot, progress: Progress) -> None:
    """Fetch the package index, with the suites that only kernels are taken from."""
    for place, text in roots.list_kernel_suites().items():
        (root.path / place).write_text(text, encoding="ascii")
    with (
        progress.step("refreshing the package index"),
        explain_failure("no network for the package index"),
    ):
        root.run(["apt-get", "update", "-q"], 300)


def _index(root: DebianRoot) -> set[str]:
    return set(root.run(["apt-cache", "pkgnames", "linux-"]).split())


def _fetch(
    root: DebianRoot, name: str, arch: Arch, pinned: str, progress: Progress
) -> Kernel:
    """Return the kernel that is pinned, else the newest, fetched."""
    try:
        return _whole(root, pinned or find_newest(root, name, arch), progress)
    except (ChildError, UsageError):
        # an old index lacks what is new, and names what the mirror has dropped
        update_index(root, progress)
    if pinned:
        with suppress(ChildError, UsageError):
            return _whole(root, pinned, progress)
    return _whole(root, find_newest(root, name, arch), progress)


def _whole(root: DebianRoot, release: str, progress: Progress) -> Kernel:
    """Return a release, fetched if the root has it not."""
    kernel = Kernel(root, release)
    if (kernel.modules / "modules.dep").is_file() and kernel.image.is_file():
        return kernel
    index = _index(root)
    if f"{HEADERS}{release}" not in index:
        raise UsageError(f"the index has no kernel {release}")
    names = _packages(index, release)
    fetching = progress.step(f"fetching kernel {release}")
    with fetching, fetch_packages(root, names, root.var / "debs") as debs:
        unpack_packages(root, debs)
        root.run(["depmod", release])
    if not kernel.image.is_file():
        where = f"linux-binary-unsigned-{release}"
        raise BulkmmError(
            f"the packages of {release} hold no kernel image "
            f"(since 6.19 Debian's {where} has it)"
        )
    return kernel


def split_release(release: str) -> list[int]:
    """Return what releases are sorted by."""
    return [int(n) for n in re.findall(r"\d+(?=[.+~-])", release)]


def find_version(release: str) -> str:
    """Return 6.12.107+deb13 for 6.12.107+deb13-cloud-amd64."""
    match = RELEASE.fullmatch(release)
    return match["version"] if match else release


def _release(index: set[str], name: str, arch: Arch = X86_64) -> str:
    """Return the newest release in the index that a name stands for."""
    releases = (n.removeprefix(HEADERS) for n in index if n.startswith(HEADERS))
    usable = [
        r for r in releases if RELEASE.fullmatch(r) and archs.of_release(r) is arch
    ]
    usable.sort(key=split_release)
    # a series stands for the flavour of guests, of which much is built in
    matching = [
        r
        for r in usable
        if r == name or ("-cloud-" in r and requirements.series_of(r) == name)
    ]
    if not matching:
        for image in (f"linux-image-{name}", f"linux-binary-{name}"):
            if image in index:
                why = f"the archive has {image}, but no headers of it to build with"
                raise UsageError(why)
        has = ", ".join(usable) or "none"
        raise UsageError(f"unknown kernel {name}: the index has {has}")
    return matching[-1]


def _packages(index: set[str], release: str) -> list[str]:
    """Return the packages of a release: 7.x splits what 6.12 has in one.

    The kernel's build tools are the root's, for every target architecture.
    """
    debian = archs.of_release(release).debian
    version = find_version(release)
    names = [
        f"linux-image-{release}-unsigned",
        f"linux-binary-unsigned-{release}",
        f"linux-modules-{release}",
        f"linux-base-{release}",
        *header_packages(index, release, version),
    ]
    available = filter(index.__contains__, names)
    return [f"{name}:{debian}" if release in name else name for name in available]


def header_places(release: str, version: str) -> list[str]:
    """Return where a kernel's headers may lie, below /usr."""
    return [
        f"src/linux-headers-{release}",
        *(f"src/linux-headers-{version}-common{kind}" for kind in ("", "-rt")),
        *(
            f"lib/linux-kbuild-{name}"
            for name in (version, requirements.series_of(version))
        ),
        f"src/linux-kbuild-{version}",
    ]


def header_packages(index: set[str], release: str, version: str) -> tuple[str, ...]:
    """Return the packages to build for a release; 6.1 has one of tools for all."""
    tools, common = f"linux-kbuild-{version}", f"{HEADERS}{version}-common"
    return (
        f"{HEADERS}{release}",
        f"{common}-rt" if "-rt-" in release and f"{common}-rt" in index else common,
        tools if tools in index else f"linux-kbuild-{requirements.series_of(version)}",
    )


@contextmanager
def fetch_packages(
    root: DebianRoot, names: Sequence[str], to: Path, apt: Sequence[str] = ()
) -> Iterator[list[Path]]:
    """Fetch packages, and delete them when the block exits."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    try:
        argv = [root.inner(to), *apt, "download", *names]
        root.run(["sh", "-c", FETCH, "sh", *argv], 900)
        yield sorted(to.glob("*.deb"))
    finally:
        shutil.rmtree(to)


def unpack_packages(root: DebianRoot, debs: list[Path]) -> None:
    """Unpack packages into the root."""
    for deb in debs:
        # --keep-directory-symlink: /lib is a link in a merged /usr
        root.run(["sh", "-c", UNPACK, "sh", root.inner(deb)], 300)


FETCH = 'cd "$1" && shift && apt-get -q -o APT::Sandbox::User=root "$@"'
UNPACK = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C /'
