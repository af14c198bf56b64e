# SPDX-License-Identifier: GPL-2.0-only
"""What pages claim about kernels is what module/compat/kernels.mk lists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from docpages import BOOK, ROOT

from bulkmm.control import requirements

TESTED = {
    series
    for arch in ("x86_64", "arm64")
    for series in requirements.read_table(arch).tested
}
# of kernels, not of figures: 6.12, but neither 6.12 ms nor 6.12.107
UNIT = " ?(?:[GMK]i?B|[m\u00b5n]?s|times|%|\u00d7)"
NUMBER = rf"(?<![\w.,/-])[5-9]\.\d{{1,2}}(?!\w|\.?\d|{UNIT})"
SERIES = re.compile(NUMBER)
RANGE = re.compile(f"{NUMBER} ?(?:to|through|-|\u2013|\u2026) ?{NUMBER}")
KERNEL = re.compile(r"\b(?:Linux|[Kk]ernels?|[Ss]eries)\b")
CLAIM = re.compile(
    r"\b(?:tested|tried|supports?|supported|builds? for|built for|loads? into|runs on|"
    r"works on|for Debian's)\b"
)
DENIAL = re.compile(r"\b(?:not|no|refuse\w*|other|before|since|none|would|rules out)\b")
UNIVERSAL = re.compile(
    r"\b(?:every|each|all|any) (?:kernels?|series|releases?|flavours?) "
    r"(?:images? )?(?:of|in|from) Debian"
)
OFFERED = re.compile(r"^Kernels: (\d+) of (\d+) offered", re.MULTILINE)


def list_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, with their quotes and cells, as one line each."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n(?=- |\| )", text):
        line = " ".join(paragraph.replace("\n> ", "\n").split())
        yield from re.split(r"(?<=[.;])\s", line)


def list_contradictions(text: str) -> list[str]:
    """Return the sentences that claim more kernels than the list has."""
    return [
        sentence
        for sentence in list_sentences(text)
        if (KERNEL.search(sentence) and RANGE.search(sentence))
        or UNIVERSAL.search(sentence)
        or (
            CLAIM.search(sentence)
            and not DENIAL.search(sentence)
            and {*SERIES.findall(sentence)} - TESTED
        )
    ]


@pytest.mark.parametrize("page", [ROOT / "README.md", *BOOK], ids=lambda p: p.name)
def test_no_page_claims_a_kernel_that_is_not_listed(page: Path) -> None:
    text = page.read_text("utf-8")
    run, offered = OFFERED.findall((ROOT / "docs/kernels.md").read_text("utf-8"))[0]
    contradictions = list_contradictions(text)
    if run == offered:
        contradictions = [x for x in contradictions if not UNIVERSAL.search(x)]
    assert contradictions == []


@pytest.mark.parametrize(
    ("sentence", "contradicts"),
    [
        ("It is tested on Linux 6.8.", True),
        ("> **Status:** for Debian's 6.1, 6.12,\n> 6.17 and 7.3 kernels.", True),
        ("| a | the module loads into 7.0 |\n", True),
        ("Any kernel from 6.1 to 7.3 will do.", True),
        ("on [every kernel of Debian's archive](kernels.md)", True),
        ("or the newest of each series of Debian's archive", True),
        (f"It is tested on Linux {', '.join(sorted(TESTED))}.", False),
        ("The module does not build for 6.8.", False),
        ("Kernels tested took 6.1 to 7.3 times as long: 6.8 ms.", False),
    ],
)
def test_a_claim_is_told_from_other_words(sentence: str, *, contradicts: bool) -> None:
    assert bool(list_contradictions(sentence)) is contradicts


def test_limits_name_every_series() -> None:
    text = " ".join((ROOT / "docs/limits.md").read_text("utf-8").split())
    tested = text.partition("tested are stock Debian kernels")[2].partition(". ")[0]
    assert {*SERIES.findall(tested)} == TESTED
