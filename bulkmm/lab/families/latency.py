# SPDX-License-Identifier: GPL-2.0-only
"""clear-latency: how long clearing delays another task on the same CPU.

It is measured in two ways. A real-time task on the same CPU (lab/guest/bmmlate.c)
measures its wake-up delay, which includes everything else that guest and host do.
The tracepoint reports the longest unit of each page, per backend: these have a
claimed bound. Disturbance can only lengthen them, so the least of several visits
is compared with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bulkmm.lab.families.huge import SizedWork, right
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.work import Measure, grouped, samples
from bulkmm.results import Check
from bulkmm.size import PAGE

STATES = {  # target latencies
    "off": "clear=off",
    "10ms": "clear=auto clear/latency_us=10000",
    "1ms": "clear=auto clear/latency_us=1000",
}
ARMS = tuple(STATES)
WAYS = {"demand": "write-middle", "populate": "map-populate"}
POOLS = {2048: 16, 1 << 20: 1}  # hugetlb pages by size in KiB
SIZES = {2048: "-n 16 -b 16", 1 << 20: ""}  # options of bmmfault
BOUND_ROUNDS = 3  # at least: a single one may be disturbed
BUILT_IN = "preempt"  # cannot be selected: full or lazy, uname does not tell
PREEMPTIBLE = ("full", "lazy", BUILT_IN)
ALLOWED = 1.5  # times the target latency, plus a page
# what the tracepoint reports for a populated 2 MiB page
TRACED = {"order": 9, "bytes": 2 << 20, "streaming": 1}


def _model(outcome: Outcome) -> str:
    return str(outcome.of("preemption")[0]["model"])


@dataclass(frozen=True)
class Work(SizedWork):
    """Clearing with several target latencies, and a waiting task."""

    sizes = tuple(POOLS)
    kept = (("visits", "late"), ("bounds", "bound"), ("preemption", _model))

    def lines(self) -> list[str]:
        model = self.options.preempt or ""
        lines = [f"preemption {model}", *self._visits(), *_warm(2048)]
        rounds = max(self.options.rounds, BOUND_ROUNDS)
        lines += ["bounds write-middle -f -n 4 -b 4"] * rounds
        return [*lines, "traced", "state absent"]

    def _visits(self) -> list[str]:
        chance, lines = self.options.chance, []
        for kib in self.kib:
            lines += _warm(kib)
            for arm in self.rounds(ARMS, chance):
                lines.append(f"state {arm} {STATES[arm]}")
                lines += [f"late {way} {SIZES[kib]}" for way in WAYS.values()]
        return lines

    def measured(self, outcome: Outcome) -> Iterator[Measure]:
        """Return the longest waits while pages were faulted in or populated."""
        pairs = [("off", arm) for arm in ARMS[1:]]
        for name, kib, way in self.timed(WAYS):
            taken = samples(outcome, "late", "late_ns", ARMS, kib=kib, way=way)
            yield Measure(name, kib << 10, pairs, taken)

    def checks(self, outcome: Outcome) -> list[Check]:
        seen = outcome.of("late")
        traced = outcome.of("traced")
        model = _model(outcome)
        preempts = model in PREEMPTIBLE
        wanted = {**TRACED, "unit": 2 << 20 if preempts else PAGE}
        told = any(wanted.items() <= one.items() for one in traced[:1])
        found = [
            Check("sampled", all(one["late_samples"] > 0 for one in seen), model),
            Check("tracepoint", told, f"{traced}"),
            right("every byte zero", seen),
        ]
        if preempts:
            return found
        bounds = grouped(outcome.of("bound"), lambda e: f"{e['list']}, {e['backend']}")
        return [*found, *(_bound(name, some) for name, some in bounds.items())]


def _warm(kib: int) -> list[str]:
    """Return the lines that fill a pool and fault its pages in on the host."""
    pages = POOLS[kib]
    return [
        f"folios hugetlb {kib} {pages}",
        f"must bmmfault -f -n {pages} -b {pages} hugetlb {kib} write-first",
    ]


def _bound(name: str, some: list[dict[str, Any]]) -> Check:
    """Check that the longest unit of a backend is within the bound."""
    page = min(one["ns"] * PAGE / one["bytes"] for one in some if one["bytes"])
    most = ALLOWED * 1000 * some[0]["latency_us"] + page
    least = min(int(one["gap_ns"]) for one in some)
    detail = (
        f"longest unit {least / 1e6:.2f} ms in the best of {len(some)} visits, "
        f"{most / 1e6:.2f} allowed; {some[0]['unit']} bytes"
    )
    return Check(f"longest unit ({name})", 0 < least <= most, detail)
