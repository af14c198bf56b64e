# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path clear: huge pages are faulted in.

A visit is one run of the guest's program (lab/guest/bmmfault.c): a number of
folios, faulted in one way, in one state of the module. It reports what the folios
contained. Calls and waits are in lab/scenario/calls.py.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from bulkmm.control.kernel import ALLOCATOR_SERVES
from bulkmm.control.module import OFF
from bulkmm.control.requirements import is_at_least
from bulkmm.results.model import Check
from bulkmm.shell.size import KIB, PAGE, name_size
from lab import state
from lab.machine.kernel_kinds import PATCHED
from lab.machine.vm import Outcome
from lab.scenario import base
from lab.scenario.base import Event, Measure, Scenario, check_values, group_items
from lab.state import Expect, Visit

Ways = TypeVar("Ways")

ZERO = (
    "every byte of every folio zero, by every way to fault, in every mode and with "
    "every backend forced; a planted byte must be seen; hits counted"
)
ZEROING = ("init_on_alloc", "init_on_free")
FAULTED = (
    "rounds",
    "seed",
    "break_one_word",
    "preempt",
    *ZEROING,
    "folios",
    "ways",
    "arms",
)
SOAK = ("--seconds 30",)
ARMS = ("absent", "off", "auto", "cached", "streaming")
SERVING = ARMS[2:]  # the modes in which the module clears
PAIRS = (("off", "auto"), ("off", "cached"), ("off", "streaming"), ("absent", "off"))
ALLOC_FROM = 512  # pages: the least that path alloc serves
LISTS = ("cached", "streaming")  # of backends, named as the modes that use them
DEMAND = ("write-first", "write-middle", "write-last")
POPULATE = ("madv-populate", "map-populate", "fallocate")
TIMED = {"demand": DEMAND, "populate": POPULATE}
FORK = "fork"
ANYWHERE = (*DEMAND, "read", "madv-populate", "map-populate", FORK)
HUGETLB = (*ANYWHERE, "memfd", "fallocate")
# without 2 MiB pages, a read fault maps the shared page of zeros
PART = tuple(way for way in ANYWHERE if way != "read")
DIRTY_MIB = 64  # dirtied again and again by a second process


@dataclass(frozen=True, kw_only=True)
class Clear(Scenario):
    """A scenario of the path, with folios of one size or several."""

    family: str = "clear"
    path: str = "clear"
    seconds: int = 60
    machine: base.Machine = base.Machine(memory=1024)
    every_kib: tuple[int, ...] = ()

    @property
    def kib(self) -> tuple[int, ...]:
        """Return the sizes of this run."""
        return self.options.kib or self.every_kib

    @property
    def choices(self) -> Mapping[str, tuple[object, ...]]:
        return {**super().choices, "kib": self.every_kib}

    def timed(self, kinds: Mapping[str, Ways]) -> Iterator[tuple[str, int, Ways]]:
        """Yield for each size and kind of visit the result's name and the ways."""
        for kib, (kind, ways) in product(self.kib, kinds.items()):
            of = "" if len(self.every_kib) == 1 else f"-{format_kib(kib)}"
            yield f"{self.name}{of}-{kind}", kib, ways


def enter_arm(name: str) -> str:
    """Return the job's line that brings path clear into a state."""
    return f"state {name}" if name == "absent" else f"clear_state {name}"


def allocator_clears(outcome: Outcome) -> bool:
    """Return whether the kernel's allocator clears every page it returns."""
    return bool(outcome.of("zeroing")[0]["allocator"] == "on")


def taken_away(outcome: Outcome) -> bool:
    """Return whether only the allocator clears transparent huge pages."""
    release = outcome.of("start")[0]["release"]
    return allocator_clears(outcome) and is_at_least(release, ALLOCATOR_SERVES)


def format_kib(kib: int) -> str:
    """Return a size as in scenario names: 64k, 2m, 1g."""
    return name_size(kib * KIB).lower()


def expect_hits(
    visit: Visit, folios: Mapping[int, int], *, taken_away: bool = False
) -> tuple[Expect, Expect]:
    """Return what paths clear and alloc are to do for so many folios, by their pages.

    Path alloc sees other pages as well.
    """
    hits = small = alloc = 0
    # the original clears single pages, whatever the tunables
    least = max(visit.path("clear").settings.get("min_pages", 0), 2)
    for pages, many in folios.items() if visit.arm in SERVING else ():
        if taken_away:
            on = visit.path("alloc").mode != OFF and pages >= ALLOC_FROM
            alloc += many * on
        elif pages >= least:
            hits += many
        else:
            small += many
    return (
        Expect("clear", visit.arm, hits, fell={"small": small}),
        Expect("alloc", least=alloc, fell=None),
    )


def describe_visits(outcome: Outcome) -> list[Event]:
    """Return the visits as results have them."""
    return [*map(_facts, state.list_visits(outcome, "visit"))]


