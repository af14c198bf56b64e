# SPDX-License-Identifier: GPL-2.0-only
"""Copying memory by size, from cold and from hot memory, natively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bulkmm.bench import sweep
from bulkmm.bench.sweep import GIB, KIB, MIB

if TYPE_CHECKING:
    from bulkmm.bench.take import Seen
    from bulkmm.results import Document

EXTENTS = (
    *(4 * KIB, 64 * KIB, 256 * KIB),
    *(MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB),
    GIB,
)
QUICK_EXTENTS = (64 * KIB, MIB, 16 * MIB, 64 * MIB)
SIZE, QUICK_SIZE = GIB, 256 * MIB

SUBJECT = sweep.Subject(
    name="copy",
    buffers=2,
    suffixes=("", "-again"),
    variants=("glibc", "glibc-again", "libpmem2", "plain", "rep-movsb", "bulkmm"),
    bases=("glibc",),
    peers={"bulkmm": ("glibc", "libpmem2", "plain", "rep-movsb")},
    right="every byte as in the source, none beside it was touched",
    wrong="differs from the source, or touches other bytes",
)


@dataclass(frozen=True)
class Request(sweep.Request):
    """What to measure."""

    size: int = SIZE
    extents: tuple[int, ...] = EXTENTS


def run_bench(request: Request | None = None, seen: Seen | None = None) -> Document:
    """Measure and verify; ``seen`` is told each event of the program."""
    return sweep.run(SUBJECT, request or Request(), seen)
