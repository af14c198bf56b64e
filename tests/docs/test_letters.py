# SPDX-License-Identifier: GPL-2.0-only
"""The tables of the cover letters are those of results/."""

from pathlib import Path

import letters
import pytest
from docpages import name_page
from letters import LETTERS

from bulkmm.results.model import Document

WITH_RESULT = [one for one in LETTERS if letters.has_result(one.read_text("utf-8"))]


def list_faults(letter: Path, text: str) -> list[str]:
    """Return what of a letter is not as its result has it."""
    file = letters.find_result(letter)
    document = Document.read(file)
    where = f"{file.parent.name}/{file.name}"
    rows, scenarios, faults = letters.format_rows(document), [], []
    for label, row in letters.read_rows(text).items():
        scenario = letters.SCENARIOS.get(label, f"no scenario in {letters.__file__}")
        scenarios.append(scenario)
        expected = rows.get(scenario, "nothing")
        if row != expected:
            faults.append(f"{label}: {row}, but {where} has {expected} ({scenario})")
    conditions = letters.format_conditions(document, scenarios)
    if conditions not in " ".join(text.split()):
        faults.append(f"the letter lacks, of {where}: {conditions}")
    return faults


@pytest.mark.parametrize("letter", WITH_RESULT, ids=name_page)
def test_a_letter_has_the_figures_of_its_result(letter: Path) -> None:
    text = letter.read_text("utf-8")
    assert letters.read_rows(text)
    faults = list_faults(letter, text)
    assert not faults, "\n".join([name_page(letter), *faults])


def test_a_letter_that_says_otherwise_is_seen() -> None:
    letter = WITH_RESULT[0]
    text = letter.read_text("utf-8")
    label, row = next(iter(letters.read_rows(text).items()))
    number = row.split()[0]
    for words, new_words, fault in (
        (f"{number} ", "0.01 ", f"{label}: {row.replace(number, '0.01', 1)}, but "),
        (label, "other", f"other: {row}, but "),
        ("% at most", "% at least", "the letter lacks, of "),
    ):
        faults = list_faults(letter, text.replace(words, new_words, 1))
        assert [line[: len(fault)] for line in faults] == [fault]
