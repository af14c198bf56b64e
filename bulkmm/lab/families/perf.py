# SPDX-License-Identifier: GPL-2.0-only
"""clear-perf: perf bench mem mmap, a program that is none of ours, faults in."""

from dataclasses import asdict, dataclass
from typing import Any

from bulkmm import stats
from bulkmm.lab.families.huge import POOLS, PoolWork, events, size, warm
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check, Ratio, Result

ARMS = ("absent", "off", "auto")
FUNCTIONS = ("demand", "populate")


@dataclass(frozen=True)
class Work(PoolWork):
    """The mapping benchmark of the kernel's own tool."""

    def job(self, modules: list[str]) -> str:
        """Return the guest's job: words of lab/guest/perf.sh, one a line."""
        lines = [*self.begin(modules), "perf_version"]
        chance = self.options.chance
        for kib in self.kib:
            lines += warm(kib, POOLS[kib])
            for _ in range(self.rounds):
                for arm in chance.sample(ARMS, len(ARMS)):
                    lines.append(f"clear_arm {arm}")
                    lines += [
                        f"perf_mmap {size(kib).upper()}B {POOLS[kib]} {function}"
                        for function in FUNCTIONS
                    ]
        return "\n".join([*lines, "clear_arm absent"]) + "\n"

    @property
    def steps(self) -> int:
        """Return how often perf is run."""
        return len(self.kib) * self.rounds * len(ARMS) * len(FUNCTIONS)

    def is_step(self, event: dict[str, Any]) -> bool:
        """Tell if perf has said something."""
        return bool(event["event"] == "perf")

    def results(self, outcome: Outcome) -> tuple[list[Result], list[Ratio]]:
        """Return the time of a folio by what perf says of its throughput."""
        found: list[Result] = []
        ratios: list[Ratio] = []
        for kib in self.kib:
            for function in FUNCTIONS:
                name = f"{self.scenario.name}-{size(kib)}-{function}"
                arms = {}
                for arm in ARMS:
                    some = events(outcome, "perf", arm=arm, kib=kib, function=function)
                    taken = [(kib << 10) * 1e9 / _rate(one) for one in some]
                    arms[arm] = stats.summarise(name, arm, "ns", kib << 10, taken)
                found += arms.values()
                ratios.append(stats.ratio(arms["off"], arms["auto"]))
                ratios.append(stats.ratio(arms["absent"], arms["off"]))
        return found, ratios

    def checks(self, outcome: Outcome) -> list[Check]:
        """Return if the module served what perf says it has mapped."""
        seen = outcome.of("perf")
        wrong = [one for one in seen if one["hits"] != _expected(one)]
        detail = f"{len(seen)} runs, {sum(int(one['hits']) for one in seen)} hits"
        if wrong:
            one = wrong[0]
            detail += f"; {one['arm']} {one['kib']} KiB {one['function']}: "
            detail += f"{one['hits']} hits, expected {_expected(one)}"
        return [Check("perf's folios are counted", not wrong and bool(seen), detail)]

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return what was asked for and what else the run saw."""
        return {
            **asdict(self.options),
            "rounds": self.rounds,
            "perf": outcome.of("perf-version")[0]["version"],
            "runs": outcome.of("perf"),
        }


def _rate(one: dict[str, Any]) -> float:
    """Return bytes a second."""
    return float(one["rate"])


def _expected(one: dict[str, Any]) -> int:
    return int(one["folios"]) if one["arm"] == "auto" else 0
