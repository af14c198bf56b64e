# SPDX-License-Identifier: GPL-2.0-only
"""Clearing memory by extent, and what it costs the next user, natively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bulkmm.bench import sweep
from bulkmm.bench.sweep import GIB, KIB, MIB

if TYPE_CHECKING:
    from bulkmm.bench.take import Seen
    from bulkmm.results import Document

EXTENTS = (4 * KIB, 64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB, GIB)
QUICK_EXTENTS = (4 * KIB, 2 * MIB, 32 * MIB)
SIZE, QUICK_SIZE = GIB, 256 * MIB
CACHING = ("rep-stosb", "rep-stosb-4k", "glibc", "plain")

SUBJECT = sweep.Subject(
    name="clear",
    buffers=1,
    suffixes=("", "-then-read", "-then-write", "-then-random"),
    variants=(
        "rep-stosb",
        "rep-stosb-again",
        "rep-stosb-4k",
        "glibc",
        "glibc-again",
        "libpmem2",
        "plain",
        "bulkmm-cached",
        "bulkmm-streaming",
    ),
    bases=("rep-stosb", "glibc"),
    peers={
        # what goes around the cache does another job than the cached call
        "bulkmm-cached": CACHING,
        "bulkmm-streaming": (*CACHING, "libpmem2"),
    },
    right="every byte is zero, none beside it was touched",
    wrong="leaves bytes not zero, or touches others",
)


@dataclass(frozen=True)
class Request(sweep.Request):
    """What to measure."""

    size: int = SIZE
    extents: tuple[int, ...] = EXTENTS


def run_bench(request: Request | None = None, seen: Seen | None = None) -> Document:
    """Measure and verify; ``seen`` is told each event of the program."""
    return sweep.run(SUBJECT, request or Request(), seen)
