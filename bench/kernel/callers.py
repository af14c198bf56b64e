# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab callers``: record which functions call those that the module hooks.

Images are read as module/callers.c reads a running kernel: direct calls and jumps
between _stext and _etext, each by the function that it is in.
"""

import argparse
import bisect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.kernel import find
from bench.kernel.archive import Archive
from bulkmm.control import requirements
from bulkmm.shell import files
from bulkmm.shell.errors import BulkmmError, Exit, UsageError
from bulkmm.shell.progress import Progress
from lab import run
from lab.commands.matrix import compile_pattern
from lab.machine import root
from lab.paths import PROJECT, lock_cache, make_scratch, need_sources

if TYPE_CHECKING:  # numpy takes long to load
    from bench.kernel.vmlinux import Bytes, Places

TABLE = PROJECT / "module" / "callers.def"
HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The callers of each hooked function, by series and flavour of kernels that have
 * them. "bulkmm lab callers" writes this; it has read:
 *
"""
ROW = re.compile(r'BMM_CALLERS\((\w+),\s*"([^"]*)",\s*"([^"]*)"\)')
READ = re.compile(r"^ \* {4}(\S+)$", re.MULTILINE)
ARM_MAGIC = slice(0x38, 0x3C)  # of an arm64 image, which begins with its text
BANNER = re.compile(rb"Linux version (\S+) \(")
FLAVOUR = re.compile(r"-([a-z].*)")
SUFFIX = re.compile(r"[.$].*")  # what compilers append
WIDTH = 70
JUMP, TWO_BYTES, JUMP_IF = 0xE9, 0x0F, 0x80  # x86: of opcodes
BRANCH, BRANCH_MASK = 0x14000000, 0x7C000000  # arm64: B and BL

Kernels = set[str]
Rows = dict[str, dict[str, Kernels]]  # by function and callers


class Text(NamedTuple):
    """A kernel's text at the addresses of its symbols."""

    release: str
    start: int
    code: "Bytes"
    lines: list[tuple[int, str]]  # its symbols, as in kallsyms
    is_arm: bool


def update_table(args: argparse.Namespace) -> int:
    """Add what the kernels have to the table."""
    if not args.kernels and not args.only:
        raise UsageError("name kernels, or those of the archive by --only")
    need_sources()
    progress = Progress()
    rows, releases = read_table(TABLE.read_text("ascii") if TABLE.is_file() else "")
    for image in _list_images(args, progress):
        with progress.show_status(f"reading {image}"):
            text = read_text(image, progress)
        kernel = name_kernel(text.release)
        for function, callers in list_callers(text).items():
            rows.setdefault(function, {}).setdefault(callers, set()).add(kernel)
        releases.add(text.release)
        files.write_file(TABLE, format_table(rows, releases), "the table")
        progress.note(f"read {text.release}")
    return Exit.OK


def _list_images(args: argparse.Namespace, progress: Progress) -> Iterator[Path]:
    """Yield the images that are named, then those of the archive."""
    for name in args.kernels:
        with find.find_files(name, find.NO_MODULE, progress) as (image, _):
            yield image
    if not args.only:
        return
    from bench.kernel import vmlinux

    selection = compile_pattern(args.only)
    run.need_root()
    with make_scratch("bulkmm-callers-") as place:
        with lock_cache(progress) as cache:
            archive = Archive(root.ensure_root(cache, progress))
            archive.update(progress)
        for offer in archive.offers():
            if not selection.search(offer.release):
                continue
            image = place / "vmlinuz"
            with lock_cache(progress), archive.fetched((offer.image,)) as debs:
                image.write_bytes(vmlinux.boot_file(debs[0]))
            yield image


def read_text(file: Path, progress: Progress) -> Text:
    """Return the text of a kernel image for x86-64 or arm64."""
    import numpy as np

    from bench.kernel import symbols, vmlinux

    boot = vmlinux.boot_file(file)
    if boot[ARM_MAGIC] != b"ARM\x64":
        image = vmlinux.read_image(file)
        lines = _read_lines(symbols.cut_tables(image), image.release, progress)
        lines = [(image.place(at), name) for at, name in lines]
        start, size = _find_text(file, {name: at for at, name in lines})
        return Text(image.release, start, image.at(start, size), lines, is_arm=False)
    banner = BANNER.search(boot)
    release = banner[1].decode() if banner else "unknown"
    lines = _read_lines(boot, release, progress)
    places = {name: at for at, name in lines}
    start, size = _find_text(file, places)
    code = np.frombuffer(boot, np.uint8)[start - places.get("_text", start) :]
    return Text(release, start, code[:size], lines, is_arm=True)


