# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of huge pages that are ready before they are asked for.

In prezero-2m and prezero-1g a visit populates the whole pool in one way, in one state
of the module, checks every byte, fills it with a pattern and frees it
(lab/guest/bmmfault.c). The work of populating and of freeing is counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bulkmm.lab import state, work
from bulkmm.lab.families import huge
from bulkmm.lab.machine import counting, suites
from bulkmm.lab.machine.arch import X86_64, of_release
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.state import Visit
from bulkmm.results import Check
from bulkmm.size import KIB, MIB

ARMS = ("absent", "off", "clear", "on", "ready", "both")
READY = ("ready", "both")
HOOKED, UNHOOKED = ("on", *READY), ("absent", "off", "clear")  # what a free meets
PAIRS = (("absent", "ready"), ("off", "on"), ("clear", "both"))
THREADS = "bulkmm-2"  # as QEMU does; their waiting is counted as well
# the kernel's, DPDK's, a file's
MAPPED = ("madvise", "map-populate")
ALONE = (*MAPPED, "fallocate")
QEMU = suites.QEMU  # a file's, with what its start takes (x86-64)
WAYS = (*ALONE, THREADS, QEMU)
CORRUPTED = "corrupted"
POPULATE, FREE = 0, 1  # slots of a record
STORE = 8  # bytes that a store is taken to write
WIDE = 16  # and one of path clear at most
FREE_MORE = 60  # instructions
STRESS_PAGES = 100_000
SERVED = 50  # of so many pages at least one was ready
VISIT = "prezero-visit"
Taken = Mapping[tuple[str, str], list[counting.Work]]  # by way and arm


@dataclass(frozen=True)
class Work(work.Work):
    """The scenario with its options (see bulkmm.lab.work)."""

    visited = VISIT

    def lines(self) -> list[str]:
        shape, chance = self.scenario.shape, self.options.chance
        lines = [f"folios hugetlb {shape.page // KIB} {shape.pages}"]
        for arm in self.rounds(ARMS, chance):
            lines.append(f"prezero_state {arm}")
            lines += map(self._visit, chance.sample(WAYS, len(WAYS)))
        if self.options.break_one_word:
            lines += ["prezero_state ready", self._visit(CORRUPTED)]
        return [*lines, "prezero_state absent"]

    def _visit(self, way: str) -> str:
        shape = self.scenario.shape
        return f"prezero_visit {shape.kind} {shape.page * shape.pages // MIB} {way}"

    def measured(self, outcome: Outcome) -> Iterator[work.Measure]:
        shape = self.scenario.shape
        nbytes = shape.page * shape.pages
        for slot, suffix in ((POPULATE, ""), (FREE, "-free")):
            taken = _taken(outcome, slot)
            for way in WAYS if taken else ():
                name = f"{self.scenario.name}-{way}{suffix}"
                counted = {arm: taken[way, arm] for arm in ARMS}
                yield work.Measure(name, nbytes, PAIRS, counted=counted)

    def checks(self, outcome: Outcome) -> list[Check]:
        visits = state.visits(outcome, VISIT)
        ways = [*WAYS, *([CORRUPTED] if self.options.break_one_word else [])]
        if of_release(outcome.of("start")[0]["release"]) is not X86_64:
            ways.remove(QEMU)
        found = [
            huge.right(
                f"every byte zero ({way})",
                [v.event for v in visits if v.event["way"] == way],
            )
            for way in ways
        ]
        found += [self._known(arm, visits) for arm in ARMS]
        found.append(state.attached(outcome, "prezero"))
        if taken := _taken(outcome, POPULATE):
            found += [check for way in ALONE for check in self._cheap(way, taken)]
            found.append(self._freed(_taken(outcome, FREE)))
            if QEMU in ways:
                found.append(self._started(taken))
        return found

    def _known(self, arm: str, visits: list[Visit]) -> Check:
        """Check that the whole pool was known where it is to be ready, and then not."""
        pages = self.scenario.shape.pages
        wanted = (pages, pages, 0) if arm in READY else (0, 0, 0)
        seen = {
            (int(v.event["known"]), v.moved("prezero"), int(v.event["left"]))
            for v in visits
            if v.arm == arm
        }
        detail = "; ".join(
            f"{known} known, {hits} not cleared, {left} known after"
            for known, hits, left in sorted(seen)
        )
        return Check(f"known pages ({arm})", seen == {wanted}, detail)

    def _cheap(self, way: str, taken: Taken) -> Iterator[Check]:
        """Compare what a ready page costs with its bytes, and with stock's work."""
        shape = self.scenario.shape
        stock, _ = self._least(taken, way, "absent")
        _, seen = self._least(taken, way, "clear")
        yield Check(
            f"stores are counted ({way})",
            seen * WIDE >= shape.page,
            f"{seen:.0f} a page that path clear writes",
        )
        insns, stores = self._least(taken, way, *READY)
        yield Check(
            f"work of a page that is ready ({way})",
            stores * STORE <= shape.page * shape.most and insns <= stock,
            f"{stores:.0f} stores, {stores * STORE / shape.page:.4%} of its bytes; "
            f"{insns:.0f} instructions, stock {stock:.0f}",
        )

    def _started(self, taken: Taken) -> Check:
        """Check that most of the clearing is gone when QEMU starts."""
        _, cleared = self._least(taken, QEMU, "clear")
        _, left = self._least(taken, QEMU, *READY)
        _, seen = self._least(taken, MAPPED[0], "clear")
        detail = f"{cleared - left:.0f} stores fewer a page, of {seen:.0f}"
        return Check("a start of QEMU", cleared - left > seen / 2, detail)

    def _freed(self, taken: Taken) -> Check:
        """Check what the hooks cost when nothing is known: the pool was used up."""
        costs = []
        for way in MAPPED:  # each frees in its own way
            off, on = (self._least(taken, way, *arms) for arms in (UNHOOKED, HOOKED))
            costs.append((on[0] - off[0], off[0]))
        more, stock = max(costs)
        detail = f"{more:+.0f} instructions a page, of {stock:.0f}"
        return Check("cost of a free", more <= FREE_MORE, detail)

    def _least(self, taken: Taken, way: str, *arms: str) -> counting.Work:
        """Return the least work of a page in arms: interrupts only ever add to it."""
        works = [one for arm in arms for one in taken[way, arm]]
        insns, stores = (min(some) for some in zip(*works, strict=True))
        pages = self.scenario.shape.pages
        return insns / pages, stores / pages


