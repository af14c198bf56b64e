# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path prezero: huge pages are ready before they are asked for.

In prezero-2m and prezero-1g a visit populates the whole pool in one way, in one state
of the module, checks every byte, fills it with a pattern and frees it
(lab/guest/bmmfault.c). Populating and freeing are timed, on a clock that counts
instructions where emulated.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bulkmm.results.model import Check
from bulkmm.shell.size import GIB, KIB, MIB, name_size
from lab import state
from lab.machine import suites
from lab.machine.arch import X86_64, of_release
from lab.machine.vm import INSTRUCTION_NS, Hot, Outcome
from lab.scenario import base
from lab.scenario.base import (
    GIB_PAGE,
    Measure,
    Scenario,
    check_values,
    collect_samples,
    collect_values,
)
from lab.state import Expect, Visit

ARMS = ("absent", "off", "clear", "on", "ready", "both")
READY = ("ready", "both")
HOOKED, UNHOOKED = ("on", *READY), ("absent", "off", "clear")  # what a free meets
PAIRS = (("absent", "ready"), ("off", "on"), ("clear", "both"))
THREADS = "bulkmm-2"  # as QEMU does; their waiting is counted as well
# the kernel's, DPDK's, a file's
ANONYMOUS = ("madvise", "map-populate")
ALONE = (*ANONYMOUS, "fallocate")
QEMU = suites.QEMU  # a file's, with what its start takes (x86-64)
WAYS = (*ALONE, THREADS, QEMU)
CORRUPTED = "corrupted"
POPULATE, FREE = "ns", "free_ns"  # of a visit
WIDE = 16  # bytes that a store of path clear writes at most
FREE_MORE = 65  # instructions: arm64 needs 62 (7.3.4)
DEAR = 4  # frees by stock: a ready page on kernels that check themselves
STRESS_PAGES = 100_000
PAGES_PER_HIT = 50  # of so many pages at least one was ready
VISIT = "prezero-visit"
TWO_NODES = Hot(nodes=2, shared_out=True)  # with a CPU each
Work = Mapping[tuple[str, str], list[float]]  # instructions by way and arm


@dataclass(frozen=True, kw_only=True)
class Ready(Scenario):
    """A pool is populated in every way, in every state of the module."""

    family: str = "prezero"
    path: str = "prezero"
    needs: base.Needs = base.Needs(since="6.12")
    check: str = (
        "every byte zero, by every way to populate; where emulated, one that is ready "
        "costs 6,000 (2 MiB) or 60,000 instructions (1 GiB) at most; each free of "
        "2 MiB 60 more at most"
    )
    takes: tuple[str, ...] = ("rounds", "seed", "break_one_word")
    machine: base.Machine = base.Machine(
        suite="qemu", icount=True, countable=True, hot=TWO_NODES
    )
    pages: int  # of the pool
    page: int  # bytes
    most: int  # instructions of a ready page

    visited = VISIT

    def lines(self) -> list[str]:
        chance = self.chance
        count = f"prezero_counted {self.page * self.pages}"
        lines = [f"folios hugetlb {self.page // KIB} {self.pages}", count]
        for arm in self.each_round(ARMS, chance):
            lines.append(f"prezero_state {arm}")
            lines += map(self._visit, chance.sample(WAYS, len(WAYS)))
        if self.options.break_one_word:
            lines += ["prezero_state ready", self._visit(CORRUPTED)]
        return [*lines, "prezero_state absent", count]

    def _visit(self, way: str) -> str:
        mib = self.page * self.pages // MIB
        return f"prezero_visit {name_size(self.page).lower()} {mib} {way}"

    def measurements(self, outcome: Outcome) -> Iterator[Measure]:
        nbytes = self.page * self.pages
        for key, suffix in ((POPULATE, ""), (FREE, "-free")):
            for way in (way for way in WAYS if outcome.of(VISIT, way=way)):
                name = f"{self.name}-{way}{suffix}"
                times = collect_samples(outcome, VISIT, key, ARMS, way=way)
                yield Measure(name, nbytes, PAIRS, times)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        visits = state.list_visits(outcome, VISIT)
        ways = [*WAYS, *([CORRUPTED] if self.options.break_one_word else [])]
        if of_release(outcome.of("start")[0]["release"]) is not X86_64:
            ways.remove(QEMU)
        for way in ways:
            yield check_values(
                f"every byte zero ({way})", outcome.of(VISIT, way=way), {"wrong": 0}
            )
        for arm in ARMS:
            pages = self.pages if arm in READY else 0
            events = outcome.of(VISIT, arm=arm)
            yield check_values(
                f"known pages ({arm})", events, {"known": pages, "left": 0}
            )
        yield state.judge_visits("counters", visits, self._expected)
        yield state.check_attached(outcome, "prezero")
        counts = outcome.of("prezero-counted")  # before and after everything else
        name = "pages that the kernel counts"
        yield check_values(name, counts[1:], (counts or [{}])[0])
        if outcome.icount:
            work, free = (_work(outcome, key) for key in (POPULATE, FREE))
            most = max(self.most, DEAR * self._least(free, ANONYMOUS[0], "absent"))
            for way in ALONE:
                yield from self._cheap(way, work, most)
            if self.pages > 1:  # of one, what else is allocated hides the cost
                yield self._freed(free)
            if QEMU in ways:
                yield self._started(work)

    def _expected(self, visit: Visit) -> Expect:
        """Return what is expected: the whole pool where it is ready, or none of it."""
        many = self.pages if visit.arm in READY else 0
        return Expect("prezero", None, many, fell=None)

    def _cheap(self, way: str, work: Work, most: float) -> Iterator[Check]:
        """Check that clearing counts, and that a ready page is not cleared."""
        cleared = self._least(work, way, "clear")
        yield Check(
            f"clearing is counted ({way})",
            cleared * WIDE >= self.page,
            f"{cleared:.0f} instructions a page that path clear writes",
        )
        ready, stock = (self._least(work, way, *arms) for arms in (READY, ("absent",)))
        yield Check(
            f"work of a page that is ready ({way})",
            ready <= most,
            f"{ready:.0f} instructions, stock {stock:.0f}",
        )

    def _started(self, work: Work) -> Check:
        """Check that most of the clearing is gone when QEMU starts."""
        fewer = self._least(work, QEMU, "clear") - self._least(work, QEMU, *READY)
        page = self._least(work, ANONYMOUS[0], "clear")
        detail = f"{fewer:.0f} instructions fewer a page, of {page:.0f}"
        return Check("a start of QEMU", fewer > page / 2, detail)

    def _freed(self, work: Work) -> Check:
        """Check what the hooks cost when nothing is known: the pool was used up."""
        costs = []
        for way in ANONYMOUS:  # each frees in its own way
            off, on = (self._least(work, way, *arms) for arms in (UNHOOKED, HOOKED))
            costs.append((on - off, off))
        more, stock = max(costs)
        detail = f"{more:+.0f} instructions a page, of {stock:.0f}"
        return Check("cost of a free", more <= FREE_MORE, detail)

    def _least(self, work: Work, way: str, *arms: str) -> float:
        """Return the least work of a page in arms: interrupts only ever add to it."""
        return min(one for arm in arms for one in work[way, arm]) / self.pages


