# SPDX-License-Identifier: GPL-2.0-only
"""Unit tests of the patches: reading KTAP, judging it, and a kernel that runs them."""

import re
from pathlib import Path

import judgelib
import lablib
import pytest
from judgelib import DROP, Event, failing, on

from bulkmm.control import requirements
from lab import scenario
from lab.machine import kernel_kinds, kernels
from lab.machine.arch import ARM64, X86_64
from lab.machine.kernel_kinds import Kind
from lab.machine.ktap import FAILED, PASSED, SKIPPED, Case, read_cases
from lab.machine.suites import FORK
from lab.machine.vm import Outcome
from lab.scenario import base, patched

STATES = ("state ", "clear_state ", "each_backend ")
# as /sys/kernel/debug/kunit/SUITE/results has it
KTAP = """\
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
    assert read(KTAP) == WHOLE


def test_lines_before_the_report_are_of_no_case() -> None:
    assert read(f"ok 1 booted\n\n{KTAP}") == WHOLE
    assert read("") == []
    assert read("ok 1 booted\n") == []


def test_a_group_without_a_plan_ends_with_its_result() -> None:
    """That of 6.12's cases with parameters."""
    assert read(KTAP.replace("        1..2\n", "")) == WHOLE


def test_a_failed_case_tells_why() -> None:
    why = "    # cold: EXPECTATION FAILED at mm/a.c:7\n    Expected a == b\n"
    text = KTAP.replace("    ok 3 cold", f"{why}    not ok 3 cold")
    text = text.replace("ok 1 shapes", "not ok 1 shapes")
    detail = "cold: EXPECTATION FAILED at mm/a.c:7; Expected a == b"
    assert failed(text) == {"shapes: cold": detail}


def test_a_group_that_fails_by_itself() -> None:
    text = KTAP.replace("    ok 1 every_order", "    not ok 1 every_order")
    assert [*failed(text)] == ["shapes: every_order"]
    assert [*failed(KTAP.replace("\nok 1 shapes", "\nnot ok 1 shapes"))] == ["shapes"]


def test_a_suite_that_is_skipped() -> None:
    text = "KTAP version 1\n1..1\nok 1 shapes # SKIP no memory\n"
    assert read(text) == [Case("shapes", SKIPPED, "no memory")]


def test_a_suite_that_does_not_begin() -> None:
    """What it plans is missing."""
    lines = KTAP.splitlines()
    text = "\n".join([*lines[:5], "# failed to initialize (-12)", "not ok 1 shapes"])
    assert failed(text)["shapes: all cases"] == "0 of 3 reported"


def test_a_missing_case() -> None:
    text = KTAP.replace("        ok 2 order 9, altmap\n", "")
    assert failed(text) == {"shapes: every_order: all cases": "1 of 2 reported"}
    text = KTAP.replace("    ok 2 hot # SKIP no device\n", "")
    assert failed(text) == {"shapes: all cases": "3 follows 1"}


@pytest.mark.parametrize("count", range(2, len(KTAP.splitlines())))
def test_a_truncated_report_fails(count: int) -> None:
    lines = KTAP.splitlines()[:count]
    assert any(case.verdict == FAILED for case in read_cases(lines))


@pytest.fixture
def kind() -> Kind:
    """Return a kind whose patches have tests."""
    return next(kind for kind in kernel_kinds.KINDS if kind.suites)


