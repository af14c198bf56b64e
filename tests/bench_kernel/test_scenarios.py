# SPDX-License-Identifier: GPL-2.0-only
"""The names of scenarios, which are refused before any work."""

import argparse
import json
from pathlib import Path

import pytest

from bench.kernel import run, scenarios
from bulkmm import cli
from bulkmm.shell.errors import UsageError

ROOT = Path(__file__).parents[2]
SUBJECTS = (*scenarios.SOURCES,)


def test_every_scenario_of_kept_results_is_known() -> None:
    files = sorted((ROOT / "results").glob("*/kernel-*.json"))
    rows = [row for file in files for row in json.loads(file.read_text())["results"]]
    names = {row["scenario"] for row in rows}
    assert len(names) > len(run.QUICK)
    scenarios.check_scenarios([*names, *run.QUICK], SUBJECTS)


def test_two_kernels_are_compared_in_all_subjects() -> None:
    args = argparse.Namespace(subject="all", against="base")
    assert {*run.list_subjects(args)} == {*scenarios.SOURCES}


def test_every_line_of_the_sources_is_read() -> None:
    """A line of another form would make a scenario that nobody can name."""
    for subject, file in scenarios.SOURCES.items():
        lines = (scenarios.FOLDER / file).read_text().splitlines()
        begins = ('\t{ "', "\tDEVICE(", "\tadd(&list")
        rows = [line for line in lines if line.startswith(begins)]
        assert len(scenarios.list_scenarios(subject)) == len(rows) > 1, subject


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("thp-2m-populat", "did you mean thp-2m-populate?"),
        ("hugetlb-4m", "did you mean hugetlb-2m?"),
        ("pmem-devdax-2g-map-men", "did you mean pmem-devdax-100g-map-mem?"),
        ("hotplug-block", "did you mean hotplug-block-128m?"),
    ],
)
def test_an_unknown_one_is_refused(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        scenarios.check_scenarios([name], SUBJECTS)
    assert str(refusal.value).startswith(f"unknown scenario {name}: {hint}")
    with pytest.raises(UsageError, match="unknown copy scenario thp-2m: "):
        scenarios.check_scenarios(["thp-2m"], ["copy"])


def test_help_lists_them_all_and_cuts_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "kernel", "--help"]) == 0
    words = {word.strip(",;") for word in capsys.readouterr().out.split()}
    for subject in scenarios.SOURCES:
        assert words >= {*scenarios.list_scenarios(subject)}