def _work(outcome: Outcome, key: str) -> Work:
    """Return the instructions of all visits."""
    instructions: dict[tuple[str, str], list[float]] = {}
    for visit in outcome.of(VISIT):
        work = instructions.setdefault((visit["way"], visit["arm"]), [])
        work.append(visit[key] / INSTRUCTION_NS)
    return instructions


class Stress(Scenario):
    """prezero-stress: everything at once, until so many pages have been seen."""

    observations = (("churned", "prezero-churned"),)

    @property
    def pages(self) -> int:
        """Return how many pages are taken and looked at."""
        return self.options.folios or STRESS_PAGES

    @property
    def defines(self) -> list[str]:
        return ["BMM_FAULTS=1"] if self.options.break_one_word else []

    def lines(self) -> list[str]:
        fault = "stale" if self.options.break_one_word else "none"
        return [f"prezero_stress {self.pages} {fault}"]

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        churned = outcome.of("prezero-churned")
        pages = sum(int(one.get("folios", 0)) for one in churned)
        turns = sum(int(one["turns"]) for one in outcome.of("prezero-stress"))
        yield check_values("every page zero", churned, {"wrong": 0})
        yield Check("enough pages", pages >= self.pages, f"{pages} in {turns} turns")
        yield state.check_meanwhile(outcome, prezero=math.ceil(pages / PAGES_PER_HIT))


GROWN = 512  # pages
JOBS = {"kernel": 0, "jobs-1": 1, "jobs-2": 2}  # by arm


class Grow(Scenario):
    """pool-grow: the pool grown by the kernel and by so many jobs."""

    def lines(self) -> list[str]:
        jobs = self.each_round(tuple(JOBS.values()))
        grown = [f"pool_grow {GROWN} {many}" for many in jobs]
        interruptions = [f"pool_ended {signal} {GROWN}" for signal in ("TERM", "KILL")]
        limit = "must_write /sys/kernel/mm/$KINDS/nr_overcommit_hugepages $KEPT"
        return [limit, *grown, *interruptions]

    def measurements(self, outcome: Outcome) -> Iterator[Measure]:
        times = {
            arm: collect_values(outcome.of("pool-grown", jobs=jobs), "ns")
            for arm, jobs in JOBS.items()
        }
        pairs = [("kernel", arm) for arm in [*JOBS][1:]]
        yield Measure("pool-grow", GROWN * 2 * MIB, pairs, times)


