# SPDX-License-Identifier: GPL-2.0-only
"""The one judge of the module's state: record before, record after, expectation."""

from typing import Any

import pytest

from lab import state
from lab.machine.vm import Outcome
from lab.state import Expect

Event = dict[str, Any]
ATTACHED, DETACHED = "0 f: attached\n0 g: attached", "-19 f: no\n-19 g: no"
CONFLICT = "0 f: attached\n-16 g: taken by another"


def sysfs(mode: str = "on", hook: str = "", **stats: int) -> dict[str, str]:
    """Return the files of a module with one path."""
    counters = {"hits": 0, "inflight": 0, **stats}
    modes = ("off", "on", "auto")
    return {
        "version": "0.1",
        "p/mode": " ".join(f"[{one}]" if one == mode else one for one in modes),
        "p/stats": "\n".join(f"{name} {count}" for name, count in counters.items()),
        "p/hook": hook or (DETACHED if mode == "off" else ATTACHED),
        "p/min_pages": "16",
    }


def record(when: str, files: dict[str, str]) -> Event:
    return {"event": "state", "when": when, "arm": "a", "files": files}


ON, OFF = sysfs(), sysfs("off")
FOUR, RANGE = Expect("p", "on", 4), Expect("p", "on", 2, 4)
BYTES = Expect("p", "on", 4, counter="bytes")


@pytest.mark.parametrize(
    ("before", "after", "expect", "ok"),
    [
        # as many hits as expected, neither more nor fewer
        (sysfs(hits=3), sysfs(hits=7), FOUR, True),
        (ON, sysfs(hits=3), FOUR, False),
        (ON, sysfs(hits=5), FOUR, False),
        (sysfs(hits=4), sysfs(hits=0), Expect("p", "on"), False),
        # or within bounds, or of another counter
        (ON, sysfs(hits=3), RANGE, True),
        (ON, sysfs(bytes=4), BYTES, True),
        (ON, sysfs(hits=4), BYTES, False),
        # without the module, or a path, nothing moves
        (None, None, Expect("p", "on"), True),
        (None, None, FOUR, False),
        (ON, None, FOUR, False),
        # loaded meanwhile: counted from 0
        (None, sysfs(hits=4), FOUR, True),
        # the mode that was asked for
        (OFF, OFF, Expect("p", "on"), False),
        (ON, sysfs("auto"), Expect("p"), True),
        # reasons to fall back
        (ON, sysfs(hits=4, fallback_nomem=1), FOUR, False),
        (sysfs(fallback_nomem=1), sysfs(hits=4, fallback_nomem=1), FOUR, True),
        (ON, sysfs(hits=4, fallback_off=1), FOUR, True),
        (ON, sysfs(hits=4, fallback_small=1), FOUR, False),
        (
            ON,
            sysfs(hits=4, fallback_small=1),
            Expect("p", "on", 4, fell={"small": 1}),
            True,
        ),
        (ON, sysfs(hits=4), Expect("p", "on", 4, fell={"small": 1}), False),
        (ON, sysfs(hits=4, fallback_walk=9), Expect("p", "on", 4, fell=None), True),
    ],
)
def test_visit(
    before: dict[str, str] | None,
    after: dict[str, str] | None,
    expect: Expect,
    ok: bool,  # noqa: FBT001
) -> None:
    events = [record("before", before)] if before else []
    events += [record("after", after)] if after else []
    visit = {"event": "visit", "arm": "a"}
    (visited,) = state.list_visits(Outcome([*events, visit]), "visit")
    assert state.judge_visits("a", [visited], lambda _visit: expect).ok is ok
    # one that is wrong is not made up for by others
    expected = (expect, Expect("p", least=99))
    assert not state.judge_visits("a", [visited], lambda _visit: expected).ok


def test_nothing_seen_proves_nothing() -> None:
    assert not state.judge_visits("a", [], lambda _visit: FOUR).ok


@pytest.mark.parametrize(
    ("visited", "unloaded", "busy", "ok"),
    [
        (ON, ON, False, True),
        (sysfs("auto"), OFF, False, True),
        # never on: nothing was hooked
        (OFF, OFF, False, False),
        # a hook that is missing while the path is on, or there while it is off
        (sysfs(hook=CONFLICT), OFF, False, False),
        (sysfs(hook=DETACHED), OFF, False, False),
        (ON, sysfs("off", ATTACHED), False, False),
        (sysfs(hook=" "), OFF, False, False),
        # calls in flight at unload, where nobody calls any more
        (ON, sysfs(inflight=1), False, False),
        (sysfs(inflight=1), ON, False, True),
        (ON, sysfs(inflight=1), True, True),
        (ON, sysfs(hook=CONFLICT, inflight=1), True, False),
        (ON, None, False, False),
        (None, None, False, False),
    ],
)
def test_hooks(
    visited: dict[str, str] | None,
    unloaded: dict[str, str] | None,
    busy: bool,  # noqa: FBT001
    ok: bool,  # noqa: FBT001
) -> None:
    events = [record("after", visited)] if visited else []
    events += [record("unload", unloaded)] if unloaded else []
    assert state.check_attached(Outcome(events), "p", busy=busy).ok is ok


def test_records_belong_to_the_visit_after_them() -> None:
    first, second = ({"event": "visit", "arm": "a", "n": n} for n in (1, 2))
    one_hit = (record("before", ON), record("after", sysfs(hits=1)), first)
    two_hits = (record("before", sysfs(hits=1)), record("after", sysfs(hits=3)), second)
    unrelated = (*two_hits[:2], {"event": "other", "arm": "a"})
    visits = state.list_visits(
        Outcome([*one_hit, *two_hits, *unrelated, first]), "visit"
    )
    assert [visit.moved("p") for visit in visits] == [1, 2, 0]
    assert visits[0].facts("p") == {**first, "hits": 1}
    assert visits[0].path("p").settings == {"min_pages": 16}


def test_counters_of_every_load_count() -> None:
    loads = [record("unload", sysfs(hits=n, fallback_odd=1)) for n in (2, 3)]
    assert state.count_served(Outcome(loads)) == {"p": 5}
    facts = state.list_unloaded(Outcome(loads))[0]
    assert (facts["arm"], facts["path"], facts["fallback_odd"]) == ("a", "p", 1)


def test_hooks_that_were_tried_are_named() -> None:
    outcome = Outcome([record("after", sysfs(hook=CONFLICT)), record("unload", OFF)])
    hooks = ["-16 g: taken by another", "0 f: attached"]
    assert (
        state.hooks_seen(outcome, "p") == state.hooks_seen(outcome, "suites") == hooks
    )
    assert state.hooks_seen(outcome, "other") == []
