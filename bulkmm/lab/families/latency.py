# SPDX-License-Identifier: GPL-2.0-only
"""clear-latency: how long clearing delays another task on the same CPU.

It is measured in two ways. A real-time task on the same CPU (lab/guest/bmmlate.c)
measures its wake-up delay, which includes everything else that guest and host do.
The module accounts for its clearing units, per backend: these have a claimed
bound. Disturbance can only lengthen them, so the least of several visits is
compared with it.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from bulkmm.lab.families.huge import POOLS, PoolWork, warm
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check
from bulkmm.size import PAGE

ARMS = ("off", "8m", "32m", "computed")
UNITS = {"8m": 8192, "32m": 32768}  # KiB
WAYS = {"demand": "write-middle", "populate": "map-populate"}
SIZES = {2048: "-n 16 -b 16", 1 << 20: ""}  # options of bmmfault
BOUND_ROUNDS = 3  # at least: a single one may be disturbed
BUILT_IN = "preempt"  # cannot be selected: full or lazy, uname does not tell
PREEMPTIBLE = ("full", "lazy", BUILT_IN)
ALLOWED = 1.5  # times the target latency, plus a page
TRACED_UNIT = 65536
# what the tracepoint reports for a populated 2 MiB page
TRACED = {"order": 9, "bytes": 2 << 20, "unit": TRACED_UNIT, "streaming": 1}


@dataclass(frozen=True)
class Work(PoolWork):
    """Clearing units of several sizes, and a waiting task."""

    arms = ARMS
    pairs = tuple(("off", arm) for arm in ARMS[1:])
    kinds = tuple(WAYS)
    step = ("late",)
    kept = (("visits", "late"), ("bounds", "bound"))

    def job(self, modules: list[str]) -> str:
        """Return the guest's job: words of lab/guest/latency.sh, one per line."""
        lines = [*self.begin(modules), f"preemption {self.options.preempt}"]
        lines += self.visits()
        lines += warm(2048, POOLS[2048])
        rounds = max(self.rounds, BOUND_ROUNDS)
        lines += ["bounds write-middle -f -n 4 -b 4"] * rounds
        lines.append(f"traced {TRACED_UNIT}")
        return "\n".join([*lines, "clear_arm absent"]) + "\n"

    def visit(self, arm: str, kib: int) -> list[str]:
        """Return the lines that set the unit size and measure the task's waits."""
        late = (f"late {way} {SIZES[kib]}" for way in WAYS.values())
        return [f"unit_arm {arm}", *late]

    def times(self, outcome: Outcome, arm: str, kib: int, what: str) -> list[float]:
        """Return the longest waits while pages were faulted in or populated."""
        seen = outcome.of("late", arm=arm, kib=kib, way=WAYS[what])
        return [float(one["late_ns"]) for one in seen]

    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict of the run."""
        seen = outcome.of("late")
        traced = outcome.of("traced")
        model = outcome.of("preemption")[0]["model"]
        found = [
            Check("sampled", all(one["late_samples"] > 0 for one in seen), model),
            *_forced(seen, bounded=model not in PREEMPTIBLE),
            Check(
                "tracepoint",
                any(TRACED.items() <= e.items() for e in traced[:1]),
                f"{traced}",
            ),
        ]
        if model in PREEMPTIBLE:  # no units: it preempts anyway
            units = sum(int(b["units"]) for b in outcome.of("bound"))
            unit = Check("the kernel preempts: no unit", units == 0, f"{units} units")
            return [*found, unit]
        return [*found, *_bounds(outcome)]

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the options and what else the run observed."""
        model = outcome.of("preemption")[0]["model"]
        return {**super().facts(outcome), "preemption": model}


def _forced(seen: list[dict[str, Any]], *, bounded: bool) -> list[Check]:
    """Check that forced unit sizes are obeyed."""
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


def _bounds(outcome: Outcome) -> list[Check]:
    """Check for each backend that its longest unit is within the bound."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in outcome.of("bound"):
        groups[f"{one['list']}, {one['backend']}"].append(one)
    return [_bound(name, some) for name, some in groups.items()]


def _bound(name: str, some: list[dict[str, Any]]) -> Check:
    """Check the least disturbed visit."""
    page = min(one["ns"] * PAGE / one["bytes"] for one in some if one["bytes"])
    most = ALLOWED * 1000 * some[0]["latency_us"] + page
    least = min(int(one["gap_ns"]) for one in some)
    units, over = (sum(int(one[key]) for one in some) for key in ("units", "over"))
    detail = (
        f"longest unit {least / 1e6:.2f} ms in the best of {len(some)} visits, "
        f"{most / 1e6:.2f} allowed; {over} of {units} units took longer"
    )
    return Check(f"longest unit ({name})", 0 < least <= most, detail)
