# SPDX-License-Identifier: GPL-2.0-only
"""clear-cases: folio_zero_user() called as no fault calls it, and its cost."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from bulkmm import stats
from bulkmm.lab.families.huge import HugeWork
from bulkmm.lab.families.proof import ARMS, LISTS, SERVING
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check, Measured

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
class Work(HugeWork):
    """Calls with every hint, on folios of every order."""

    kept = (("cases", "case"), ("calls", "calls"))

    def job(self, modules: list[str]) -> str:
        lines = [*self.begin(modules), "must insmod /lib/modules/bulkmm_lab.ko"]
        for arm in ARMS:
            lines += [f"clear_arm {arm}", f"cases plain 0 {ORDERS}"]
        for arm in LISTS:
            lines += [f"clear_arm {arm}", "tune min_pages 0"]
            lines.append(f"cases_by_backend {ORDERS}")
            for name, value, usual in EXTREMES:
                lines += [f"tune {name} {value}", f"cases {name}-{value} 0 {FEW}"]
                lines.append(f"tune {name} {usual}")
        label = "broken-on-purpose" if self.options.break_one_word else "corrupted"
        lines += [f"cases {label}-inside 1 0 9", f"cases {label}-beside 2 0 9"]
        lines += self._times()
        lines += ["clear_arm absent", "must rmmod bulkmm_lab"]
        return "\n".join(lines) + "\n"

    def _times(self) -> list[str]:
        """Return what is timed, with stores that cost the same in every arm."""
        chance = self.options.chance
        lines = []
        for _ in range(self.options.rounds):
            for arm in chance.sample(TIMED, len(TIMED)):
                lines.append(f"clear_arm {arm}")
                if arm == "cached":
                    lines += ["plain_stores", "tune min_pages 0"]
                lines.append(f"call_times {CALLS} {ONE_PAGE} {FOUR} {EIGHT}")
        return lines

    steps = 2  # lists of backends
    step = ("case",)
    label = "latency_us-0"  # the last of each

    def results(self, outcome: Outcome) -> Measured:
        """Return the cost of a call on one page and its fixed cost.

        Two sizes give the time and work that do not grow with the folio: decisions,
        lookups and counting.
        """
        taken = {
            (arm, order): [
                float(one["median_ns"])
                for one in outcome.of("calls", arm=arm, order=order)
            ]
            for arm in TIMED
            for order in (ONE_PAGE, FOUR, EIGHT)
        }
        counted = _counted_calls(outcome)
        parts = []
        for name, nbytes, what, pairs in (
            ("clear-cases-one-page", 4096, _one_page, PAIRS),
            ("clear-cases-fixed", 0, _fixed, ()),
        ):
            times = {arm: what(taken, arm) for arm in TIMED}
            work = {
                arm: [*zip(*(what(one, arm) for one in counted), strict=True)]
                for arm in TIMED
            }
            parts.append(stats.rated(name, "ns", nbytes, times, pairs))
            parts.append(counting.rated(name, nbytes, work, pairs))
        return stats.joined(parts)

    def checks(self, outcome: Outcome) -> list[Check]:
        seen = outcome.of("case")
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in seen:
            if not one["label"].startswith("corrupted"):
                groups[f"{one['label']}, {one['arm']}"].append(one)
        return [
            *(_zero(name, some) for name, some in groups.items()),
            *(
                _corrupted(one, what)
                for what in ("inside", "beside")
                for one in seen
                if one["label"] == f"corrupted-{what}"
            ),
            _counted(seen),
        ]


Taken = dict[tuple[str, int], list[float]]


def _counted_calls(outcome: Outcome) -> tuple[Taken, Taken]:
    """Return instructions and stores per call."""
    found: tuple[Taken, Taken] = defaultdict(list), defaultdict(list)
    for calls, (record,) in counting.of(outcome, "calls"):
        work = counting.slot(record, 0, int(calls["calls"]))
        for taken, one in zip(found, work, strict=True):
            taken[calls["arm"], int(calls["order"])].append(one)
    return found


def _one_page(taken: Taken, arm: str) -> list[float]:
    return taken[arm, ONE_PAGE]


def _fixed(taken: Taken, arm: str) -> list[float]:
    pairs = zip(taken[arm, FOUR], taken[arm, EIGHT], strict=True)
    return [max(2 * four - eight, 0.0) for four, eight in pairs]


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


def _corrupted(one: dict[str, Any], what: str) -> Check:
    """Check that deliberate corruption was found every time, and nothing else."""
    # the next call restores the word beside the folio
    counts = (HINTS, 0) if what == "inside" else (0, (HINTS + 1) // 2)
    ok = (one["wrong"], one["beside"]) == counts
    detail = f"order {one['order']}: {one['wrong']} inside, {one['beside']} beside"
    return Check(f"corrupted {what} is seen (order {one['order']})", ok, detail)


def _counted(seen: list[dict[str, Any]]) -> Check:
    """Check that folios were served and that single pages fell back."""
    wrong = [one for one in seen if (one["hits"], one["small"]) != _expected(one)]
    detail = f"{sum(int(one['hits']) for one in seen)} served"
    if wrong:
        one = wrong[0]
        detail += f"; {one['arm']}, order {one['order']}: {one['hits']} hits"
        detail += f", {one['small']} small, expected {_expected(one)}"
    return Check("counters", not wrong and bool(seen), detail)


def _expected(one: dict[str, Any]) -> tuple[int, int]:
    if one["arm"] not in SERVING:
        return 0, 0
    large = 1 << one["order"] >= max(int(one["min_pages"]), 2)
    return (HINTS, 0) if large else (0, HINTS)