def _facts(visit: Visit) -> Event:
    fell = visit.fell("clear")
    return {
        **visit.event,
        "hits": visit.moved("clear"),
        "small": fell.pop("small", 0),
        "fell": fell.total(),
        "alloc": visit.moved("alloc"),
        "alloc_on": "no" if visit.path("alloc").mode == OFF else "yes",
        "min_pages": visit.path("clear").settings.get("min_pages", 0),
    }


@dataclass(frozen=True, kw_only=True)
class Faulted(Clear):
    """Folios faulted in every way, in every state of the module."""

    check: str = ZERO
    takes: tuple[str, ...] = FAULTED
    seconds: int = 120
    pages: str  # thp or hugetlb
    every_way: tuple[str, ...]
    only_asked: tuple[str, ...] = ()  # further ways, run only on request
    folios: int  # per visit, by default
    batch: int  # folios at a time
    pool: int = 0  # hugetlb pages: twice a batch, for a child's copies

    observations = (
        ("visits", describe_visits),
        ("counters", state.list_unloaded),
        ("allocator_clears", allocator_clears),
    )
    every_arm = ARMS

    @property
    def ways(self) -> tuple[str, ...]:
        return self.options.ways or self.every_way

    @property
    def choices(self) -> Mapping[str, tuple[object, ...]]:
        ways = (*self.every_way, *self.only_asked)
        return {**super().choices, "ways": ways}

    @property
    def _lists(self) -> tuple[str, ...]:
        return self.list_wanted(LISTS)

    def lines(self) -> list[str]:
        lines = ["zeroing", f"dirty {DIRTY_MIB}"]
        chance = self.chance
        for kib in self.kib:
            lines += self._size(kib, chance)
        return [*lines, "state absent"]

    def _size(self, kib: int, chance: random.Random) -> list[str]:
        many = f"-n {self.options.folios or self.folios} -b {self.batch}"
        lines = [f"folios {self.pages} {kib} {self.pool}", "state absent"]
        # makes the host fault in its own pages
        lines.append(f"visit first {self.ways[0]} {many}")
        for name in self.each_round(self.arms, chance):
            lines.append(enter_arm(name))
            lines += [f"visit round {way} {many}" for way in self.ways]
        for name in self._lists:
            lines.append(enter_arm(name))
            lines += [f"each_backend {name} {way} {many}" for way in self.ways]
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        # in a way that checks every folio once
        way = next((way for way in self.ways if way != FORK), DEMAND[0])
        lines.append(f"visit {label} {way} {many} -p")
        return lines

    def measurements(self, outcome: Outcome) -> Iterator[Measure]:
        """Return the times per folio by arm, in the order measured; empty if none."""
        for name, kib, ways in self.timed(TIMED):
            by_arm: dict[str, list[float]] = {}
            for visit in outcome.of("visit", label="round", kib=kib):
                if visit["way"] in ways:
                    times = by_arm.setdefault(visit["arm"], [])
                    times.append(visit["ns"] / visit["folios"])
            by_arm = {arm: by_arm[arm] for arm in ARMS if arm in by_arm}
            yield Measure(name, kib << 10, PAIRS, by_arm)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        events = outcome.of("visit")
        unplanted = [event for event in events if event["label"] != "planted"]
        by_way = group_items(
            unplanted, lambda event: f"{format_kib(event['kib'])} {event['way']}"
        )
        for name, group in by_way.items():
            ok = any(event["folios"] for event in group)
            yield check_values(f"every byte zero ({name})", group, {"wrong": 0}, ok=ok)
        yield from self._planted(outcome.of("visit", label="planted"))
        looked = group_items(
            (event for event in events if event["tags"]),
            lambda event: str(event["label"]),
        )
        for label, group in looked.items():
            name = f"every memory tag zero ({label})"
            yield check_values(name, group, {"tags_wrong": int(label == "planted")})
        away = self.pages == "thp" and taken_away(outcome)

        def expected(visit: Visit) -> tuple[Expect, Expect]:
            pages = visit.event["kib"] * KIB // PAGE
            return expect_hits(visit, {pages: visit.event["folios"]}, taken_away=away)

        visits = state.list_visits(outcome, "visit")
        by_arm = group_items(
            visits, lambda visit: f"{format_kib(visit.event['kib'])} {visit.arm}"
        )
        for name, of_arm in by_arm.items():
            yield state.judge_visits(f"counters ({name})", of_arm, expected)
        if self._lists:
            yield self._forced(outcome.of("visit", label="forced"))
        if {*self.arms} & {*SERVING}:
            yield state.check_attached(outcome, "clear")

    def _planted(self, visits: list[Event]) -> Iterator[Check]:
        """Check that exactly the byte planted was found."""
        for visit in visits:
            where = {"folio": visit["folios"] - 1, "offset": (visit["kib"] << 10) - 8}
            name = f"a planted byte is seen ({format_kib(visit['kib'])})"
            yield check_values(name, [visit], {"wrong": 1, **where})
        if not visits and not self.options.break_one_word:
            yield Check("a planted byte is seen", ok=False, detail="none planted")

    def _forced(self, visits: list[Event]) -> Check:
        """Check that backends of both lists were forced in every way."""
        counts = Counter((str(event["arm"]), str(event["backend"])) for event in visits)
        ok = {arm for arm, _ in counts} == {*self._lists}
        ok = ok and {*counts.values()} == {len(self.ways) * len(self.kib)}
        return Check("backends forced", ok, ", ".join(map(" ".join, counts)))


