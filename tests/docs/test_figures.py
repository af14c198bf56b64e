# SPDX-License-Identifier: GPL-2.0-only
"""Native figures: the pages are in step with results/."""

from pathlib import Path

import figures
import pytest
from docpages import name

from bulkmm import machine
from bulkmm.results import Document
from bulkmm.worth import gain

SAID = "is not what results/ says now: run scripts/figures.py"
LARGEST = 1 << 20  # bytes of a CPU's result, in a repository that is cloned


def test_the_pages_are_in_step_with_the_results() -> None:
    held = figures.results()
    for file, make in ((figures.PAGE, figures.page), (figures.README, figures.readme)):
        text = file.read_text()
        assert text == make(text, held), f"{name(file)} {SAID}"
    assert gain.KEPT.read_text() == figures.ratios(held), f"ratios.json {SAID}"


@pytest.mark.parametrize("file", sorted(figures.RESULTS.glob("*/*")), ids=name)
def test_a_result_is_of_the_cpu_of_its_folder(file: Path) -> None:
    held = Document.read(file)
    assert machine.cpu_name(held.machine["cpu"]) == file.parent.name
    assert file.stat().st_size < LARGEST
    assert not held.failed
