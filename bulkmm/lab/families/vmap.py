# SPDX-License-Identifier: GPL-2.0-only
"""The vmap scenarios: their jobs and their times.

A visit is a number of samples of one way to map, in one state of the module;
pages and address space are the same in all states.
bulkmm.lab.families.vmap_proof judges what the test module saw.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from bulkmm.lab import state, work
from bulkmm.lab.choices import ARMS
from bulkmm.lab.families import vmap_proof
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.scenario.vmap import PHYSICAL
from bulkmm.lab.work import ABSENT
from bulkmm.results import Check

PAIRS = (*product(("absent", "off"), vmap_proof.SERVING), ("absent", "off"))
LIMIT = "limit"  # only reading the page array
CHECK, FAULTS, UPSTREAM = "vmap-check", "vmap-faults", "upstream-vmalloc"
ARRAYS = 100_000
FEW = 2000  # arrays checked by a timed scenario in each state
SLOTS = ("map", "unmap")  # of a record of work, as vmap_time.c marks them
WHOLE = "all that was asked for was reported"
BAD = (
    "null-first",
    "null-middle",
    "null-last",
    "zero-count",
    "too-many",
    "past-memory",
    "no-memory",
    "present",
)


@dataclass(frozen=True)
class Work(work.Work):
    """A vmap scenario with its options (see bulkmm.lab.work)."""

    kept = (
        ("shapes", "shape"),
        ("checked", "checked"),
        ("soaked", "soaked"),
        ("counters", state.unloaded),
    )

    @property
    def arms(self) -> tuple[str, ...]:
        return self.options.arms or ARMS

    @property
    def arrays(self) -> int:
        """Return the number of random arrays, in total or per state."""
        whole = ARRAYS if self.scenario.name == CHECK else FEW
        return whole if self.options.arrays is None else self.options.arrays

    def lines(self) -> list[str]:
        chance = self.options.chance
        kinds = {CHECK: self._check, FAULTS: self._faults, UPSTREAM: self._upstream}
        lines = kinds.get(self.scenario.name, self._timed)(chance)
        last = ["state absent", "must rmmod bulkmm_vmaptest"]
        return ["modules bulkmm_vmaptest", *lines, *last]

    def _timed(self, chance: random.Random) -> list[str]:
        lines = []
        for case in self.scenario.shape:
            lines += [f"shape {case.shape}"] if case.shape else []
            name = self.scenario.name + case.result
            # makes the host fault in its own pages
            lines += ["state absent", f"timed first {name} {case.words}"]
            for _ in range(self.options.rounds):
                for arm in chance.sample(self.arms, len(self.arms)):
                    lines += [self.state(arm), f"timed round {name} {case.words}"]
                if case.scanned:
                    words = f"scan {case.calls} {case.samples}"
                    lines += [f"timed {LIMIT} {name}-scan {words}"]
        for arm in self.arms:
            lines += self._random(arm, self.arrays)
        return lines

    def _random(self, arm: str, arrays: int) -> list[str]:
        """Return the lines for random arrays and one with a wrong model."""
        large = "always" if arm == "block" else "never"
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        seed = self.options.seed
        return [
            self.state(arm),
            f"checked random {large} {arrays} {seed}",
            f"checked {label} {large} 1 {seed} planted",
        ]

    def _check(self, chance: random.Random) -> list[str]:
        lines = []
        serving = [arm for arm in self.arms if arm in vmap_proof.SERVING]
        for arm in chance.sample(self.arms, len(self.arms)):
            # stock code, the reference, needs fewer than 10^5 arrays
            part = len(serving) if arm in serving else 10
            lines += self._random(arm, max(self.arrays // part, 1))
            if arm != ABSENT:
                names = " ".join(vmap_proof.ENTRIES)
                lines.append(f"entries {PHYSICAL:#x} {names}")
            large = "always" if arm == "block" else "never"
            lines += ["ktap parts", f"ktap attributes {large}"]
        return lines

    def _faults(self, chance: random.Random) -> list[str]:
        lines = []
        for arm in chance.sample(self.arms, len(self.arms)):
            lines += [self.state(arm), "ktap starve"]
            lines += [f"bad {name}" for name in BAD]
        modes = [arm for arm in self.arms if arm != ABSENT]
        seconds, seed = self.options.seconds, self.options.seed
        lines += ["state absent", f"MODES='{' '.join(modes)}'"]
        lines += [f"worker {n} mapper {n} {seed} {seconds}" for n in (1, 2)]
        if modes:
            return [*lines, f"soak {seconds} 2 vmap_turn vmap={modes[0]}"]
        return [*lines, f"soak {seconds} 0 'sleep 1'"]

    def _upstream(self, chance: random.Random) -> list[str]:
        options = f"run_test_mask={0xFFFF} test_loop_count={self.options.loops}"
        lines = []
        for arm in chance.sample(self.arms, len(self.arms)):
            lines += [self.state(arm), f"upstream {options} nr_threads=2"]
        return lines

    def measured(self, outcome: Outcome) -> Iterable[work.Measure]:
        for case, (slot, key) in product(self.scenario.shape, enumerate(SLOTS)):
            name = self.scenario.name + case.result
            of = {"label": "round", "result": name}
            taken = work.samples(outcome, "visit", key, self.arms, **of)
            if case.scanned and key == "map":
                scans = outcome.of("visit", label=LIMIT, result=f"{name}-scan")
                taken[LIMIT] = work.values(scans, key)
            arm = partial(_arm, name)
            seen = counting.by(
                outcome, ["visit"], arm, slot, calls=case.calls, many=_many
            )
            counted = {arm: seen[arm] for arm in taken}
            name += "-unmap" if key == "unmap" else ""
            yield work.Measure(name, case.nbytes, PAIRS, taken, counted)

    def checks(self, outcome: Outcome) -> list[Check]:
        planted = not self.options.break_one_word
        calls = {
            self.scenario.name + case.result: (case.calls * case.samples, case.served)
            for case in self.scenario.shape
        }
        found = [
            *vmap_proof.random_arrays(outcome, planted=planted),
            *vmap_proof.hits(outcome, calls),
            *vmap_proof.entries(outcome),
            *vmap_proof.verdicts(outcome),
            *vmap_proof.as_original(outcome, self.arms[0]),
            *vmap_proof.warnings(outcome, self.arms[0]),
            *vmap_proof.upstream(outcome, self.arms[0]),
            self._whole(outcome),
        ]
        busy, on = bool(outcome.of("soak")), bool({*self.arms} & {*vmap_proof.SERVING})
        found += [state.meanwhile(outcome, "vmap", wanted=on)] if busy else []
        return [*found, *([state.attached(outcome, "vmap", busy=busy)] if on else [])]

    def _whole(self, outcome: Outcome) -> Check:
        told = Counter(line.split()[0] for line in self.job([]).splitlines())
        wanted = {
            "visit": told["timed"],
            "checked": told["checked"],
            "entry": told["entries"] * len(vmap_proof.ENTRIES),
            "ktap-plan": told["ktap"],
            "soak": told["soak"],
        }
        seen = {event: len(outcome.of(event)) for event in wanted}
        bad = len(outcome.of("ktap", of="bad"))
        arms = {event["arm"] for event in outcome.of("upstream")}
        ok = seen == wanted and bad == told["bad"]
        if told["upstream"]:
            ok = ok and arms == set(self.arms)
        if told["soak"]:
            ok = ok and {e["process"] for e in outcome.of("soaked")} == {1, 2}
        detail = ", ".join(f"{seen[e]} of {n} {e}" for e, n in wanted.items() if n)
        return Check(WHOLE, ok, detail or f"{bad} bad requests, {len(arms)} arms")

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        return {**super().facts(outcome), "arrays": self.arrays}


def _arm(name: str, visit: dict[str, Any]) -> str | None:
    """Return whose samples a visit has, if they are of this result."""
    if visit["result"] == f"{name}-scan":
        return LIMIT
    mine = (visit["label"], visit["result"]) == ("round", name)
    return str(visit["arm"]) if mine else None


def _many(visit: dict[str, Any]) -> int:
    """Return the number of samples, each of which has a record."""
    return len(work.values([visit], SLOTS[0]))