def _taken(outcome: Outcome, slot: int) -> Taken:
    """Return the work of all visits; empty if none was counted."""
    return counting.by(outcome, [VISIT], lambda one: (one["way"], one["arm"]), slot)


@dataclass(frozen=True)
class StressWork(work.Work):
    """prezero-stress: everything at once, until so many pages have been seen."""

    kept = (("churned", "prezero-churned"),)

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

    def checks(self, outcome: Outcome) -> list[Check]:
        churned = outcome.of("prezero-churned")
        pages = sum(int(one.get("folios", 0)) for one in churned)
        wrong = sum(int(one.get("wrong", 1)) for one in churned)
        turns = sum(int(one["turns"]) for one in outcome.of("prezero-stress"))
        hits = state.served(outcome)["prezero"]
        return [
            *work.told(outcome),
            Check("every page zero", not wrong, f"{wrong} words of {pages} pages not"),
            Check("enough pages", pages >= self.pages, f"{pages} in {turns} turns"),
            Check("served meanwhile", hits * SERVED >= pages, f"{hits} not cleared"),
        ]


GROWN = 512  # pages
JOBS = {"kernel": 0, "jobs-1": 1, "jobs-2": 2}  # by arm


@dataclass(frozen=True)
class GrowWork(work.Work):
    """pool-grow: the pool grown by the kernel and by so many jobs."""

    def lines(self) -> list[str]:
        jobs = self.rounds(tuple(JOBS.values()))
        grown = [f"pool_grow {GROWN} {many}" for many in jobs]
        ended = [f"pool_ended {signal} {GROWN}" for signal in ("TERM", "KILL")]
        limit = "must_write /sys/kernel/mm/$KINDS/nr_overcommit_hugepages $KEPT"
        return [limit, *grown, *ended]

    def measured(self, outcome: Outcome) -> Iterator[work.Measure]:
        times = {
            arm: work.values(outcome.of("pool-grown", jobs=jobs), "ns")
            for arm, jobs in JOBS.items()
        }
        pairs = [("kernel", arm) for arm in [*JOBS][1:]]
        yield work.Measure("pool-grow", GROWN * 2 * MIB, pairs, times)
