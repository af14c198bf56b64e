# SPDX-License-Identifier: GPL-2.0-only
"""The huge-page scenarios: the job written, its times taken.

A visit is one run of the guest's program (lab/guest/bmmfault.c): so many
folios, by one way, in the state the module was brought to. It says what it
found in the folios; bulkmm.lab.proof judges that.
"""

from __future__ import annotations

import random
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bulkmm import stats
from bulkmm.errors import UsageError
from bulkmm.lab import proof
from bulkmm.lab.proof import ARMS, LISTS

if TYPE_CHECKING:
    from bulkmm.lab.scenario import Scenario
    from bulkmm.lab.vm import Outcome
    from bulkmm.results import Check, Ratio, Result

SOAK = "clear-faults"
PAIRS = (("off", "auto"), ("off", "cached"), ("off", "streaming"), ("absent", "off"))
DEMAND = ("write-first", "write-middle", "write-last")
POPULATE = ("madv-populate", "map-populate", "fallocate")
ANYWHERE = (*DEMAND, "read", "madv-populate", "map-populate", "fork")
HUGETLB = (*ANYWHERE, "memfd", "fallocate")
# a read of memory with no huge page of 2 MiB maps a shared page of zeros
PART = tuple(way for way in ANYWHERE if way != "read")
INIT_ON_ALLOC = ("0", "1")
# since then the allocator, told to clear all it gives away, has done the work
# of folio_zero_user() for anonymous memory
ALLOCATOR_SERVES = (6, 13)
DIRTY_MIB = 64  # that a second process dirties all the time
SOAK_DIRTY_MIB = 256
SOAK_SECONDS, LONGEST_SOAK = 60, 3600


@dataclass(frozen=True)
class Shape:
    """The folios of a scenario."""

    kind: str  # thp or hugetlb
    kib: tuple[int, ...]
    ways: tuple[str, ...]
    folios: int  # a visit, unless the user says so
    batch: int  # of them at once
    pool: int = 0  # hugetlb pages: twice a batch, for a child's copies
    rounds: int = 5
    cmdline: str = ""


SHAPES = {
    "thp-2m": Shape("thp", (2048,), ANYWHERE, folios=32, batch=16),
    "mthp": Shape(
        "thp", tuple(1 << n for n in range(4, 11)), PART, folios=80, batch=80
    ),
    "hugetlb-2m": Shape("hugetlb", (2048,), HUGETLB, folios=32, batch=16, pool=32),
    # pages as large as that can be had at boot only
    "hugetlb-1g": Shape(
        "hugetlb",
        (1 << 20,),
        HUGETLB,
        folios=1,
        batch=1,
        pool=2,
        rounds=1,
        cmdline="hugepagesz=1G hugepages=2",
    ),
    SOAK: Shape("thp", (), (), folios=0, batch=0),
}


@dataclass(frozen=True)
class Options:
    """What the user may choose of a huge-page scenario."""

    rounds: int | None = None  # None: as many as the scenario has
    folios: int | None = None  # likewise
    ways: tuple[str, ...] = ()  # none: all
    kib: tuple[int, ...] = ()  # sizes of folios; none: all
    init_on_alloc: str = ""  # "0" or "1"; none: as the kernel was built
    soak_seconds: int = SOAK_SECONDS  # of clear-faults
    break_one_word: bool = False
    seed: int = field(default_factory=lambda: random.SystemRandom().getrandbits(32))