def reports(kind: Kind) -> list[Event]:
    events = [on("start", release=kind.release("7.3.4+deb13"))]
    for suite in kind.suites:
        lines = KTAP.replace("shapes", suite).splitlines()
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
    start = on("start", release=kind.release("7.3.4+deb13"))
    attaching = {"clear", "alloc"} if kind.arch is ARM64 else set()
    hooks = {
        path: refusals
        if kind.patched and path not in attaching
        else patched.OTHERWISE[path]
        for path, refusals in patched.REFUSALS.items()
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


# a definition that becomes a symbol, in assembler or in C
DEFINITION = re.compile(
    r"^\+(?:SYM_FUNC_START\((\w+)\)|(?!static\b)\w[\w *]*\b(\w+)\([^;{]*\)\n\+\{)$",
    re.MULTILINE,
)


def list_defined(kind: Kind) -> set[str]:
    """Return the functions that the patches of a kernel define."""
    text = "".join(map(kernel_kinds.read_changes, kind.patches))
    return {name for names in DEFINITION.findall(text) for name in names if name}


@pytest.mark.parametrize("kind", kernel_kinds.KINDS, ids=kernel_kinds.NAMES)
def test_the_patches_define_what_keeps_a_path_off(kind: Kind) -> None:
    defined = list_defined(kind)
    paths = requirements.read_table(kind.arch.name).paths
    kept_off = {path.name for path in paths if defined & {*path.without_functions}}
    expected = {"memmap"} if kind.patched else set()
    assert kept_off == expected | ({"clear", "alloc"} if kind.replaces_clear else set())


def test_no_function_keeps_a_path_off_that_no_patch_defines() -> None:
    defined = set().union(*map(list_defined, kernel_kinds.KINDS))
    for arch in (X86_64, ARM64):
        for path in requirements.read_table(arch.name).paths:
            assert {*path.without_functions} <= defined


@pytest.mark.parametrize("kind", kernel_kinds.KINDS, ids=kernel_kinds.NAMES)
def test_the_kernels_own_tests_use_clear_unless_the_patches_clear(kind: Kind) -> None:
    work = scenario.find_scenario("upstream-mm").make()
    outcome = Outcome([on("start", release=kind.release("7.3.4+deb13"))])
    checks = {check.name: check.ok for check in work.checks(outcome)}
    # nothing was served
    expected = (
        {"huge pages were left to the patches": True}
        if kind.replaces_clear
        else {"huge pages were served meanwhile": False}
    )
    assert expected.items() <= checks.items()


def test_waits_with_clear_off_force_no_backend() -> None:
    work = scenario.find_scenario("clear-latency").make(arms=("off",))
    states = {line for line in work.lines() if line.startswith(STATES)}
    assert states == {"state off clear=off", "state absent"}
    assert not {"traced", "bounds"} & {line.split()[0] for line in work.lines()}
    late = on("late", arm="off", kib=2048, way="write-middle", late_samples=9)
    outcome = Outcome([on("preemption", model="none"), late])
    assert failing(work, outcome) == set()


LEAKY = "past the caches, a touch after it in them"
WHOLE_PAGES = patched.FOLIOS * patched.HUGE_PAGES


def report_ways(*, anonymous: int = 1, shared: int = 1) -> list[Event]:
    """Return reports of every way, and how often each kind was cleared."""
    turns = {"tmpfs": shared, "hugetlb": 1}
    return [
        on(
            "nt-clears",
            kind=kind,
            way=way,
            pages=0
            if way in patched.TOUCHING
            else turns.get(kind, anonymous) * WHOLE_PAGES,
            **patched.EXPECTED_HUGE.get(kind, {}),
        )
        for kind, ways in patched.WAYS.items()
        for way in ways
    ]


def prepare_judge(
    events: list[Event], *, release: str = "7.3.4", allocator: str = "off"
) -> tuple[scenario.Scenario, Outcome]:
    begin = [on("start", release=release), on("zeroing", allocator=allocator)]
    work = scenario.find_scenario("clear-patched").make()
    return work, Outcome([*begin, *events])


def test_what_is_populated_is_cleared_past_the_caches() -> None:
    work, outcome = prepare_judge(report_ways())
    assert failing(work, outcome) == set()
    for way, pages, check in (
        ("fallocate", 0, f"hugetlb fallocate: {LEAKY}"),
        ("io-uring", WHOLE_PAGES - 512, f"pinned io-uring: {LEAKY}"),
        ("memfd", 512, "hugetlb memfd: in the caches"),
        ("shared-touch", WHOLE_PAGES, "tmpfs shared-touch: in the caches"),
        ("udmabuf", 0, f"tmpfs udmabuf: {LEAKY}"),
    ):
        changed = judgelib.changed(outcome, on(way=way), on(pages=pages))
        assert failing(work, changed) == {check}
    missing = judgelib.changed(outcome, on(way="mlock"), DROP)
    assert failing(work, missing) == {base.WHOLE}


@pytest.mark.parametrize(
    "way",
    ["mlock", "mprotect-locked", patched.BRK_LOCKED, "io-uring", "udmabuf"],
)
def test_a_touch_after_populating_is_cleared_in_the_caches(way: str) -> None:
    """Else the task still says that it populates."""
    work, outcome = prepare_judge(report_ways())
    leaked = judgelib.changed(outcome, on(way=way), on(pages=2 * WHOLE_PAGES))
    (check,) = failing(work, leaked)
    assert check.endswith(f" {way}: {LEAKY}")
    late = judgelib.changed(outcome, on(way="fallocate-refused"), on(pages=WHOLE_PAGES))
    assert failing(work, late) == {"refused fallocate-refused: in the caches"}


@pytest.mark.parametrize("way", patched.WAYS["hugetlb"])
def test_a_process_touches_after_it_populates(way: str) -> None:
    lines = scenario.find_scenario("clear-patched").make().lines()
    start = f"count_nt_clears hugetlb {way} "
    (line,) = (one for one in lines if one.startswith(start))
    assert line.endswith(f" -n 8 -b 4 hugetlb 2048 {way} write-first")


def test_small_pages_prove_nothing() -> None:
    """They are cleared in the caches whoever asks for them."""
    work, outcome = prepare_judge(report_ways())
    for way, few in (
        ("touch", {"anonymous": 0}),
        ("write-first", {"anonymous": 7}),
        ("shared-touch", {"shared": 0}),
        ("udmabuf", {"anonymous": 0}),
        ("fallocate-refused", {"anonymous": 0}),
    ):
        changed = judgelib.changed(outcome, on(way=way), few)
        (check,) = (one for one in work.checks(changed) if not one.ok)
        assert check.name.endswith(f" {way}: huge pages")
        (name,) = few
        assert f"{name} {few[name]} of " in check.detail


@pytest.mark.parametrize(
    ("release", "anonymous"), [("6.12.117", 2), ("7.3.4", 1)], ids=["6.12", "7.3"]
)
def test_what_the_allocator_clears_is_cleared_again(
    release: str, anonymous: int
) -> None:
    once = report_ways()
    twice = report_ways(anonymous=anonymous, shared=2)
    work, outcome = prepare_judge(once, release=release)
    assert failing(work, outcome) == set()
    work, outcome = prepare_judge(twice, release=release, allocator="on")
    assert failing(work, outcome) == set()
    work, outcome = prepare_judge(once, release=release, allocator="on")
    kinds = {check.split()[0] for check in failing(work, outcome)}
    assert kinds == {"tmpfs", *(("thp", "pinned") if anonymous == 2 else ())}


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
