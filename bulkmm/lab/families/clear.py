# SPDX-License-Identifier: GPL-2.0-only
"""The huge-page scenarios: their jobs and their times.

A visit is one run of the guest's program (lab/guest/bmmfault.c): a number of
folios, faulted in one way, in one state of the module. It reports what the folios
contained; bulkmm.lab.families.huge judges that.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bulkmm.lab import state, work
from bulkmm.lab.families import huge
from bulkmm.lab.families.huge import ARMS, LISTS, SizedWork, arm, right
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.scenario.clear import DEMAND, FORK
from bulkmm.results import Check

PAIRS = (("off", "auto"), ("off", "cached"), ("off", "streaming"), ("absent", "off"))
POPULATE = ("madv-populate", "map-populate", "fallocate")
TIMED = {"demand": DEMAND, "populate": POPULATE}
DIRTY_MIB = 64  # dirtied again and again by a second process


@dataclass(frozen=True)
class Work(SizedWork):
    """Folios faulted in every way, in every state of the module."""

    kept = (
        ("visits", huge.visits),
        ("counters", state.unloaded),
        ("allocator_clears", huge.allocator_clears),
    )

    @property
    def ways(self) -> tuple[str, ...]:
        usual: tuple[str, ...] = self.scenario.shape.ways
        return self.options.ways or usual

    @property
    def known(self) -> Mapping[str, tuple[object, ...]]:
        shape = self.scenario.shape
        return {**super().known, "ways": (*shape.ways, *shape.only_asked)}

    def lines(self) -> list[str]:
        lines = ["zeroing", f"dirty {DIRTY_MIB}"]
        chance = self.options.chance
        for kib in self.kib:
            lines += self._size(kib, chance)
        return [*lines, "state absent"]

    def _size(self, kib: int, chance: random.Random) -> list[str]:
        shape = self.scenario.shape
        many = f"-n {self.options.folios or shape.folios} -b {shape.batch}"
        lines = [f"folios {shape.kind} {kib} {shape.pool}", "state absent"]
        # makes the host fault in its own pages
        lines.append(f"visit first {self.ways[0]} {many}")
        for name in self.rounds(ARMS, chance):
            lines.append(arm(name))
            lines += [f"visit round {way} {many}" for way in self.ways]
        for name in LISTS:
            lines.append(arm(name))
            lines += [f"each_backend {name} {way} {many}" for way in self.ways]
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        # in a way that checks every folio once
        way = next((way for way in self.ways if way != FORK), DEMAND[0])
        lines.append(f"visit {label} {way} {many} -p")
        return lines

    def measured(self, outcome: Outcome) -> Iterator[work.Measure]:
        """Return the times per folio by arm, in the order measured; empty if none."""
        for name, kib, ways in self.timed(TIMED):
            taken: dict[str, list[float]] = {}
            for visit in outcome.of("visit", label="round", kib=kib):
                if visit["way"] in ways:
                    times = taken.setdefault(visit["arm"], [])
                    times.append(visit["ns"] / visit["folios"])
            taken = {arm: taken[arm] for arm in ARMS if arm in taken}
            yield work.Measure(name, kib << 10, PAIRS, taken)

    def checks(self, outcome: Outcome) -> list[Check]:
        visits = state.visits(outcome, "visit")
        seen = outcome.of("visit")
        away = self.scenario.shape.kind == "thp" and huge.taken_away(outcome)
        return [
            *huge.zero(v for v in seen if v["label"] != "planted"),
            *huge.planted(seen, wanted=not self.options.break_one_word),
            *huge.tags(seen),
            *huge.counters(visits, taken_away=away),
            huge.forced(seen, len(self.ways) * len(self.kib)),
            state.attached(outcome, "clear"),
        ]


@dataclass(frozen=True)
class Soak(work.Work):
    """All settings change while four processes fault in huge pages."""

    kept = (("soaked", "soaked"), ("allocator_clears", huge.allocator_clears))

    def checks(self, outcome: Outcome) -> list[Check]:
        found = [_soaked(event) for event in outcome.of("soaked")]
        had = sum(int(event["folios"]) > 0 for event in outcome.of("soaked"))
        most = f"{had} of {len(found)} processes had folios"
        return [
            *found,
            Check("folios for most processes", 2 * had > len(found), most),
            state.meanwhile(outcome, "clear"),
            state.attached(outcome, "clear", busy=True),
        ]


def _soaked(event: dict[str, Any]) -> Check:
    folios, refused = int(event["folios"]), int(event["refused"])
    name = f"every byte zero (process {event['process']})"
    detail = f"{folios} folios, {refused} not to be had"
    # in a short run the others may leave one process without a folio
    return right(name, [event], detail, ok=folios > 0 or refused > 0)
