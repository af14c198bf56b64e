# SPDX-License-Identifier: GPL-2.0-only
"""The suites: how their programs are built, their results read and shown."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import suites as suitespage

from bulkmm.errors import BulkmmError
from bulkmm.lab import paths
from bulkmm.lab.families import suites
from bulkmm.lab.machine import root, vm
from bulkmm.lab.machine import suites as programs_of_mm
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.progress import Progress
from bulkmm.results import Check, Document

GUEST = Path(__file__).parents[2] / "lab" / "guest"


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
