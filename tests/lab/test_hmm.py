# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own test of device-private memory: the job, how it is judged."""

from pathlib import Path
from typing import Any

import pytest
from lablib import passed

from bulkmm.lab import scenario
from bulkmm.lab.families import hmm
from bulkmm.lab.machine import upstream
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.work import Work

SCENARIO = scenario.find("upstream-hmm")
ATTACHED = "0 memmap_init_zone_device: attached"


def work(**chosen: Any) -> Work:
    return SCENARIO.make(**{"seed": 1, "rounds": 1, **chosen})


def case(arm: str, name: str = "a", wrong: Any = 0) -> dict[str, Any]:
    return {"event": "hmm-case", "arm": arm, "name": name, "wrong": wrong}


def visit(arm: str, calls: int = hmm.CHUNKS, pages: int | None = None) -> Any:
    whole = calls * hmm.CHUNK // hmm.PAGE
    seen = whole if pages is None else pages
    return {"event": "hmm-visit", "arm": arm, "calls": calls, "pages": seen}


def counters(hits: int, **more: Any) -> dict[str, Any]:
    seen = {"hits": hits, "fallback_off": 0, "fallback_nomem": 0}
    return {"event": "counters", "hook": ATTACHED, "inflight": 0, **seen, **more}


def good() -> list[dict[str, Any]]:
    cases = [case(arm, f"{n}") for arm in hmm.ARMS for n in range(hmm.CASES)]
    visits = [visit(arm) for arm in hmm.ARMS]
    return [*cases, *visits, counters(hmm.CHUNKS)]


def judged(events: list[dict[str, Any]]) -> dict[str, bool]:
    found = work().checks(Outcome(lambda _event: None, events))
    return {check.name: check.ok for check in found}


def failing(events: list[dict[str, Any]]) -> set[str]:
    return {name for name, ok in judged(events).items() if not ok}


def test_every_round_visits_every_arm_once() -> None:
    job = work(rounds=4).job(["a"]).splitlines()
    arms = [line.split()[1] for line in job if line.startswith("hmm_visit ")]
    assert len(arms) == work(rounds=4).steps == 12
    for at in range(0, 12, 3):
        assert sorted(arms[at : at + 3]) == sorted(hmm.ARMS)
    assert job[1] == "modules a bulkmm_lab"
    assert work(rounds=4, seed=2).job(["a"]).splitlines() != job


def test_broken_on_purpose() -> None:
    visits = [line for line in work().job([]).splitlines() if "hmm_visit" in line]
    assert not [line for line in visits if line.endswith(" broken")]
    broken = work(break_one_word=True).job([])
    assert broken.count(" broken\n") == len(hmm.ARMS)


def test_a_run_that_held() -> None:
    assert not failing(good())


def test_a_guest_that_says_nothing_fails() -> None:
    assert failing([]) == set(judged([]))
    assert len(judged([])) == 4


@pytest.mark.parametrize("wrong", [1, "-14"])
@pytest.mark.parametrize("arm", hmm.ARMS)
def test_a_wrong_word_fails_in_every_state(arm: str, wrong: Any) -> None:
    events = good()
    corrupted = next(e for e in events if e["event"] == "hmm-case" and e["arm"] == arm)
    corrupted["wrong"] = wrong
    assert failing(events) == {f"test_hmm: {corrupted['name']}"}


def test_a_case_that_is_missing_fails() -> None:
    assert failing(good()[1:]) == {"all that was asked for was reported"}


@pytest.mark.parametrize(
    "seen", [visit("absent", calls=3), visit("absent", pages=5), visit("off", calls=5)]
)
def test_other_device_memory_than_expected_fails(seen: dict[str, Any]) -> None:
    events = [seen if e == visit(seen["arm"]) else e for e in good()]
    assert "device memory brought up" in failing(events)


@pytest.mark.parametrize(
    "seen",
    [
        counters(hmm.CHUNKS - 1),
        counters(hmm.CHUNKS, fallback_off=1),
        counters(hmm.CHUNKS, fallback_nomem=1),
    ],
)
def test_counters(seen: dict[str, Any]) -> None:
    assert failing([*good()[:-1], seen]) == {"counters"}


@pytest.mark.parametrize("more", [{"hook": "-16 f: taken"}, {"inflight": 1}])
def test_hook(more: dict[str, Any]) -> None:
    seen = counters(hmm.CHUNKS, **more)
    assert failing([*good()[:-1], seen]) == {"hook attached, nobody left inside"}


def test_the_sources_of_every_test_are_known() -> None:
    wanted = {one.upstream for one in scenario.SCENARIOS if one.upstream}
    assert wanted == set(upstream.TESTS)
    for name, (first, *_) in upstream.TESTS.items():
        assert first == f"{name}.c"


@pytest.mark.vm
def test_kernels_own_test(tmp_path: Path) -> None:
    seen = passed(tmp_path, "upstream-hmm", "--kernel", "7.3", "--rounds", "1")
    visits = {v["arm"]: v["calls"] for v in seen["run"]["visits"]}
    assert visits == dict.fromkeys(hmm.ARMS, hmm.CHUNKS)
    assert seen["run"]["hooks"] == [ATTACHED]