def _read_lines(
    tables: bytes, release: str, progress: Progress
) -> list[tuple[int, str]]:
    """Return addresses and names of an image's symbols."""
    from bench.kernel import symbols

    with progress.step(f"reading the symbols of {release}"):
        lines = map(str.split, symbols.run_finder(tables, release))
        return [(int(address, 16), name) for address, _, name in lines]


def _find_text(file: Path, places: dict[str, int]) -> tuple[int, int]:
    """Return address and size of the text that is there after boot."""
    try:
        return places["_stext"], places["_etext"] - places["_stext"]
    except KeyError as error:
        raise BulkmmError(f"{file}: the kernel has no symbol {error}") from error


def list_callers(text: Text) -> dict[str, str]:
    """Return the callers of each hooked function that the kernel has."""
    machine = "arm64" if text.is_arm else "x86_64"
    hooked = {
        name
        for path in requirements.read_table(machine).paths
        for group in path.hooks.values()
        for name in group
    }
    functions: dict[int, str] = {}
    for at, name in text.lines:
        functions.setdefault(at, name)
    places = sorted(functions)
    sites, targets = find_calls(text)
    callers = {}
    for at, name in text.lines:
        if name not in hooked:
            continue
        inside = (
            functions[places[bisect.bisect_right(places, int(site)) - 1]]
            for site in sites[targets == at]
        )
        names = {SUFFIX.sub("", one) for one in inside} - {name}
        callers[name] = " ".join(sorted(names))
    return callers


def find_calls(text: Text) -> tuple["Places", "Places"]:
    """Return the addresses of direct calls and jumps, and where they lead."""
    import numpy as np

    code = text.code
    if text.is_arm:
        words = code[: len(code) & ~3].view("<u4")
        at = np.flatnonzero((words & BRANCH_MASK) == BRANCH)
        distances = ((words[at] << np.uint32(6)).view("<i4") >> 6).astype(np.int64)
        return text.start + 4 * at, text.start + 4 * (at + distances)
    near = np.flatnonzero((code[:-5] | 1) == JUMP) + 1  # a call differs in bit 0
    jumps = (code[1:-4] & 0xF0) == JUMP_IF
    conditional = np.flatnonzero((code[:-5] == TWO_BYTES) & jumps) + 2
    at = np.concatenate((near, conditional[conditional + 4 <= len(code)]))
    distances = code[at[:, None] + np.arange(4)].view("<i4")[:, 0]
    return text.start + at - 1, text.start + at + 4 + distances


def name_kernel(release: str) -> str:
    """Return "6.12-cloud-amd64" for 6.12.107+deb13-cloud-amd64."""
    flavour = FLAVOUR.search(release)
    return requirements.series_of(release) + (f"-{flavour[1]}" if flavour else "")


def read_table(text: str) -> tuple[Rows, set[str]]:
    """Return the table's rows, and the releases that they were read from."""
    rows: Rows = {}
    for function, callers, kernels in ROW.findall(re.sub(r'"\s+"', "", text)):
        rows.setdefault(function, {})[callers] = set(kernels.split())
    return rows, set(READ.findall(text))


def format_table(rows: Rows, releases: set[str]) -> str:
    """Return the table as text."""
    names = (f" *    {name}\n" for name in _sort_kernels(releases))
    parts = [HEAD, *names, " */\n"]
    for function in sorted(rows):
        for callers, kernels in sorted(rows[function].items()):
            words = " ".join(_sort_kernels(kernels))
            parts.append(
                f"BMM_CALLERS({function},\n{_quote(callers)},\n{_quote(words)})\n"
            )
    parts.append("#undef BMM_CALLERS\n")
    return "".join(parts)


def _sort_kernels(names: Kernels) -> list[str]:
    return sorted(names, key=lambda name: (requirements.parse_version(name), name))


def _quote(words: str) -> str:
    """Return a C string of words, on as many lines as it takes."""
    lines = textwrap.wrap(words, WIDTH, break_on_hyphens=False) or [""]
    ends = [*(" " for _ in lines[1:]), ""]
    return "\n".join(f'\t"{line}{end}"' for line, end in zip(lines, ends, strict=True))
