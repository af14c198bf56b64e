# SPDX-License-Identifier: GPL-2.0-only
"""Unit tests of the patches: reading KTAP, judging it, and a kernel that runs them."""

from pathlib import Path

import judgelib
import lablib
import pytest
from judgelib import DROP, Event, failing, on

from lab import scenario
from lab.machine import kernel_kinds, kernels
from lab.machine.kernel_kinds import Kind
from lab.machine.ktap import FAILED, PASSED, SKIPPED, Case, read_cases
from lab.machine.suites import FORK
from lab.machine.vm import Outcome
from lab.scenario import base, patched

STATES = ("state ", "clear_state ", "each_backend ")
# as /sys/kernel/debug/kunit/SUITE/results has it
NESTED = """\
KTAP version 1
1..1
    KTAP version 1
    # Subtest: shapes
    1..3
        KTAP version 1
        # Subtest: every_order
        1..2
        ok 1 order 1
        ok 2 order 9, altmap
    # every_order: pass:2 fail:0 skip:0 total:2
    ok 1 every_order
    ok 2 hot # SKIP no device
    ok 3 cold
# shapes: pass:2 fail:0 skip:1 total:3
ok 1 shapes
"""
WHOLE = [
    Case("shapes: every_order: order 1", PASSED),
    Case("shapes: every_order: order 9, altmap", PASSED),
    Case("shapes: hot", SKIPPED, "no device"),
    Case("shapes: cold", PASSED),
]


def read(text: str) -> list[Case]:
    return read_cases(text.splitlines())


def failed(text: str) -> dict[str, str]:
    return {case.name: case.detail for case in read(text) if case.verdict == FAILED}


def test_cases_of_groups() -> None:
    assert read(NESTED) == WHOLE


def test_lines_before_the_report_are_of_no_case() -> None:
    assert read(f"ok 1 booted\n\n{NESTED}") == WHOLE
    assert read("") == []
    assert read("ok 1 booted\n") == []


def test_a_group_without_a_plan_ends_with_its_result() -> None:
    """That of 6.12's cases with parameters."""
    assert read(NESTED.replace("        1..2\n", "")) == WHOLE


def test_a_failed_case_tells_why() -> None:
    why = "    # cold: EXPECTATION FAILED at mm/a.c:7\n    Expected a == b\n"
    text = NESTED.replace("    ok 3 cold", f"{why}    not ok 3 cold")
    text = text.replace("ok 1 shapes", "not ok 1 shapes")
    detail = "cold: EXPECTATION FAILED at mm/a.c:7; Expected a == b"
    assert failed(text) == {"shapes: cold": detail}


def test_a_group_that_fails_by_itself() -> None:
    text = NESTED.replace("    ok 1 every_order", "    not ok 1 every_order")
    assert [*failed(text)] == ["shapes: every_order"]
    assert [*failed(NESTED.replace("\nok 1 shapes", "\nnot ok 1 shapes"))] == ["shapes"]


def test_a_suite_that_is_skipped() -> None:
    text = "KTAP version 1\n1..1\nok 1 shapes # SKIP no memory\n"
    assert read(text) == [Case("shapes", SKIPPED, "no memory")]


def test_a_suite_that_does_not_begin() -> None:
    """What it plans is missing."""
    lines = NESTED.splitlines()
    text = "\n".join([*lines[:5], "# failed to initialize (-12)", "not ok 1 shapes"])
    assert failed(text)["shapes: all cases"] == "0 of 3 reported"


def test_a_missing_case() -> None:
    text = NESTED.replace("        ok 2 order 9, altmap\n", "")
    assert failed(text) == {"shapes: every_order: all cases": "1 of 2 reported"}
    text = NESTED.replace("    ok 2 hot # SKIP no device\n", "")
    assert failed(text) == {"shapes: all cases": "3 follows 1"}


@pytest.mark.parametrize("count", range(2, len(NESTED.splitlines())))
def test_a_truncated_report_fails(count: int) -> None:
    lines = NESTED.splitlines()[:count]
    assert any(case.verdict == FAILED for case in read_cases(lines))


@pytest.fixture
def kind() -> Kind:
    """Return a kind whose patches have tests."""
    return next(kind for kind in kernel_kinds.KINDS if kind.suites)


