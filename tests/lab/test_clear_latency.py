# SPDX-License-Identifier: GPL-2.0-only
"""The jobs of clear-latency and clear-cases, and their verdicts."""

from typing import Any

import pytest

from bulkmm.lab import scenario
from bulkmm.lab.families import cases, latency
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.work import Work
from bulkmm.results import Check

Event = dict[str, Any]


def work(name: str, **chosen: Any) -> Work:
    return scenario.find(name).make(**{"seed": 1, **chosen})


def judged(name: str, events: list[Event], begins: str) -> list[Check]:
    """Return the checks whose names begin like this."""
    checks = work(name).checks(Outcome(lambda _event: None, events))
    return [check for check in checks if check.name.startswith(begins)]


def ok(name: str, events: list[Event], begins: str) -> bool:
    found = judged(name, events, begins)
    assert found
    return all(check.ok for check in found)


def test_a_page_of_1_gib_is_there_at_boot() -> None:
    assert work("clear-latency").cmdline == "hugepagesz=1G hugepages=1"


def test_preemption_model_on_the_command_line() -> None:
    assert work("clear-cases", preempt="full").cmdline == "preempt=full"
    assert "preemption full" in work("clear-latency", preempt="full").job([])
    assert "\npreemption \n" in work("clear-latency").job([])


def test_every_arm_waits_by_every_way() -> None:
    job = work("clear-latency", rounds=3).job([]).splitlines()
    arms = [line.split()[1] for line in job if line.startswith("latency_arm")]
    assert sorted(arms) == sorted(latency.ARMS * 6)
    assert len([line for line in job if line.startswith("late ")]) == 36


def test_a_bound_is_tried_more_than_once() -> None:
    job = work("clear-latency", rounds=1).job([]).splitlines()
    assert len([line for line in job if line.startswith("bounds ")]) == 3


MODEL = {"event": "preemption", "model": "none"}
PREEMPTS = {"event": "preemption", "model": "lazy"}


def late(**changed: Any) -> Event:
    plain = {"event": "late", "arm": "1ms", "kib": 1 << 20, "way": "map-populate"}
    return {**plain, "folios": 1, "late_samples": 9, **changed}


def bound(**changed: Any) -> Event:
    plain = {"event": "bound", "list": "cached", "backend": "rep-b"}
    plain |= {"unit": 1 << 20, "gap_ns": 1_400_000, "latency_us": 1000}
    return {**plain, "ns": 20_000_000, "bytes": 2 << 20, **changed}


@pytest.mark.parametrize(
    ("gaps", "held"),
    [
        ([1_400_000], True),
        ([1_530_000], True),  # 1.5 ms and the 39 us of a page
        ([1_550_000], False),
        ([9_000_000, 1_400_000, 9_000_000], True),  # disturbed twice
        ([0], False),
    ],
)
def test_the_longest_unit(gaps: list[int], *, held: bool) -> None:
    seen = [MODEL, *(bound(gap_ns=gap) for gap in gaps)]
    assert ok("clear-latency", seen, "longest unit (cached, rep-b)") is held


def test_each_backend_is_judged_alone() -> None:
    seen = [MODEL, bound(), bound(backend="plain", gap_ns=3_000_000)]
    found = judged("clear-latency", seen, "longest unit")
    assert [check.ok for check in found] == [True, False]


def test_a_kernel_that_preempts_has_no_bound() -> None:
    assert not judged("clear-latency", [PREEMPTS, bound()], "longest unit")


def test_a_task_that_never_woke_up_saw_nothing() -> None:
    assert ok("clear-latency", [MODEL, late()], "sampled")
    assert not ok("clear-latency", [MODEL, late(late_samples=0)], "sampled")


@pytest.mark.parametrize(
    ("changed", "held"), [({}, True), ({"unit": 8192}, False), ({"order": 8}, False)]
)
def test_tracepoint(changed: dict[str, Any], *, held: bool) -> None:
    one = {"event": "traced", "order": 9, "bytes": 2 << 20, "streaming": 1}
    for model, unit in ((MODEL, 4096), (PREEMPTS, 2 << 20)):
        seen = [model, {**one, "unit": unit, **changed}]
        assert ok("clear-latency", seen, "tracepoint") is held


def case(**changed: Any) -> Event:
    plain = {"event": "case", "label": "plain", "arm": "auto", "backend": ""}
    plain |= {"hits": cases.HINTS, "small": 0, "min_pages": 16, "order": 9}
    plain |= {"calls": cases.HINTS, "wrong": 0, "beside": 0}
    return {**plain, "hint": "0x0", "offset": 0, **changed}


@pytest.mark.parametrize(
    ("changed", "held"),
    [
        ({}, True),
        ({"wrong": 1}, False),
        ({"beside": 1}, False),
        ({"calls": 12}, False),
        ({"label": "broken-on-purpose-inside", "wrong": 13}, False),
    ],
)
def test_calls(changed: dict[str, Any], *, held: bool) -> None:
    assert ok("clear-cases", [case(**changed)], "zero, and nothing else") is held


@pytest.mark.parametrize(
    ("changed", "held"),
    [
        ({"label": "corrupted-inside", "wrong": 13}, True),
        ({"label": "corrupted-inside", "wrong": 12}, False),
        ({"label": "corrupted-inside", "wrong": 13, "beside": 1}, False),
        ({"label": "corrupted-beside", "beside": 7}, True),
        ({"label": "corrupted-beside", "beside": 0}, False),
    ],
)
def test_what_is_corrupted(changed: dict[str, Any], *, held: bool) -> None:
    assert ok("clear-cases", [case(**changed)], "corrupted") is held


@pytest.mark.parametrize(
    ("changed", "held"),
    [
        ({}, True),
        ({"hits": 12}, False),
        ({"order": 0, "hits": 0, "small": 13}, True),
        ({"order": 0, "min_pages": 0}, False),  # one page is the original's
        ({"order": 3, "hits": 0, "small": 13}, True),
        ({"order": 3, "min_pages": 0}, True),
        ({"arm": "off", "hits": 0}, True),
        ({"arm": "off"}, False),
    ],
)
def test_cases_are_counted(changed: dict[str, Any], *, held: bool) -> None:
    assert ok("clear-cases", [case(**changed)], "counters") is held


def test_what_does_not_grow_with_the_folio() -> None:
    taken = [
        {"event": "calls", "arm": arm, "order": order, "median_ns": ns}
        for arm, fixed in (("absent", 0), ("off", 100), ("cached", 900))
        for order, ns in ((0, 500), (2, fixed + 4000), (3, fixed + 8000))
    ]
    results, _ = work("clear-cases").results(Outcome(lambda _event: None, taken))
    fixed = {r.variant: r.median for r in results if r.scenario.endswith("-fixed")}
    assert fixed == {"absent": 0, "off": 100, "cached": 900}
