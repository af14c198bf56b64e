# SPDX-License-Identifier: GPL-2.0-only
"""What the bench measures, as data: how much of it, and how it is read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bulkmm import machine

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
LARGEST_DEVICE = "64T"
COLD = 4  # times the last-level cache is the least that the program works in
SIZE = r"\d+[bkmgt]"
VARIANT = re.compile(r"(?P<name>[^:]+?)(?P<threads>-(?:\d+t|auto))?(?::(?P<kind>.+))?")


@dataclass(frozen=True)
class Amount:
    """How much a run writes, and in which extents."""

    size: int  # of what is written, a multiple of each extent; of memmap: the device
    extents: tuple[int, ...] = ()  # powers of two, in rising order


@dataclass(frozen=True)
class Subject:
    """One of them."""

    name: str
    full: Amount
    quick: Amount
    memory: float  # bytes of buffers to a byte of the size
    variants: tuple[str, ...]  # in the order in which a reader compares
    ours: tuple[str, ...]  # the core's calls
    bases: tuple[str, ...]  # the first leads the table, ours have a ratio to all
    peers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of ours
    cold: str = ""  # scenarios that have a limit: cold and unused
    cached: tuple[str, ...] = ()  # of ours, what no limit of the memory holds for
    used_max: int | None = None  # extents above are not used after clearing
    right: str = "every byte as it must be, none beside it was touched"
    wrong: str = "differs from what it must be, or touches other bytes"

    def rank(self, variant: str) -> tuple[int, str, str]:
        """Order as a reader compares: peers, ours, the limit; backends of each."""
        name, threads, kind = split(variant)
        known = self.variants
        place = known.index(name) if name in known else len(known)
        return place, threads, kind


def split(variant: str) -> tuple[str, str, str]:
    """Return name, number of threads ("-2t", "-auto"), backend or kind of a variant."""
    found = VARIANT.fullmatch(variant)
    if not found:
        raise ValueError(f"{variant!r} is no name of a variant")
    return found["name"], found["threads"] or "", found["kind"] or ""


CACHING = ("rep-stosb", "rep-stosb-4k", "glibc", "plain")
COPYING = ("glibc", "libpmem2", "plain", "rep-movsb")

MEMMAP = Subject(
    name="memmap",
    full=Amount(100 * GIB),
    quick=Amount(16 * GIB),
    memory=64 / 4096,  # a struct page for a page
    variants=(
        *("rebuild", "rebuild-again", "rebuild-saferet", "template-copy"),
        *("template-movnti", "template-norefresh", "bulkmm", "limit"),
    ),
    ours=("bulkmm",),
    bases=("rebuild", "rebuild-saferet", "template-movnti", "template-norefresh"),
    cold="memmap-stamp",
)
CLEAR = Subject(
    name="clear",
    full=Amount(GIB, (4 * KIB, 64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB, GIB)),
    quick=Amount(256 * MIB, (4 * KIB, 2 * MIB, 32 * MIB)),
    memory=1,
    variants=(
        *("rep-stosb", "rep-stosb-again", "rep-stosb-4k"),
        *("glibc", "glibc-again", "libpmem2", "plain"),
        *("bulkmm-cached", "bulkmm-streaming", "limit"),
    ),
    ours=("bulkmm-cached", "bulkmm-streaming"),
    bases=("rep-stosb", "glibc"),
    # what bypasses the cache does another job than the cached call
    peers={
        "bulkmm-cached": CACHING,
        "bulkmm-streaming": (*CACHING, "libpmem2"),
    },
    cold=rf"clear-{SIZE}",
    cached=("bulkmm-cached",),
    used_max=32 * MIB,
    right="every byte is zero, none beside it was touched",
    wrong="leaves bytes not zero, or touches others",
)
COPY = Subject(
    name="copy",
    full=Amount(
        GIB,
        (
            *(4 * KIB, 64 * KIB, 256 * KIB),
            *(MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB),
            GIB,
        ),
    ),
    quick=Amount(256 * MIB, (64 * KIB, MIB, 16 * MIB, 64 * MIB)),
    memory=2,
    variants=(
        *("glibc", "glibc-again", "libpmem2", "plain", "rep-movsb"),
        *("bulkmm-cached", "bulkmm-streaming", "limit"),
    ),
    ours=("bulkmm-cached", "bulkmm-streaming"),
    bases=("glibc",),
    peers={"bulkmm-cached": COPYING, "bulkmm-streaming": COPYING},
    cold=rf"copy-{SIZE}",
    cached=("bulkmm-cached",),
    right="every byte as in the source, none beside it was touched",
    wrong="differs from the source, or touches other bytes",
)
FIRST_USE = Subject(
    name="first-use",
    full=Amount(GIB, (64 * KIB, 2 * MIB, 64 * MIB, GIB)),
    quick=Amount(GIB, (64 * KIB, 64 * MIB)),
    memory=2,
    variants=("settled", "first"),
    ours=(),
    bases=("settled",),
)
SUBJECTS = {one.name: one for one in (MEMMAP, CLEAR, COPY, FIRST_USE)}


@dataclass(frozen=True)
class Request:
    """What to measure of one subject."""

    subject: Subject
    amount: Amount
    rounds: int = 5  # of a process
    processes: int = 6
    seed: int = 1  # of the first process; each has its own
    backend: str | None = None  # what bulkmm uses; None: the core decides

    @property
    def memory(self) -> int:
        """The bytes of all buffers, which no cache may hold."""
        cold = COLD * machine.last_level_cache() * max(1, self.subject.memory)
        return int(max(self.amount.size * self.subject.memory, cold))


def plan(
    subject: Subject,
    *,
    quick: bool = False,
    rounds: int = 5,
    processes: int = 6,
    backend: str | None = None,
) -> Request:
    """Return what is measured of a subject, in full or quickly."""
    amount = subject.quick if quick else subject.full
    return Request(subject, amount, rounds, processes, backend=backend)