def reports(kind: Kind) -> list[Event]:
    events = [on("start", release=kind.release("7.3.4+deb13"))]
    for suite in kind.suites:
        lines = NESTED.replace("shapes", suite).splitlines()
        events += [on("kunit", suite=suite, line=line) for line in lines]
    return events


def test_every_suite_of_the_patches_is_judged(kind: Kind) -> None:
    work, outcome = scenario.find_scenario("kunit").make(), Outcome(reports(kind))
    assert failing(work, outcome) == set()
    assert len(work.facts(outcome)["tests"]) == len(WHOLE) * len(kind.suites)
    for suite in kind.suites:
        missing = judgelib.changed(outcome, on(suite=suite), DROP)
        assert failing(work, missing) == {f"{suite}: cases passed"}
        line = on(suite=suite, line="    ok 3 cold")
        broken = judgelib.changed(outcome, line, on(line="    not ok 3 cold"))
        assert failing(work, broken) == {f"{suite}: cold"}
        truncated = judgelib.changed(outcome, on(line=f"ok 1 {suite}"), DROP)
        assert failing(work, truncated)


def test_a_suite_that_only_skips_has_shown_nothing(kind: Kind) -> None:
    work, (start, *_) = scenario.find_scenario("kunit").make(), reports(kind)
    lines = ("KTAP version 1", "1..1", "ok 1 all # SKIP no memory")
    events = [on("kunit", suite=name, line=li) for name in kind.suites for li in lines]
    names = {f"{name}: cases passed" for name in kind.suites}
    assert failing(work, Outcome([start, *events])) == names


def test_a_kernel_without_tests_passes_none() -> None:
    base = kernel_kinds.find_kind("base")
    assert base
    outcome = Outcome([on("start", release=base.release("7.3.4+deb13"))])
    work = scenario.find_scenario("kunit").make()
    assert failing(work, outcome) == {"the patches have tests"}


@pytest.mark.parametrize(
    "name",
    ["pmem-fsdax-100g", "pmem-devdax-100g", "thp-2m", "hugetlb-2m", "vmap-check"],
)
def test_a_scenario_without_the_module(name: str) -> None:
    """It brings the kernel into no other state, and has the proof that it can fail."""
    declaration = scenario.find_scenario(name)
    jobs = [declaration.make(arms=arms, seed=1).job([]) for arms in ((), ("absent",))]
    states = [
        {line for line in job.splitlines() if line.startswith(STATES)} for job in jobs
    ]
    assert states[1] == {"state absent"} < states[0]
    assert "planted" in jobs[1] or "flip\n" in jobs[1]


TAP = "TAP version 13\n1..2\nok 1 2048 kB\nok 2 1048576 kB\n# Totals: pass:2 fail:0\n"
MISSED = "# 96 of 100 children lack the page\nnot ok 2"


@pytest.mark.parametrize("name", [*kernel_kinds.PATCHED, *kernel_kinds.BASES])
def test_pages_are_lost_by_fork_unless_patched(name: str) -> None:
    kind = kernel_kinds.find_kind(name)
    assert kind
    assert FORK in "".join(patch.read_text() for patch in kind.test_patches)
    work = scenario.find_scenario("hugetlb-fork").make()
    start = on("start", release=kind.release("7.3.4+deb13"))
    texts = [TAP.replace("ok 2", MISSED), TAP]
    if kind.patched:
        texts.reverse()
    good, bad = (
        Outcome([start, *(on("selftest", line=line) for line in text.splitlines())])
        for text in texts
    )
    assert failing(work, good) == set()
    assert len(failing(work, bad)) == 1
    silent = {"pages of 1 GiB were tried"}
    assert failing(work, Outcome([start])) == silent


@pytest.mark.parametrize("kind", kernel_kinds.KINDS, ids=kernel_kinds.NAMES)
def test_a_path_attaches_unless_its_series_is_there(kind: Kind) -> None:
    work = scenario.find_scenario("hook-patched").make()
    series = {patch.parent.name for patch in kind.patches}
    start = on("start", release=kind.release("7.3.4+deb13"))
    hooks = {
        path: (patched.REFUSALS if path in series else patched.OTHERWISE)[path]
        for path in patched.REFUSALS
    }
    events = [
        on("patched-hook", path=path, errno=errors[0], says="")
        for path, errors in hooks.items()
    ]
    outcome = Outcome([start, *events])
    assert failing(work, outcome) == set()
    for path, errors in hooks.items():
        changed = judgelib.changed(outcome, on(path=path), on(errno="-16"))
        assert failing(work, changed) == {f"{path}: {' or '.join(errors)}"}
        missing = judgelib.changed(outcome, on(path=path), DROP)
        assert failing(work, missing) == {f"{path}: {' or '.join(errors)}"}


