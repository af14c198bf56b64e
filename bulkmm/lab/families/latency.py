# SPDX-License-Identifier: GPL-2.0-only
"""clear-latency: how long clearing keeps the CPU from a task that wants it.

Two things are seen. A real-time task on the same CPU (lab/guest/bmmlate.c)
measures how late it comes: that includes all else that the guest and its host
do. And the module's own account of its units, backend after backend: there a
bound is claimed, and whoever else takes the CPU can only lengthen what is seen,
so that the least of several visits is held against it.
"""

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from bulkmm import stats
from bulkmm.lab.families.huge import POOLS, PoolWork, events, size, warm
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check, Ratio, Result

ARMS = ("off", "8m", "32m", "computed")
UNITS = {"8m": 8192, "32m": 32768}  # KiB
WAYS = ("write-middle", "map-populate")
SIZES = {2048: "-n 16 -b 16", 1 << 20: ""}  # options of bmmfault
BOUND_ROUNDS = 3  # at least: one alone may be disturbed
BUILT_IN = "preempt"  # not to be chosen: full or lazy, uname does not say which
PREEMPTIBLE = ("full", "lazy", BUILT_IN)
ALLOWED = 1.5  # times the wanted latency, and a page more
PAGE = 4096
TRACED_UNIT = 65536


@dataclass(frozen=True)
class Work(PoolWork):
    """Units of several sizes, and a task that waits."""

    def job(self, modules: list[str]) -> str:
        """Return the guest's job: words of lab/guest/latency.sh, one a line."""
        lines = [*self.begin(modules), f"preemption {self.options.preempt}"]
        chance = self.options.chance
        for kib in self.kib:
            lines += warm(kib, POOLS[kib])
            for _ in range(self.rounds):
                for arm in chance.sample(ARMS, len(ARMS)):
                    lines.append(f"unit_arm {arm}")
                    lines += [f"late {way} {SIZES[kib]}" for way in WAYS]
        lines += warm(2048, POOLS[2048])
        rounds = max(self.rounds, BOUND_ROUNDS)
        lines += ["bounds write-middle -f -n 4 -b 4"] * rounds
        lines.append(f"traced {TRACED_UNIT}")
        return "\n".join([*lines, "clear_arm absent"]) + "\n"

    @property
    def steps(self) -> int:
        """Return how many visits there are."""
        return len(self.kib) * self.rounds * len(ARMS) * len(WAYS)

    def is_step(self, event: dict[str, Any]) -> bool:
        """Tell if a visit is done."""
        return bool(event["event"] == "late")

    def results(self, outcome: Outcome) -> tuple[list[Result], list[Ratio]]:
        """Return the longest wait of each visit."""
        found: list[Result] = []
        ratios: list[Ratio] = []
        for kib in self.kib:
            for what, way in zip(("demand", "populate"), WAYS, strict=True):
                name = f"{self.scenario.name}-{size(kib)}-{what}"
                arms = {}
                for arm in ARMS:
                    seen = events(outcome, "late", arm=arm, kib=kib, way=way)
                    waits = [float(one["late_ns"]) for one in seen]
                    arms[arm] = stats.summarise(name, arm, "ns", kib << 10, waits)
                found += arms.values()
                ratios += [stats.ratio(arms["off"], arms[arm]) for arm in ARMS[1:]]
        return found, ratios

    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict of the run."""
        seen = outcome.of("late")
        traced = outcome.of("traced")
        model = outcome.of("preemption")[0]["model"]
        found = [
            Check("sampled", all(one["late_samples"] > 0 for one in seen), model),
            *_forced(seen, bounded=model not in PREEMPTIBLE),
            Check("tracepoint", bool(traced) and _is_traced(traced[0]), f"{traced}"),
        ]
        if model in PREEMPTIBLE:
            return [*found, _unbounded(outcome)]
        return [*found, *_bounds(outcome)]

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return what was asked for and what else the run saw."""
        return {
            **asdict(self.options),
            "rounds": self.rounds,
            "preemption": outcome.of("preemption")[0]["model"],
            "visits": outcome.of("late"),
            "bounds": outcome.of("bound"),
        }


def _forced(seen: list[dict[str, Any]], *, bounded: bool) -> list[Check]:
    """Return if a unit is as large as it was said to be."""
    if not bounded:
        return []
    found = []
    for arm, kib in UNITS.items():
        some = [v for v in seen if (v["arm"], v["way"]) == (arm, "map-populate")]
        wanted = sum(int(v["folios"]) * -(-v["kib"] // kib) for v in some)
        units = sum(int(v["units"]) for v in some)
        detail = f"{units} units, expected {wanted}"
        found.append(Check(f"units of {arm}", units == wanted > 0, detail))
    return found


def _is_traced(event: dict[str, Any]) -> bool:
    """Return if the tracepoint says what was done: a populated page of 2 MiB."""
    wanted = {"order": 9, "bytes": 2 << 20, "unit": TRACED_UNIT, "streaming": 1}
    return all(event.get(key) == value for key, value in wanted.items())


def _unbounded(outcome: Outcome) -> Check:
    """Return if nothing is counted where the kernel takes the CPU anyway."""
    units = sum(int(b["units"]) for b in outcome.of("bound"))
    return Check("the kernel preempts: no unit", units == 0, f"{units} units")


def _bounds(outcome: Outcome) -> list[Check]:
    """Return for each backend if its longest unit was within the bound."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in outcome.of("bound"):
        groups[f"{one['list']}, {one['backend']}"].append(one)
    return [_bound(name, some) for name, some in groups.items()]


def _bound(name: str, some: list[dict[str, Any]]) -> Check:
    """Judge the visit that was disturbed least."""
    page = min(one["ns"] * PAGE / one["bytes"] for one in some if one["bytes"])
    most = ALLOWED * 1000 * some[0]["latency_us"] + page
    least = min(int(one["gap_ns"]) for one in some)
    units, over = (sum(int(one[key]) for one in some) for key in ("units", "over"))
    detail = (
        f"longest unit {least / 1e6:.2f} ms in the best of {len(some)} visits, "
        f"{most / 1e6:.2f} allowed; {over} of {units} units took longer"
    )
    return Check(f"longest unit ({name})", 0 < least <= most, detail)
