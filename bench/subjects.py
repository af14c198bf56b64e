# SPDX-License-Identifier: GPL-2.0-only
"""What the bench measures, as data: its sizes and its presentation."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bulkmm.results import host
from bulkmm.results.model import Result
from bulkmm.results.variants import LIMIT, OURS, split
from bulkmm.shell.size import GIB, KIB, MIB

Arms = dict[str, Result]  # of one scenario, by variant
COLD = 4  # the program's buffers are at least this many times the last-level cache
SIZE = r"\d+[bkmgt]"


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
    cold: str = ""  # scenarios that have a limit: cold and unused
    cached: tuple[str, ...] = ()  # own variants that memory's limit does not bound
    right: str = "every byte as it must be, none beside it was touched"
    wrong: str = "differs from what it must be, or touches other bytes"

    def rank(self, variant: str) -> tuple[float, list[int | str]]:
        """Sort into reading order: bases, other peers, own variants, the limit.

        Variants stand beside the one whose name theirs begins with, by their numbers.
        """
        order = (*self.bases, *self.own_variants, OURS, LIMIT)
        way = variant.partition(":")[0]
        like = next((one for one in order if f"{way}-".startswith(f"{one}-")), None)
        place = len(self.bases) - 0.5 if like is None else order.index(like)
        words = re.split(r"(\d+)", variant)
        return place, [int(one) if one.isdecimal() else one for one in words]

    def pairs(self, results: Arms) -> Iterator[tuple[str, str]]:
        """Return base and variant of each ratio of a scenario.

        The first base is compared with all but single backends and kinds; each own
        variant with every other base, the fastest peer, the limit and its fastest
        backend.
        """
        bases = [base for base in self.bases if base in results]
        for name in results:
            if bases and name != bases[0] and not split(name)[2]:
                yield bases[0], name
        for name in results:
            call, threads, backend = split(name)
            if call not in self.own_variants or backend:
                continue
            if not threads:
                yield from ((base, name) for base in bases)
                yield from _best(results, self.peers.get(call, ()), name)
            backends = [arm for arm in results if arm.startswith(f"{name}:")]
            yield from _best(results, (LIMIT + threads,), name)
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
    cold=rf"clear-{SIZE}",
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
