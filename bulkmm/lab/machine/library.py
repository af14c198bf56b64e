# SPDX-License-Identifier: GPL-2.0-only
"""libbulkmm in a guest: built from source in the root, with a program using it."""

from pathlib import Path

from bulkmm.lab.child import explained
from bulkmm.lab.machine.arch import Arch
from bulkmm.lab.machine.root import Root
from bulkmm.lab.paths import (
    GUEST,
    MARKS,
    PROJECT,
    built,
    content_key,
    copy_sources,
)
from bulkmm.lab.progress import Progress

PROGRAM = "bmmpool"  # of NAME*.c in lab/guest
FOLDERS = {"x86_64": "x86", "arm64": "arm64"}  # of the core, by architecture
# as in meson.build: the core is freestanding, the rest uses libc
COMMON = ("-O2", "-Wall", "-Wextra", "-Werror", "-Icore", "-Ilib")
CORE = ("-std=c11", "-ffreestanding", "-mgeneral-regs-only", "-c")
HOSTED = ("-std=gnu11", "-D_GNU_SOURCE", "-pthread", "-static", "-Imodule/selftest")
IN = 'cd "$1" && shift && exec "$@"'


def ensure(root: Root, arch: Arch, progress: Progress) -> Path:
    """Return a tree with the program, to overlay on the guest's."""
    core, hosted = _sources(arch)
    headers = [file for top in ("core", "lib") for file in (PROJECT / top).rglob("*.h")]
    headers += [*GUEST.glob(f"{PROGRAM}*.h"), GUEST / "measure.h", MARKS]
    lists = list((PROJECT / "core").rglob("backends.def"))
    files = [*core, *hosted, *headers, *lists]
    made = root.var / "library" / f"{arch.name}-{content_key(files)}"

    def make(part: Path) -> None:
        _build(root, arch, part, files)

    return built(made, "building libbulkmm for guests", progress, make) / "tree"


def _sources(arch: Arch) -> tuple[list[Path], list[Path]]:
    """Return the sources of the core and of what uses libc."""
    top = PROJECT / "core"
    core = [
        *top.glob("*.c"),
        *(top / "generic").glob("*.c"),
        *(top / FOLDERS[arch.name]).rglob("*.c"),
    ]
    lib = PROJECT / "lib"
    hosted = [*lib.glob("*.c"), *(lib / "populate").glob("*.c")]
    return sorted(core), sorted([*hosted, *GUEST.glob(f"{PROGRAM}*.c")])


def _build(root: Root, arch: Arch, part: Path, files: list[Path]) -> None:
    copy_sources(files, part)
    core, hosted = (
        [str(file.relative_to(PROJECT)) for file in some] for some in _sources(arch)
    )
    (part / "tree/bin").mkdir(parents=True)
    start = ["sh", "-c", IN, "sh", root.inner(part), arch.compiler, *COMMON]
    objects = [file.rpartition("/")[2].removesuffix(".c") + ".o" for file in core]
    with explained(f"libbulkmm does not build for {arch.name}", whole=True):
        root.run([*start, *CORE, *core])
        program = f"tree/bin/{PROGRAM}"
        root.run([*start, *HOSTED, "-o", program, *hosted, *objects])
