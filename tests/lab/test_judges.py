# SPDX-License-Identifier: GPL-2.0-only
"""Judges of what runs before a release only, and all that a silent guest fails."""

from typing import Any

import judgelib
import pytest
from judgelib import Event, failing, on

from bulkmm.shell.errors import GuestError
from lab import scenario
from lab.machine.vm import Outcome
from lab.scenario import SCENARIOS, memmap, suites

RELEASE = "6.12.107+deb13-cloud-amd64"


def unload_event(arm: str, **modes: str) -> Event:
    """Return what the module shows when it goes, each path after one hit."""
    files = {"version": "0.1"}
    for path, mode in modes.items():
        files |= {f"{path}/mode": f"[{mode}]", f"{path}/stats": "hits 1\ninflight 0"}
        files[f"{path}/hook"] = "0 f: attached"
    return on("state", when="unload", arm=arm, files=files)


def mm_events() -> list[Event]:
    fields = {"category": "cow", "name": "cow", "verdict": "pass", "attempt": 1}
    fields |= {"passed": 3, "failed": 0, "skipped": 1}
    events = [on("mm-unbuilt", name="planted")]
    for arm in suites.STATES:
        events += [on("mm-ran", arm=arm, category="cow", tests=1)]
        events += [on("mm", arm=arm, **fields)]
    return [
        *events,
        unload_event("on", clear="auto"),
        unload_event("streaming", clear="streaming"),
    ]


def stressed() -> list[Event]:
    return [
        on("soaked", process="stress-ng", code=0),
        on("soaked", process="device", binds=3, failed=0),
        on("soaked", process="folios", folios=3, wrong=0),
        on("soaked", process="copies", copies=8, wrong=0),
        on("soak", loads=2, turns=9),
        unload_event("on", memmap="on", clear="auto", copy="on", vmap="block"),
    ]


MM = scenario.find_scenario("upstream-mm").make(parts=("cow",))


@pytest.mark.parametrize(
    ("work", "events"),
    [(MM, mm_events()), (scenario.find_scenario("stress").make(), stressed())],
    ids=["mm", "stress"],
)
def test_one_thing_changed(work: Any, events: list[Event]) -> None:
    outcome = Outcome(events)
    assert failing(work, outcome) == set()
    judgelib.all_is_seen(work.name, work, outcome)
    assert work.facts(outcome)


def test_kexec_must_have_begun_the_kernel_again() -> None:
    work = scenario.find_scenario("coexist").make(parts=("fentry", suites.KEXEC))
    events = [on("start"), on("step", name="fentry"), on("start")]
    assert failing(work, Outcome(events)) == set()
    assert failing(work, Outcome(events[:2])) == {"every part was run"}


def test_a_test_that_is_flaky_by_itself_may_be_so_with_the_module() -> None:
    events = mm_events()
    again = [{**one, "verdict": "fail"} for one in events if one["event"] == "mm"]
    assert failing(MM, Outcome([*events, *again[:2]])) == set()
    # the first of each is the same
    assert failing(MM, Outcome([*events, again[1]])) == set()
    first = on("mm", arm="on")
    outcome = judgelib.changed(Outcome([*events, again[2]]), first, {"verdict": "fail"})
    assert failing(MM, outcome) == {"cow: cow"}


def test_without_the_module_no_test_of_the_kernel_may_fail() -> None:
    work = scenario.find_scenario("upstream-mm").make(parts=("cow",), arms=("absent",))
    events = [one for one in mm_events() if one.get("arm") in (None, "absent")]
    assert failing(work, Outcome(events)) == set()
    outcome = judgelib.changed(Outcome(events), on("mm"), {"verdict": "fail"})
    assert failing(work, outcome) == {"cow: cow", "tests passed"}


def test_a_test_of_the_kernel_that_skips_all_it_has_has_not_passed() -> None:
    idle = {"passed": 0, "skipped": 4}
    events = [one | idle if one["event"] == "mm" else one for one in mm_events()]
    assert failing(MM, Outcome(events)) == {"tests passed"}


def test_a_category_of_the_kernels_tests_must_have_run_one() -> None:
    events = [one for one in mm_events() if one["event"] != "mm"]
    wanted = {"tests passed", "every category was run"}
    assert failing(MM, Outcome(events)) == wanted
    older = [one | {"tests": 0} for one in events]
    assert failing(MM, Outcome(older)) == {"tests passed"}