class Soak(Clear):
    """All settings change while four processes fault in huge pages."""

    observations = (("soaked", "soaked"), ("allocator_clears", allocator_clears))

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        soaked = outcome.of("soaked")
        for event in soaked:
            # in a short run the others may leave one process without a folio
            ok = event["folios"] > 0 or event["refused"] > 0
            name = f"every byte zero (process {event['process']})"
            yield check_values(name, [event], {"wrong": 0}, ok=ok)
        users = sum(int(event["folios"]) > 0 for event in soaked)
        detail = f"{users} of {len(soaked)} processes had folios"
        yield Check("folios for most processes", 2 * users > len(soaked), detail)
        yield state.check_meanwhile(outcome, clear=1)
        yield state.check_attached(outcome, "clear", busy=True)


SCENARIOS = (
    Faulted(
        "thp-2m",
        "faulting in transparent huge pages of 2 MiB",
        pages="thp",
        every_kib=(2048,),
        every_way=ANYWHERE,
        folios=32,
        batch=16,
        runs=base.Runs(
            full=("--init-on-alloc 0 --rounds 2", "--init-on-alloc 1 --rounds 2"),
            debug={
                "debug": (
                    "--init-on-alloc 0 --folios 4 --rounds 1",
                    "--init-on-alloc 1 --folios 4 --rounds 1",
                ),
                **dict.fromkeys(
                    PATCHED,
                    ("--init-on-alloc 0 --folios 4 --rounds 1 --arm absent",),
                ),
            },
        ),
    ),
    Faulted(
        "mthp",
        "faulting in transparent huge pages of 16 KiB to 1 MiB",
        pages="thp",
        every_kib=tuple(1 << n for n in range(4, 11)),
        every_way=PART,
        folios=80,
        batch=80,
        takes=(*FAULTED, "kib"),
        needs=base.Needs(
            since="6.12",
        ),
        runs=base.Runs(
            full=("--init-on-alloc 0 --rounds 2",),
            debug={
                "debug": (
                    "--kib 64 --kib 1024 --init-on-alloc 0 --folios 2 --rounds 1",
                )
            },
        ),
        seconds=300,
    ),
    Faulted(
        "hugetlb-2m",
        "faulting in hugetlb pages of 2 MiB",
        pages="hugetlb",
        every_kib=(2048,),
        every_way=HUGETLB,
        folios=32,
        batch=16,
        pool=32,
        runs=base.Runs(
            full=("--rounds 2",),
            quick=("--folios 8 --way write-middle --rounds 1",),
            debug={
                **dict.fromkeys(
                    ("debug", "cachyos", "clang-cfi"), ("--folios 4 --rounds 1",)
                ),
                **dict.fromkeys(PATCHED, ("--folios 4 --rounds 1 --arm absent",)),
            },
        ),
    ),
    Faulted(
        "hugetlb-1g",
        "faulting in hugetlb pages of 1 GiB",
        pages="hugetlb",
        every_kib=(1 << 20,),
        every_way=tuple(way for way in HUGETLB if way != FORK),
        # 7.3's own fork loses these pages: docs/limits.md
        only_asked=(FORK,),
        folios=1,
        batch=1,
        pool=2,
        runs=base.Runs(
            rounds=1,
            debug={
                "debug": ("--rounds 1",),
                # whose series hugetlb-fork mends it
                **dict.fromkeys(PATCHED, ("--way fork --arm absent",)),
            },
        ),
        seconds=600,
        machine=base.Machine(
            memory=5120,
            cmdline="hugepagesz=1G hugepages=2",
        ),
    ),
    Soak(
        "clear-faults",
        "modes, backends, unloading and the hugetlb pool change while four processes "
        "fault huge pages in",
        "every byte zero",
        does=(
            "zeroing",
            "dirty 256",
            "soakers {seconds}",
            "soak {seconds} 1 turn clear=auto",
        ),
        takes=("seconds", "preempt", *ZEROING),
        runs=base.Runs(
            debug={"debug": SOAK, "debug-kobject": SOAK},
        ),
    ),
)
