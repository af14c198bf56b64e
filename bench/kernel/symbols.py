# SPDX-License-Identifier: GPL-2.0-only
"""Symbols of a kernel image, from its kallsyms.

vmlinux-to-elf finds the tables; it runs as a separate program (its licence is
GPL-3.0). It gets only their section: it scans every byte of a file many times,
which takes a minute for a whole kernel. The tables' addresses are relative to the
first segment, so the header stays.
"""

import bisect
import io
import itertools
import os
import struct
import sys
from collections.abc import Iterable
from functools import lru_cache

from elftools.elf.elffile import ELFFile

from bench import program
from bench.kernel.vmlinux import Image
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress

FINDER = "vmlinux_to_elf.scripts.kallsyms_finder"
LIMIT = 120  # seconds
FIELDS = 3  # of its lines: address, type, name
LEAST = 1000  # a kernel has no fewer symbols
PAGE = 4096  # holds the header and keeps the section's alignment
TOKENS = 256
ROOM = TOKENS * 50  # of the longest tokens, and their index
DIGITS = b"".join(b"%c\0" % digit for digit in b"0123456789")  # tokens of themselves
SECTIONS_AT, SECTIONS_NR = 0x28, 0x3C  # of an ELF header: offset, count


class Symbols:
    """The addresses of symbols in the process."""

    def __init__(self, image: Image, lines: Iterable[str]) -> None:
        """Map the symbols found into the process."""
        self.all: dict[str, int] = {}
        for address, _, name in map(str.split, lines):
            self.all.setdefault(name, image.place(int(address, 16)))
        self._sorted = sorted(set(self.all.values()))

    def __getitem__(self, name: str) -> int:
        """Return the address of a symbol."""
        if name not in self.all:
            raise BulkmmError(f"the kernel has no symbol {name}")
        return self.all[name]

    def size(self, name: str) -> int:
        """Return the distance to the next symbol."""
        start = self[name]
        return self._sorted[bisect.bisect_right(self._sorted, start)] - start


def find_symbols(image: Image, progress: Progress) -> Symbols:
    """Return the symbols of an image."""
    with progress.step(f"reading the symbols of {image.release}"):
        return Symbols(image, run_finder(cut_tables(image), image.release))


def cut_tables(image: Image) -> bytes:
    """Return an ELF file of the header and the section of kallsyms."""
    header = bytearray(image.payload[:PAGE])
    struct.pack_into("<Q", header, SECTIONS_AT, 0)
    struct.pack_into("<HH", header, SECTIONS_NR, 0, 0)
    section = ELFFile(io.BytesIO(image.payload)).get_section_by_name(".rodata")
    return bytes(header) + part_tokens(section.data() if section else b"")


def part_tokens(tables: bytes) -> bytes:
    """Return tables with a zero before kallsyms_token_table: the finder needs one.

    6.1 has none where kallsyms_seqs_of_names, which the finder does not read, ends
    at a multiple of 8.
    """
    digits = -1
    while (digits := tables.find(DIGITS, digits + 1)) >= 0:
        for start in range(digits & -8, 0, -8):
            before = tables.count(0, start, digits)
            if before == ord("0") and _begins_tokens(tables[start : start + ROOM]):
                return tables[: start - 1] + b"\0" + tables[start:]
            if before > ord("0"):
                break
    return tables


def _begins_tokens(tables: bytes) -> bool:
    """Return whether there are 256 tokens and after them kallsyms_token_index."""
    tokens = tables.split(b"\0", TOKENS)[:TOKENS]
    places = [0, *itertools.accumulate(len(token) + 1 for token in tokens)]
    index = struct.pack(f"<{len(tokens)}H", *places[:-1])
    return -places[-1] % 8 == tables[places[-1] :].find(index)


@lru_cache(maxsize=4)  # it takes longer than most runs of a kernel that was prepared
def run_finder(tables: bytes, release: str) -> tuple[str, ...]:
    """Run the finder on tables as they are before relocation; return its lines."""
    with os.fdopen(os.memfd_create("kernel"), "wb", 0) as raw:
        raw.write(tables)
        name = f"/proc/{os.getpid()}/fd/{raw.fileno()}"
        command = [sys.executable, "-m", FINDER, "--bit-size", "64", name]
        late = f"the kernel's symbols were not found in {LIMIT} s"
        completed = program.run_program(command, LIMIT, sys.executable, late)
    lines = completed.stdout.splitlines()
    lines = [line for line in lines if len(line.split()) == FIELDS]
    if completed.returncode or len(lines) < LEAST:
        raise BulkmmError(f"the kernel {release} has no kallsyms that can be read")
    return tuple(lines)
