# SPDX-License-Identifier: GPL-2.0-only
"""clear-cases: folio_zero_user() called as no fault calls it, and its cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bulkmm.lab import state, work
from bulkmm.lab.families.huge import ARMS, LISTS, SERVING, arm
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

ORDERS = " ".join(str(order) for order in range(10))  # one page to 2 MiB
FEW = "0 1 2 3 4 9"
HINTS = 13  # of module/selftest/zero.c
# the same folios at the extremes of the tunables
EXTREMES = (
    ("radius", "0", "2"),
    ("radius", "512", "2"),
    ("latency_us", "0", "1000"),
)
CALLS = 1000
TIMED = ("absent", "off", "cached")
PAIRS = (("off", "cached"), ("absent", "off"))
ONE_PAGE, FOUR, EIGHT = 0, 2, 3  # orders that are timed


@dataclass(frozen=True)
class Work(work.Work):
    """Calls with every hint, on folios of every order."""

    kept = (("cases", "case"), ("calls", "calls"))

    def lines(self) -> list[str]:
        lines = ["zeroing", "modules bulkmm_lab"]
        for one in ARMS:
            lines += [arm(one), f"cases plain 0 {ORDERS}"]
        for one in LISTS:
            lines += [arm(one), "tune min_pages 0"]
            lines.append(f"cases_by_backend {ORDERS}")
            for name, value, usual in EXTREMES:
                lines += [f"tune {name} {value}", f"cases {name}-{value} 0 {FEW}"]
                lines.append(f"tune {name} {usual}")
        label = "broken-on-purpose" if self.options.break_one_word else "corrupted"
        lines += [f"cases {label}-inside 1 0 9", f"cases {label}-beside 2 0 9"]
        lines += self._times()
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def _times(self) -> list[str]:
        """Return what is timed, with stores that cost the same in every arm."""
        lines = []
        for one in self.rounds(TIMED):
            lines.append(arm(one))
            if one == "cached":
                lines += ["plain_stores", "tune min_pages 0"]
            lines.append(f"call_times {CALLS} {ONE_PAGE} {FOUR} {EIGHT}")
        return lines

    def measured(self, outcome: Outcome) -> Iterable[work.Measure]:
        """Return the cost of a call on one page and its fixed cost.

        Two sizes give the time and work that do not grow with the folio: decisions,
        lookups and counting.
        """

        def seen(arm: str, order: int) -> list[float]:
            events = outcome.of("calls", arm=arm, order=order)
            return work.values(events, "median_ns")

        counted = counting.by(
            outcome, ["calls"], lambda one: (one["arm"], one["order"]), calls=CALLS
        )
        times = {arm: seen(arm, ONE_PAGE) for arm in TIMED}
        done = {arm: counted[arm, ONE_PAGE] for arm in TIMED}
        yield work.Measure("clear-cases-one-page", 4096, PAIRS, times, done)
        fixed: dict[str, list[float]] = {}
        left: dict[str, list[counting.Work]] = {}
        for mode in TIMED:
            two = zip(seen(mode, FOUR), seen(mode, EIGHT), strict=True)
            fixed[mode] = [_fixed(*one) for one in two]
            both = zip(counted[mode, FOUR], counted[mode, EIGHT], strict=True)
            left[mode] = [(_fixed(a, b), _fixed(c, d)) for (a, c), (b, d) in both]
        yield work.Measure("clear-cases-fixed", 0, (), fixed, left)

    def checks(self, outcome: Outcome) -> list[Check]:
        seen = work.grouped(
            outcome.of("case"), lambda one: f"{one['label']}, {one['arm']}"
        )
        corrupted = [name for name in seen if name.startswith("corrupted")]
        return [
            *(_zero(name, seen[name]) for name in seen if name not in corrupted),
            *(_corrupted(one) for name in corrupted for one in seen[name]),
            state.judge("counters", state.visits(outcome, "cases"), _expected),
        ]


def _fixed(four: float, eight: float) -> float:
    return max(2 * four - eight, 0.0)


def _zero(name: str, some: list[dict[str, Any]]) -> Check:
    """Check that every word is zero and the neighbours of the folio are untouched."""
    calls = sum(int(one["calls"]) for one in some)
    wrong = next((one for one in some if one["wrong"] or one["beside"]), None)
    detail = f"{calls} calls on folios of {len(some)} kinds"
    if wrong:
        detail += (
            f"; order {wrong['order']} {wrong['backend']}: {wrong['wrong']} words "
            f"wrong, {wrong['beside']} beside it, first at byte {wrong['offset']} "
            f"with hint {wrong['hint']}"
        )
    ok = not wrong and calls == HINTS * len(some) > 0
    return Check(f"zero, and nothing else ({name})", ok, detail)


def _corrupted(one: dict[str, Any]) -> Check:
    """Check that deliberate corruption was found every time, and nothing else."""
    what = one["label"].removeprefix("corrupted-")
    # the next call restores the word beside the folio
    counts = (HINTS, 0) if what == "inside" else (0, (HINTS + 1) // 2)
    ok = (one["wrong"], one["beside"]) == counts
    detail = f"order {one['order']}: {one['wrong']} inside, {one['beside']} beside"
    return Check(f"corrupted {what} is seen (order {one['order']})", ok, detail)


def _expected(visit: state.Visit) -> state.Expect:
    """Return what is expected: large folios are served, single pages never."""
    if visit.arm not in SERVING:
        return state.Expect("clear")
    least = max(visit.path("clear").settings.get("min_pages", 0), 2)
    orders = [int(order) for order in str(visit.event["orders"]).split()]
    large = HINTS * sum(1 << order >= least for order in orders)
    small = HINTS * len(orders) - large
    return state.Expect("clear", visit.arm, large, small=small)
