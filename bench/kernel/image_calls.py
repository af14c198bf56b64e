# SPDX-License-Identifier: GPL-2.0-only
"""Which functions of a kernel image call those that the module hooks.

Images are read as module/callers.c reads a running kernel: direct calls and jumps
between _stext and _etext, each by the function that it is in.
"""

import bisect
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.kernel import symbols, vmlinux
from bench.kernel.vmlinux import Bytes, Places
from bulkmm.control import requirements
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress

ARM_MAGIC = slice(0x38, 0x3C)  # of an arm64 image, which begins with its text
BANNER = re.compile(rb"Linux version (\S+) \(")
SUFFIX = re.compile(r"[.$].*")  # what compilers append
JUMP, TWO_BYTES, JUMP_IF = 0xE9, 0x0F, 0x80  # x86: of opcodes
BRANCH, BRANCH_MASK = 0x14000000, 0x7C000000  # arm64: B and BL


class Text(NamedTuple):
    """A kernel's text at the addresses of its symbols."""

    release: str
    start: int
    code: Bytes
    lines: list[tuple[int, str]]  # its symbols, as in kallsyms
    is_arm: bool


def read_text(file: Path, progress: Progress) -> Text:
    """Return the text of a kernel image for x86-64 or arm64."""
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


def find_calls(text: Text) -> tuple[Places, Places]:
    """Return the addresses of direct calls and jumps, and where they lead."""
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
