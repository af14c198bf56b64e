# SPDX-License-Identifier: GPL-2.0-only
"""A zone's pageblocks, the likeliest looked at first: as if all were looked at."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
TESTED = ROOT / "module/hotplug_walk.c"
MODEL = ROOT / "tests/module/zonesim.c"
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]
CASES = 100_000
# PFNs of a pageblock and of a subsection; a section has 32
SIZES = ((8, 8), (8, 4), (16, 8), (32, 4))
BROKEN = (
    # not cut to the zone, at either end
    ("if (start < walk->start)", "if (0)"),
    ("if (end > walk->end)", "if (0)"),
    # looked at although it lies outside the zone
    ("walk->start <= pfn && ", ""),
    # "yes" for a zone that was not whole before
    ("change->was_contiguous && ", ""),
    # one block speaks for all
    ("return BMM_WALK_UNKNOWN", "return BMM_WALK_YES"),
)


@dataclass(frozen=True)
class Run:
    """What a run came to."""

    cases: int
    no: int
    yes: int
    unknown: int
    wrong: int
    looks: int  # at pageblocks, the most of any case


def compile_source(source: Path, to: Path) -> Path:
    command = ["cc", *FLAGS, f"-I{ROOT / 'module'}", str(source), str(MODEL)]
    subprocess.run([*command, "-o", str(to)], check=True)
    return to


def run_simulation(
    program: Path, seed: int, sizes: tuple[int, int], cases: int = CASES
) -> Run:
    argv = [str(program), *map(str, (seed, cases, *sizes))]
    result = run_program(argv, check=True)
    return Run(*map(int, result.stdout.split()))


@pytest.mark.parametrize("sizes", SIZES)
def test_no_answer_differs_from_that_of_the_whole_walk(
    tmp_path: Path, sizes: tuple[int, int]
) -> None:
    program = compile_source(TESTED, tmp_path / "zonesim")
    for seed in (1, 2, 3):
        outcome = run_simulation(program, seed, sizes)
        assert outcome.wrong == 0
        # both answers were given, and neither of them rarely
        assert outcome.cases >= CASES
        assert outcome.no > CASES / 10
        assert outcome.yes > CASES / 1000
        assert outcome.looks <= 3


@pytest.mark.parametrize("change", BROKEN)
def test_the_model_sees_what_is_broken(tmp_path: Path, change: tuple[str, str]) -> None:
    text = TESTED.read_text()
    assert text.count(change[0]) == 1
    broken = tmp_path / "broken.c"
    broken.write_text(text.replace(*change))
    outcome = run_simulation(compile_source(broken, tmp_path / "zonesim"), 1, (16, 8))
    assert outcome.wrong > 0
