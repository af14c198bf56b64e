# SPDX-License-Identifier: GPL-2.0-only
"""The suites: how their programs are built, their results read."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lablib import lock_root
from programs import run_program

from bulkmm.shell.errors import BulkmmError
from lab.machine import suites as programs_of_mm
from lab.machine import vm
from lab.machine.kernels import Kernel

GUEST = Path(__file__).parents[2] / "lab" / "guest"


@pytest.fixture
def build_programs() -> Iterator[Callable[..., Path]]:
    """Return what builds programs as those of mm are built."""
    with lock_root() as lab_root, vm.run_directory(lab_root) as source:

        def build(**programs: str) -> Path:
            tests, to = source / programs_of_mm.SELFTESTS / "mm", source / "to"
            shutil.rmtree(to, ignore_errors=True)
            to.mkdir()
            tests.mkdir(parents=True, exist_ok=True)
            (tests / "Makefile").write_text(MAKEFILE.format(" ".join(programs)))
            for name, text in programs.items():
                (tests / f"{name}.c").write_text(text)
            kernel = Kernel(lab_root, "planted-amd64")
            programs_of_mm._build_mm(kernel, source, lab_root.path, to)
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
    build_programs: Callable[..., Path],
) -> None:
    to = build_programs(planted=PLANTED, sound=SOUND)
    assert {one.name for one in to.iterdir()} == {
        *("sound", "sound.test", "planted", programs_of_mm.UNBUILT)
    }
    assert (to / programs_of_mm.UNBUILT).read_text() == "planted\n"
    skipped = 4  # to the kernel's runner
    assert subprocess.run([to / "planted"], check=False).returncode == skipped


@pytest.mark.lab
def test_it_is_an_error_if_nothing_builds(build_programs: Callable[..., Path]) -> None:
    with pytest.raises(BulkmmError, match=r"do not build for planted-amd64(.|\n)*NONE"):
        build_programs(planted=PLANTED)


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
    result = run_program(["sh", "-c", script], input=RUNNER, check=True, timeout=30)
    assert result.stdout == PARSED