def test_what_is_populated_is_cleared_past_the_caches() -> None:
    work = scenario.find_scenario("clear-patched").make()
    whole = patched.FOLIOS * patched.HUGE_PAGES
    events = [
        on("past", kind=kind, way=way, pages=0 if way in patched.TOUCHING else whole)
        for kind, ways in patched.POPULATED.items()
        for way in ways
    ]
    outcome = Outcome([on("start", release="7.3.4"), *events])
    assert failing(work, outcome) == set()
    for way, pages, check in (
        ("fallocate", 0, "hugetlb fallocate: past the caches"),
        ("io-uring", whole - 512, "pinned io-uring: past the caches"),
        ("memfd", 512, "hugetlb memfd: in the caches"),
        ("mlock", 2 * whole, "pinned mlock: past the caches"),
        ("shared-touch", whole, "tmpfs shared-touch: in the caches"),
        ("udmabuf", 0, "tmpfs udmabuf: past the caches"),
    ):
        changed = judgelib.changed(outcome, on(way=way), on(pages=pages))
        assert failing(work, changed) == {check}
    missing = judgelib.changed(outcome, on(way="mlock"), DROP)
    assert failing(work, missing) == {base.WHOLE}


@pytest.mark.parametrize("release", ["6.12.117", "7.3.4"])
def test_tmpfs_clears_again_what_the_allocator_has(release: str) -> None:
    whole = patched.FOLIOS * patched.HUGE_PAGES
    start = on("start", release=release)
    check = "tmpfs udmabuf: past the caches"
    for init_on_alloc, turns in ((0, 1), (1, 2)):
        work = scenario.find_scenario("clear-patched").make(init_on_alloc=init_on_alloc)
        for wrong in (turns - 1, turns + 1):
            event = on("past", kind="tmpfs", way="udmabuf", pages=wrong * whole)
            assert check in failing(work, Outcome([start, event]))
        event = on("past", kind="tmpfs", way="udmabuf", pages=turns * whole)
        assert check not in failing(work, Outcome([start, event]))


def test_6_12_clears_twice_where_the_allocator_does() -> None:
    whole = patched.FOLIOS * patched.HUGE_PAGES
    ways = [("thp", "map-populate"), ("pinned", "mlock"), ("hugetlb", "fallocate")]
    events = [on("past", kind=kind, way=way, pages=whole) for kind, way in ways]
    once = Outcome([on("start", release="6.12.117"), *events])
    twice = judgelib.changed(once, on(kind="thp"), on(pages=2 * whole))
    twice = judgelib.changed(twice, on(kind="pinned"), on(pages=2 * whole))
    anonymous = {"thp map-populate: past the caches", "pinned mlock: past the caches"}
    for init_on_alloc, wrong, right in ((0, twice, once), (1, once, twice)):
        work = scenario.find_scenario("clear-patched").make(init_on_alloc=init_on_alloc)
        assert failing(work, wrong) == {base.WHOLE, *anonymous}
        assert failing(work, right) == {base.WHOLE}


@pytest.mark.vm
@pytest.mark.release  # the kernel is built for minutes
@pytest.mark.parametrize("name", kernel_kinds.PATCHED)
def test_the_patches_pass_their_tests(name: str, tmp_path: Path) -> None:
    arch = kernel_kinds.KINDS[kernel_kinds.NAMES.index(name)].arch
    options = ("--kernel", name, "--arch", arch.name)
    run = lablib.passed(tmp_path, "kunit", *options)["run"]
    assert run["tests"]
    for scenario_name in ("hook-patched", "hugetlb-fork", "clear-patched"):
        kernel = kernels.read_name(name, arch)
        if scenario.find_scenario(scenario_name).runs_on(kernel):
            lablib.passed(tmp_path, scenario_name, *options)
