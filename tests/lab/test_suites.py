# SPDX-License-Identifier: GPL-2.0-only
"""The suites: what the guest is told, and how what it says is judged."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import suites as suitespage
from lablib import passed

from bulkmm.errors import BulkmmError
from bulkmm.lab import matrix, paths, scenario
from bulkmm.lab.families import suites
from bulkmm.lab.machine import arch, root, vm
from bulkmm.lab.machine import suites as programs_of_mm
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.progress import Progress
from bulkmm.results import Check, Document

GUEST = Path(__file__).parents[2] / "lab" / "guest"
NAMES = (suites.COEXIST, suites.ODD, suites.STRESS, suites.MM)


def work(name: str, **chosen: Any) -> Any:
    one = scenario.find(name)
    seed = {"seed": 1} if "seed" in one.takes else {}
    return one.make(**{**seed, **chosen})


def failing(one: suites.Work, events: list[dict[str, Any]]) -> set[str]:
    checks = one.checks(Outcome(lambda _event: None, events))
    return {check.name for check in checks if not check.ok}


def verdict(arm: str, said: str = "pass", **more: Any) -> dict[str, Any]:
    return {
        "event": "mm",
        "arm": arm,
        "category": "cow",
        "attempt": 1,
        "name": "cow",
        "verdict": said,
        "passed": 3,
        "failed": 0,
        "skipped": 1,
        **more,
    }


def ran(arm: str) -> dict[str, Any]:
    return {"event": "mm-ran", "arm": arm, "category": "cow", "seconds": 1}


def hits(arm: str, path: str = "clear", many: int = 1) -> dict[str, Any]:
    return {"event": "suite-hits", "arm": arm, "path": path, "hits": many}


def good_mm(*more: dict[str, Any]) -> list[dict[str, Any]]:
    events = [ran(arm) for arm in suites.STATES]
    events += [hits(arm) for arm in suites.STATES[1:]]
    return [*events, *(more or (verdict(arm) for arm in suites.STATES))]


COW = work(suites.MM, parts=("cow",))


def test_equal_verdicts_hold() -> None:
    assert not failing(COW, good_mm())


@pytest.mark.parametrize(
    "other",
    [
        {"said": "fail"},
        {"said": "late"},
        {"said": "skip"},
        {"passed": 2},
        {"failed": 1},
        {"skipped": 0},
    ],
)
@pytest.mark.parametrize("arm", suites.STATES[1:])
def test_another_verdict_fails(arm: str, other: dict[str, Any]) -> None:
    said = (verdict(one, **other if one == arm else {}) for one in suites.STATES)
    assert failing(COW, good_mm(*said)) == {"cow: cow"}


def test_a_test_that_is_missing_fails() -> None:
    said = (verdict(one) for one in suites.STATES[:2])
    assert failing(COW, good_mm(*said)) == {"cow: cow"}


def test_flaky_by_itself_only_if_it_is_so_without_the_module() -> None:
    alone = [verdict("absent"), verdict("absent", "fail")]
    said = [verdict("on", "fail"), verdict("streaming")]
    assert not failing(COW, good_mm(*alone, *said))
    said = [verdict("on", "skip"), verdict("streaming")]
    assert failing(COW, good_mm(*alone, *said)) == {"cow: cow"}
    said = [verdict("absent"), verdict("on", "fail"), verdict("streaming")]
    again = [verdict(arm) for arm in suites.STATES]
    assert failing(COW, good_mm(*said, *again)) == {"cow: cow"}


def test_a_test_that_never_ends_is_no_pass() -> None:
    said = [verdict(one, "late", passed=n) for n, one in enumerate(suites.STATES)]
    assert failing(COW, good_mm(*said)) == {"tests passed"}


def test_paths_must_have_been_used() -> None:
    events = [e for e in good_mm() if e != hits("streaming")]
    assert failing(COW, events) == {"huge pages were served meanwhile"}


def test_a_category_that_was_not_run_fails() -> None:
    events = [e for e in good_mm() if e != ran("on")]
    assert failing(COW, events) == {"every category was run"}


@pytest.fixture
def built() -> Iterator[Callable[..., Path]]:
    """Return what builds programs as those of mm are built."""
    progress = Progress()
    with ExitStack() as stack:
        made = root.ensure(stack.enter_context(paths.locked(progress)), progress)
        source = stack.enter_context(vm.run_directory(made, keep=False))

        def build(**programs: str) -> Path:
            tests, to = source / programs_of_mm.SELFTESTS / "mm", source / "to"
            shutil.rmtree(to, ignore_errors=True)
            to.mkdir()
            tests.mkdir(parents=True, exist_ok=True)
            (tests / "Makefile").write_text(MAKEFILE.format(" ".join(programs)))
            for name, text in programs.items():
                (tests / f"{name}.c").write_text(text)
            kernel = Kernel(made, "planted")
            programs_of_mm._build_mm(kernel, source, made.path, to)
            return to

        yield build


MAKEFILE = """\
TEST_GEN_FILES := $(patsubst %,$(OUTPUT)/%,{})
all: $(TEST_GEN_FILES)
$(OUTPUT)/%: %.c
\t$(CC) $< -o $@
"""
SOUND, PLANTED = "int main(void) { return 0; }\n", "int main(void) { return NONE; }\n"


@pytest.mark.lab
def test_what_does_not_build_is_skipped_in_every_state(
    built: Callable[..., Path],
) -> None:
    to = built(planted=PLANTED, sound=SOUND)
    assert {one.name for one in to.iterdir()} == {
        *("sound", "sound.test", "planted", programs_of_mm.UNBUILT)
    }
    assert (to / programs_of_mm.UNBUILT).read_text() == "planted\n"
    skipped = 4  # to the kernel's runner
    assert subprocess.run([to / "planted"], check=False).returncode == skipped
    said = (verdict(arm, "skip") for arm in suites.STATES)
    left = {"event": "mm-unbuilt", "name": "planted"}
    events = [*good_mm(), *said, left]
    checks = COW.checks(Outcome(lambda _event: None, events))
    assert "planted does not build" in [check.name for check in checks if check.ok]


@pytest.mark.lab
def test_it_is_an_error_if_nothing_builds(built: Callable[..., Path]) -> None:
    with pytest.raises(BulkmmError, match=r"do not build for planted(.|\n)*NONE"):
        built(planted=PLANTED)


RUNNER = """TAP version 13
# running ./cow
# ok 1 private
# not ok 2 shared
# ok 3 pinned # SKIP no such
ok 1 cow
# ok 1 a
not ok 2 merge -s 2 # exit=1
ok 3 gup_test -u # SKIP
not ok 4 thp # exit=124
# SUMMARY: PASS=1 SKIP=1 FAIL=1
"""
PARSED = """pass 1 1 1 cow
fail 1 0 0 merge -s 2
skip 0 0 0 gup_test -u
late 0 0 0 thp
"""


def test_what_the_runner_says_is_understood() -> None:
    script = f". {GUEST}/upstream_mm.sh; mm_parse"
    done = subprocess.run(
        ["sh", "-c", script],
        input=RUNNER,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == PARSED


def test_parts_are_run_in_their_own_order() -> None:
    one = work(suites.COEXIST, parts=("kexec", "fentry"))
    assert one.job([]).splitlines()[-1] == "coexist fentry kexec"
    assert work(suites.COEXIST).parts[-1] == suites.KEXEC


def test_a_part_that_did_not_end_fails() -> None:
    one = work(suites.COEXIST, parts=("fentry", "kexec"))
    step, start = {"event": "step", "name": "fentry"}, {"event": "start"}
    assert not failing(one, [start, step, start])
    assert failing(one, [start, step]) == {"every part was run"}
    assert failing(one, [start, start]) == {"every part was run"}


def test_a_check_of_the_guest_that_failed_fails() -> None:
    one = work(suites.COEXIST, parts=("knob",))
    events = [{"event": "step", "name": "knob"}]
    said = {"event": "check", "name": "a", "ok": "no", "detail": ""}
    assert failing(one, [*events, said]) == {"a"}


def test_layouts_are_odd_and_fit() -> None:
    seen = set()
    for seed in range(20):
        one = work(suites.ODD, seed=seed)
        assert one.layouts == work(suites.ODD, seed=seed).layouts
        for _, words in one.layouts:
            sizes = [int(word.split(",")[3]) for word in words]
            seen |= {word.rpartition(",")[0] for word in words}
            assert 3 <= len(words) <= suites.MOST
            assert sum(sizes) < one.pmem
            assert not any(size % suites.STEP for size in sizes)
    assert seen == {",".join(kind) for kind in suites.KINDS}


def compared(words: int = 0) -> dict[str, Any]:
    said = f"pages=9 words_differ={words} pageblocks_differ=0 first_pfn=1 first_word=1"
    return {"event": "compare", "label": "l", "verdict": f"{said} was=1 is=2"}


def test_odd_namespaces_are_all_compared_and_served() -> None:
    one = work(suites.ODD, rounds=1)
    many = len(one.layouts[0][1])
    counters = {"event": "counters", "hits": many**2}
    good = [*(compared() for _ in range(many)), counters]
    assert not failing(one, good)
    assert failing(one, good[1:]) == {"every namespace was compared"}
    assert failing(one, [*good[:-1], counters | {"hits": 1}]) == {"served in ranges"}
    wrong = failing(one, [compared(1), *good[1:]])
    assert wrong == {"struct pages identical (l)"}


def test_stress_must_have_used_every_path() -> None:
    one = work(suites.STRESS)
    stress = {"event": "stress", "loads": 2, "turns": 1, "binds": 1}
    used = [hits("on", path) | {"inflight": 0} for path in ("memmap", "clear", "vmap")]
    assert not failing(one, [stress, *used])
    assert failing(one, [stress, *used[1:]]) == {"paths were used meanwhile"}
    once = stress | {"loads": 1}
    assert failing(one, [once, *used]) == {"loaded more than once"}


@pytest.mark.parametrize("name", NAMES)
def test_the_matrix_has_every_suite_on_both_kernels(name: str) -> None:
    cells = [c for c in matrix.cells() if c.scenario == name]
    where = {(c.arch, c.kernel) for c in cells}
    assert where == {(arch.X86_64.name, kernel) for kernel in arch.X86_64.series}


@pytest.mark.vm
def test_other_users_of_a_function(tmp_path: Path) -> None:
    parts = ("fentry", "livepatch", "knob")
    words = [word for part in parts for word in ("--part", part)]
    passed(tmp_path, suites.COEXIST, "--kernel", "7.3", *words)


@pytest.mark.vm
def test_odd_namespaces(tmp_path: Path) -> None:
    words = ("--kernel", "6.12", "--rounds", "1", "--seed", "6")
    seen = passed(tmp_path, suites.ODD, *words)
    assert len([c for c in seen["checks"] if "identical" in c["name"]]) == 3


def result(kernel: str, **tests: suites.Attempts) -> Document:
    document = Document(machine={"accelerator": "TCG"})
    document.checks = [Check("a", ok=True, detail=""), Check("b", ok=False, detail="")]
    document.run = {"scenario": suites.MM, "kernel": kernel, "seconds": 9.4}
    document.run["tests"] = tests
    return document


def test_the_page_has_every_test_of_every_kernel() -> None:
    same = {arm: ["pass, 1 passed"] for arm in suites.STATES}
    other = same | {"on": ["fail"]}
    page = suitespage.page([result("7", a=same), result("6", b=other)])
    assert "| 7 | TCG, 9 s | FAILED 1 of 2 |" in page
    assert "| test | 6 | 7 |\n" in page
    assert "| `a` | has none | pass, 1 passed |\n" in page
    assert "| `b` | **differs**: absent: pass" in page


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(BulkmmError, match="no result is of a suite"):
        suitespage.page([])