SCENARIOS = (
    Ready(
        "prezero-2m",
        "populating a pool of hugetlb pages of 2 MiB that are ready, and that are not",
        page=2 * MIB,
        pages=32,
        most=6_000,
        runs=base.Runs(
            rounds=2,
            full=("--rounds 2",),
            quick=("--rounds 1",),
            debug={"debug": ("--rounds 1",), "cachyos": ("--rounds 1",)},
        ),
        seconds=90,
        machine=base.Machine(
            suite="qemu",
            icount=True,
            countable=True,
            hot=TWO_NODES,
            memory=1024,
        ),
    ),
    Ready(
        "prezero-1g",
        "populating a page of 1 GiB that is ready, and that is not",
        page=GIB,
        pages=1,
        most=60_000,
        runs=base.Runs(
            rounds=1,
            debug={"debug": ("--rounds 1",)},
        ),
        seconds=400,
        machine=base.Machine(
            suite="qemu",
            icount=True,
            countable=True,
            hot=TWO_NODES,
            cmdline=GIB_PAGE,
        ),
    ),
    Scenario(
        "prezero-faults",
        "every way to take a hugetlb page and to free it dirty, resizing, demotion, "
        "memory that goes offline, broken pages, fillers that are killed, and each "
        "fault of the path, in a test build",
        "every byte zero whenever pages are populated; the pool exact; a bit that is "
        "kept on purpose must be seen",
        family="prezero",
        path="prezero",
        needs=base.Needs(
            since="6.12",
        ),
        does=("prezero_faults 24",),
        machine=base.Machine(
            # pages that the page allocator cleared would hide what is not cleared
            cmdline=f"init_on_alloc=0 {GIB_PAGE}",
            hot=TWO_NODES,
            faults=True,
        ),
        runs=base.Runs(
            debug={"debug": ("",)},
        ),
        seconds=200,
    ),
    Scenario(
        "prezero-scarce",
        "a filler that finds no page to zero: broken pages that stay in the pool, "
        "memory that goes offline, programs that take every page",
        "no page but the pool's is left; the path goes off, and the module goes; "
        "every byte zero",
        family="prezero",
        path="prezero",
        needs=base.Needs(
            since="6.12",
        ),
        does=("prezero_scarce 20",),
        machine=base.Machine(
            cmdline="init_on_alloc=0",
            hot=TWO_NODES,
        ),
        runs=base.Runs(
            debug={"debug": ("",)},
        ),
        seconds=120,
    ),
    Stress(
        "prezero-stress",
        "hugetlb pages taken in every way and freed dirty, while fillers are killed, "
        "pages migrate, the pool, modes and hooks change",
        "every page zero at first touch; the pool exact; some were ready",
        family="prezero",
        path="prezero",
        needs=base.Needs(
            since="6.12",
        ),
        machine=base.Machine(
            cmdline="init_on_alloc=0",
            hot=TWO_NODES,
            memory=1536,
        ),
        takes=("folios", "break_one_word"),
        runs=base.Runs(
            full=("--folios 20000",),
            debug={"debug": ("--folios 2000",)},
        ),
        seconds=900,
    ),
    Scenario(
        "prezero-days",
        "`bulkmm pool zero --watch` beside programs that take pages in every way and "
        "free them dirty, keep what post-copy migration has filled, and use all CPUs; "
        "broken pages; on the guest's clock, which jumps where the guest sleeps",
        "every free page known whenever the machine has been left alone, and ready "
        "while others are kept; a page of 1 GiB is back while all CPUs are busy",
        family="prezero",
        path="prezero",
        needs=base.Needs(
            since="6.12",
            x86_only="the Python in the guest is",
        ),
        does=("prezero_days {seconds}",),
        machine=base.Machine(
            cmdline=f"init_on_alloc=0 {GIB_PAGE}",
            hot=TWO_NODES,
            icount=True,
            suite="command",
        ),
        takes=("seconds",),
        runs=base.Runs(
            full=("--seconds 3600",),
        ),
        seconds=900,
    ),
    Grow(
        "pool-grow",
        "a pool of hugetlb pages of 2 MiB on two nodes grown by `nr_hugepages`, and by "
        "`bulkmm pool grow` with one process a node and two; ended by TERM and KILL",
        "the pool as asked for, equal on both nodes; limits as before; none left by a "
        "run that was terminated, nor by one that was killed once another has run",
        family="prezero",
        path="prezero",
        machine=base.Machine(
            hot=TWO_NODES,
            suite="command",
        ),
        takes=("rounds", "seed"),
        runs=base.Runs(
            rounds=3,
        ),
        seconds=200,
        needs=base.Needs(
            x86_only="the Python in the guest is",
        ),
    ),
)