def test_who_else_stamped() -> None:
    """With one CPU nobody has, whatever the guest says of itself."""
    event = unload_event("on", memmap="on")
    event["files"]["memmap/stats"] += "\nshared_bytes 9"
    for workers, wrong in ((1, True), (2, False)):
        work = scenario.find_scenario("pmem-fsdax-100g").make(workers=workers)
        assert (
            f"stamped by {workers} CPUs" in failing(work, Outcome([event]))
        ) is wrong


@pytest.mark.parametrize("refusals", [0, 1])
def test_a_process_without_a_folio_was_refused_some(refusals: int) -> None:
    process = on("soaked", process=1, folios=0, refused=refusals, wrong=0)
    soak = on("soak", turns=0, loads=0)
    failed = failing(scenario.find_scenario("clear-faults"), Outcome([process, soak]))
    assert ("every byte zero (process 1)" in failed) is not refusals


@pytest.mark.parametrize(
    ("name", "lacking", "skipped"),
    [
        ("a broken page", ["CONFIG_MEMORY_FAILURE"], ": skipped"),
        ("a broken page", ["CONFIG_MEMORY_FAILURE", ""], ""),
        ("a broken page", ["CONFIG_HUGETLBFS"], ""),
        ("bound to node 1", ["CONFIG_MEMORY_FAILURE"], ""),
    ],
)
def test_only_a_page_that_cannot_be_broken_is_skipped(
    name: str, lacking: list[str], skipped: str
) -> None:
    events = [on("start", release=RELEASE), on("zeroing", allocator="off")]
    events += [on("pool-held", bytes=0)]
    events += [on("pool-case", name="the rest of the file", error=1, wrong=0)]
    case = on("pool-case", name=name, faults=0)
    events += [{**case, "lacks": option} for option in lacking]
    work = scenario.find_scenario("populate-guest").make()
    checks = {check.name: check for check in work.checks(Outcome(events))}
    assert checks[f"library: {name}{skipped}"].ok is bool(skipped)
    if skipped:
        assert f"library: {name}" not in checks
        assert "lacks CONFIG_MEM" in checks[f"library: {name}{skipped}"].detail


@pytest.mark.parametrize(
    ("release", "way", "ok"),
    [
        ("6.1.0-56-cloud-amd64", "kvm-prefault", True),
        (RELEASE, "kvm-prefault", False),
        ("6.1.0-56-cloud-amd64", "kvm-run", False),
    ],
)
def test_only_what_a_kernel_cannot_do_is_skipped(
    release: str, way: str, *, ok: bool
) -> None:
    events = [on("start", release=release), on("brought", way=way, lacks="KVM_CAP_X")]
    work = scenario.find_scenario("clear-populate").make()
    checks = {check.name: check for check in work.judge(Outcome(events))}
    assert checks[f"{way}: skipped"].ok is ok
    assert "lacks KVM_CAP_X" in checks[f"{way}: skipped"].detail


def test_a_comparison_that_says_nothing_is_no_verdict() -> None:
    with pytest.raises(GuestError, match="the comparison said"):
        memmap.check_comparison(on("compare", label="last", verdict="?"))


@pytest.mark.parametrize(
    "declaration", SCENARIOS, ids=lambda declaration: declaration.name
)
def test_a_job_follows_the_seed_and_silence_fails(
    declaration: scenario.Scenario,
) -> None:
    seeds = [{"seed": n} if "seed" in declaration.takes else {} for n in (1, 1, 2)]
    first, repeat, reseeded = (declaration.make(**seed) for seed in seeds)
    modules = ["kvm", "vfio_iommu_type1"]
    assert first.job(modules) == repeat.job(modules)
    has_rounds = "rounds" in declaration.takes and declaration.name != "clear-latency"
    assert (first.job(modules) != reseeded.job(modules)) or not has_rounds
    start = on("start", release=RELEASE)
    events = [on("zeroing", allocator="off"), on("preemption", model="none")]
    events += [on("soak", turns=0, loads=0), on("pool-held", bytes=0)]
    events += [on("pool-case", name="the rest of the file", error=1, wrong=0)]
    if declaration.name != "stress":
        assert failing(first, Outcome([start, *events]))
    if "break_one_word" in declaration.takes:
        broken = declaration.make(break_one_word=True, **seeds[0])
        assert broken.job(modules) != first.job(modules)