@dataclass(frozen=True)
class Work:
    """A huge-page scenario with its options (see bulkmm.lab.work)."""

    scenario: Scenario
    options: Options = field(default_factory=Options)
    pmem = 0

    @property
    def shape(self) -> Shape:
        """Return the scenario's folios."""
        return SHAPES[self.scenario.name]

    @property
    def ways(self) -> tuple[str, ...]:
        """Return the ways of this run."""
        return self.options.ways or self.shape.ways

    @property
    def kib(self) -> tuple[int, ...]:
        """Return the sizes of this run."""
        return self.options.kib or self.shape.kib

    @property
    def rounds(self) -> int:
        """Return how often each arm is visited by each way."""
        return self.options.rounds or self.shape.rounds

    @property
    def defines(self) -> list[str]:
        """Return the make variables: the module is the one that is shipped."""
        return []

    @property
    def cmdline(self) -> str:
        """Return what the kernel is told of huge pages and of its allocator."""
        words = [self.shape.cmdline]
        if self.options.init_on_alloc:
            words.append(f"init_on_alloc={self.options.init_on_alloc}")
        return " ".join(word for word in words if word)

    def check_options(self) -> None:
        """Refuse what makes no sense."""
        options = self.options
        self._refuse("way", options.ways, self.shape.ways)
        self._refuse("folio size", options.kib, self.shape.kib)
        for name, number in (("rounds", options.rounds), ("folios", options.folios)):
            if number is not None and number < 1:
                raise UsageError(f"{number} {name} measure nothing: give 1 or more")
        if not 1 <= options.soak_seconds <= LONGEST_SOAK:
            raise UsageError(f"{options.soak_seconds} s: give 1 to {LONGEST_SOAK}")

    def _refuse(
        self, what: str, asked: tuple[object, ...], known: tuple[object, ...]
    ) -> None:
        for one in asked:
            if one not in known:
                listed = ", ".join(map(str, known)) or "none"
                raise UsageError(
                    f"unknown {what} {one}: {self.scenario.name} has {listed}"
                )

    def job(self, modules: list[str]) -> str:
        """Return the guest's job: words of lab/guest/clear.sh, one a line."""
        lines = [f"mark {self.scenario.name} begins", "zeroing"]
        lines += [f"must insmod /lib/modules/{module}.ko" for module in modules]
        if self.scenario.name == SOAK:
            return "\n".join([*lines, *self._soak()]) + "\n"
        lines.append(f"dirty {DIRTY_MIB}")
        chance = random.Random(self.options.seed)  # noqa: S311
        for kib in self.kib:
            lines += self._size(kib, chance)
        return "\n".join([*lines, "clear_arm absent"]) + "\n"

    def _soak(self) -> list[str]:
        return [f"dirty {SOAK_DIRTY_MIB}", f"soak {self.options.soak_seconds}"]

    def _size(self, kib: int, chance: random.Random) -> list[str]:
        """Return what is done with folios of one size."""
        shape, many = self.shape, self._many
        lines = [f"folios {shape.kind} {kib} {shape.pool}", "clear_arm absent"]
        # the host's own pages are faulted in by it
        lines.append(f"visit first {self.ways[0]} {many}")
        for _ in range(self.rounds):
            for arm in chance.sample(ARMS, len(ARMS)):
                lines.append(f"clear_arm {arm}")
                lines += [f"visit round {way} {many}" for way in self.ways]
        for name in LISTS:
            lines.append(f"clear_arm {name}")
            lines += [f"each_backend {name} {way} {many}" for way in self.ways]
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        lines.append(f"visit {label} {self.ways[0]} {many} -p")
        return lines

    @property
    def _many(self) -> str:
        folios = self.options.folios or self.shape.folios
        return f"-n {folios} -b {self.shape.batch}"

    @property
    def steps(self) -> int:
        """Return how many visits there are in rounds; others depend on the CPU."""
        return len(self.kib) * self.rounds * len(ARMS) * len(self.ways)

    def is_step(self, event: dict[str, Any]) -> bool:
        """Tell if a visit of a round is done."""
        return (event["event"], event.get("label")) == ("visit", "round")

    def limit(self) -> float:
        """Return a generous time limit: it is there for guests that hang."""
        if self.scenario.name == SOAK:
            return 120 + 4 * self.options.soak_seconds
        part = self.rounds / self.shape.rounds
        many = (self.options.folios or self.shape.folios) / self.shape.folios
        return 180 + 4 * self.scenario.seconds * max(part, 1) * max(many, 1)

    def results(self, outcome: Outcome) -> tuple[list[Result], list[Ratio]]:
        """Return the time of a folio in each arm, faulted in and populated."""
        found: list[Result] = []
        ratios: list[Ratio] = []
        for kib in self.kib:
            for what, ways in (("demand", DEMAND), ("populate", POPULATE)):
                taken = _rounds(outcome, kib, ways)
                name = f"{self._named(kib)}-{what}"
                arms = {
                    arm: stats.summarise(name, arm, "ns", kib << 10, samples)
                    for arm, samples in taken.items()
                }
                found += arms.values()
                if arms:
                    ratios += [stats.ratio(arms[a], arms[b]) for a, b in PAIRS]
        return found, ratios

    def _named(self, kib: int) -> str:
        name = self.scenario.name
        return name if len(self.shape.kib) == 1 else f"{name}-{proof.size(kib)}"

    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict of the run."""
        if self.scenario.name == SOAK:
            return proof.soak_checks(outcome)
        seen = outcome.of("visit")
        return [
            *proof.zero(v for v in seen if v["label"] != "planted"),
            *proof.planted(seen, wanted=not self.options.break_one_word),
            *proof.counters(seen, taken_away=self._taken_away(outcome)),
            proof.forced(seen, len(self.ways) * len(self.kib)),
            proof.attached(outcome),
        ]

    def _taken_away(self, outcome: Outcome) -> bool:
        """Tell if the allocator did the work that the module is there for."""
        allocator = outcome.of("zeroing")[0]["allocator"] == "on"
        release = version(outcome.of("start")[0]["release"])
        return self.shape.kind == "thp" and allocator and release >= ALLOCATOR_SERVES

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return what was asked for and what else the run saw."""
        allocator = [event["allocator"] for event in outcome.of("zeroing")]
        return {
            **asdict(self.options),
            "rounds": self.rounds,
            "allocator_clears": allocator == ["on"],
            "visits": outcome.of("visit"),
            "counters": outcome.of("clear-counters"),
        }


def version(release: str) -> tuple[int, ...]:
    """Return (6, 12) for 6.12.107+deb13-cloud-amd64."""
    return tuple(int(n) for n in re.findall(r"\d+", release)[:2])


def _rounds(
    outcome: Outcome, kib: int, ways: tuple[str, ...]
) -> dict[str, list[float]]:
    """Return the time of a folio by arm, in the order taken; empty if none."""
    taken: dict[str, list[float]] = {}
    for visit in outcome.of("visit"):
        if (visit["label"], visit["kib"]) == ("round", kib) and visit["way"] in ways:
            times = taken.setdefault(visit["arm"], [])
            times.append(visit["ns"] / visit["folios"])
    return {arm: taken[arm] for arm in ARMS if arm in taken}
