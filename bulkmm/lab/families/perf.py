# SPDX-License-Identifier: GPL-2.0-only
"""clear-perf: pages faulted in by perf bench mem mmap, an independent program."""

from dataclasses import dataclass
from typing import Any

from bulkmm.lab.families.huge import POOLS, PoolWork, size
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

ARMS = ("absent", "off", "auto")
FUNCTIONS = ("demand", "populate")


@dataclass(frozen=True)
class Work(PoolWork):
    """The mapping benchmark of the kernel's own tool."""

    arms = ARMS
    pairs = (("off", "auto"), ("absent", "off"))
    kinds = FUNCTIONS
    step = ("perf",)
    kept = (("runs", "perf"),)

    def job(self, modules: list[str]) -> str:
        lines = [*self.begin(modules), "perf_version", *self.visits()]
        return "\n".join([*lines, "clear_arm absent"]) + "\n"

    def visit(self, arm: str, kib: int) -> list[str]:
        """Return the lines that switch the module to a state and run perf."""
        run = f"perf_mmap {size(kib).upper()}B {POOLS[kib]}"
        return [f"clear_arm {arm}", *(f"{run} {function}" for function in FUNCTIONS)]

    def times(self, outcome: Outcome, arm: str, kib: int, what: str) -> list[float]:
        """Return the time per folio, from perf's throughput in bytes per second."""
        seen = outcome.of("perf", arm=arm, kib=kib, function=what)
        return [(kib << 10) * 1e9 / float(one["rate"]) for one in seen]

    def checks(self, outcome: Outcome) -> list[Check]:
        seen = outcome.of("perf")
        wrong = [one for one in seen if one["hits"] != _expected(one)]
        detail = f"{len(seen)} runs, {sum(int(one['hits']) for one in seen)} hits"
        if wrong:
            one = wrong[0]
            detail += f"; {one['arm']} {one['kib']} KiB {one['function']}: "
            detail += f"{one['hits']} hits, expected {_expected(one)}"
        return [Check("perf's folios are counted", not wrong and bool(seen), detail)]

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        version = outcome.of("perf-version")[0]["version"]
        return {**super().facts(outcome), "perf": version}


def _expected(one: dict[str, Any]) -> int:
    return int(one["folios"]) if one["arm"] == "auto" else 0
