# SPDX-License-Identifier: GPL-2.0-only
"""What the bench measures, as data: its sizes and its presentation."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bulkmm.results import host, row_names
from bulkmm.results.model import BULKMM, LIMIT, Result
from bulkmm.shell.size import GIB, KIB, MIB

Arms = dict[str, Result]  # of one scenario, by variant
COLD = 4  # the program's buffers are at least this many times the last-level cache


@dataclass(frozen=True)
class Amount:
    """The bytes that a run writes, and its extents."""

    size: int  # bytes written, a multiple of each extent
    extents: tuple[int, ...] = ()  # powers of two, ascending


NO_AMOUNT = Amount(0)


@dataclass(frozen=True)
class Subject:
    """One subject."""

    name: str
    # the first leads the table; own variants have a ratio to all
    bases: tuple[str, ...]
    own_variants: tuple[str, ...] = ()  # the core's calls
    full: Amount = NO_AMOUNT
    quick: Amount = NO_AMOUNT
    memory: float = 0  # bytes of buffers per byte of the size
    peers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by variant
    limited: tuple[str, ...] = ()  # uses of memory that have a limit
    cached: tuple[str, ...] = ()  # own variants that memory's limit does not bound
    right: str = "every byte as it must be, none beside it was touched"
    wrong: str = "differs from what it must be, or touches other bytes"

    def rank(self, result: Result) -> tuple[float, list[int | str]]:
        """Sort into reading order: bases, other peers, own variants, the limit."""
        order = (*self.bases, *self.own_variants, BULKMM, LIMIT)
        names = f"{result.arm}-{result.call}", result.arm
        like = next((name for name in names if name in order), None)
        place = len(self.bases) - 0.5 if like is None else order.index(like)
        return place, row_names.split_numbers(result.variant)

    def pairs(self, results: Arms) -> Iterator[tuple[str, str]]:
        """Return base and variant of each ratio of a scenario.

        The first base is compared with all but single backends and kinds; each own
        variant with every other base, the fastest peer, the limit and its fastest
        backend.
        """
        bases = [base for base in self.bases if base in results]
        for name, result in results.items():
            if bases and name != bases[0] and not result.backend:
                yield bases[0], name
        for name, result in results.items():
            way, threads = result.way, result.threads
            if way not in self.own_variants or result.backend:
                continue
            if threads == 1:
                yield from ((base, name) for base in bases)
                yield from _best(results, self.peers.get(way, ()), name)
            alike = {key: r for key, r in results.items() if r.threads == threads}
            limits = [k for k, r in alike.items() if r.arm == LIMIT and not r.backend]
            backends = [k for k, r in alike.items() if r.way == way and r.backend]
            yield from _best(results, limits, name)
            yield from _best(results, backends, name)


def _best(
    results: Arms, candidates: Iterable[str], name: str
) -> Iterator[tuple[str, str]]:
    """Return the pair of the fastest candidate present, as base, and a variant."""
    if present := [one for one in candidates if one in results]:
        yield min(present, key=lambda variant: results[variant].median), name


CACHING = ("rep-stosb", "rep-stosb-4k", "glibc", "plain")
COPYING = ("glibc", "libpmem2", "plain", "rep-movsb")

CLEAR = Subject(
    name="clear",
    full=Amount(GIB, (4 * KIB, 64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB, GIB)),
    quick=Amount(256 * MIB, (4 * KIB, 2 * MIB, 32 * MIB)),
    memory=1,
    own_variants=("bulkmm-cached", "bulkmm-streaming"),
    bases=("rep-stosb", "glibc"),
    # bypassing the cache is a different job from the cached call
    peers={
        "bulkmm-cached": CACHING,
        "bulkmm-streaming": (*CACHING, "libpmem2"),
    },
    limited=("",),
    cached=("bulkmm-cached",),
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
    quick=Amount(256 * MIB, (4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)),
    memory=2,
    own_variants=("bulkmm-cached", "bulkmm-streaming"),
    bases=("glibc",),
    peers={"bulkmm-cached": COPYING, "bulkmm-streaming": COPYING},
    limited=("",),
    cached=("bulkmm-cached",),
    right="every byte as in the source, none beside it was touched",
    wrong="differs from the source, or touches other bytes",
)
FIRST_USE = Subject(
    name="first-use",
    full=Amount(GIB, (64 * KIB, 2 * MIB, 64 * MIB, GIB)),
    quick=Amount(GIB, (64 * KIB, 64 * MIB)),
    memory=2,
    bases=("settled",),
)
SUBJECTS = {one.name: one for one in (CLEAR, COPY, FIRST_USE)}


@dataclass(frozen=True)
class Request:
    """What to measure of one subject."""

    subject: Subject
    amount: Amount
    rounds: int = 5  # per process
    processes: int = 6
    seed: int = 1  # of the first process; each process has its own
    backend: str | None = None  # for bulkmm; None: the core decides

    @property
    def memory(self) -> int:
        """Return the bytes of all buffers, which must exceed the caches."""
        step = max(self.amount.extents)  # each area holds whole ones
        cold = -(-COLD * host.last_level_cache() // step) * step
        return int(max(self.amount.size, cold) * self.subject.memory)
