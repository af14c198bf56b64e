# SPDX-License-Identifier: GPL-2.0-only
"""The words that docs/contributing.md rules out are nowhere in the tree."""

import re
import subprocess

import pytest
from docpages import ROOT

TABLE = ROOT / "docs" / "contributing.md"
# Pages, help, messages, comments.
SUFFIXES = {".md", ".py", ".c", ".h", ".S", ".sh", ".toml", ".json", ".hpp", ".rs"}
SUFFIXES |= {".html"}  # the report
LEFT_OUT = ("docs/contributing.md", "tests/docs/test_language.py", "docs/api.md")
FORMS = (
    r"\btaken over\b|\btakes? (?:a|no|the|its|that) \w+(?: \w+)? over\b",
    r"\bleft to the kernel\b|\bleaves (?:it|them|this) to the kernel\b",
    r"\bby the range\b",
    r"\baround the cache\b",
    r"\banew\b",
    r"\btwo looks\b|\blooks? at (?:a|the) clock\b|\b(?:is|are) dear\b",
    r"\bstands once\b",
    r"\bdoes with (?:those|one)\b",
    r"\bfor who\b|\bwho minds\b|\bWho starts\b",
    r"\bone must not sleep\b",
    r"\btelephone\b",
    r"\bnothing to mend\b",
)
BAD = re.compile("|".join(FORMS))
MARKS = re.compile(r'^[\s"*#/]+|"$')  # of comments and strings that go on


def tracked() -> list[str]:
    """Return the files of the tree that have language in them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout.split()
    named = [name for name in listed if name not in LEFT_OUT]
    files = [name for name in named if (ROOT / name).suffix in SUFFIXES]
    return [name for name in files if (ROOT / name).is_file()]


def text_of(name: str) -> str:
    """Return a file on one line, so that a phrase is found across two."""
    lines = (ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines()
    return " ".join(" ".join(MARKS.sub("", line) for line in lines).split())


def test_no_phrase_that_reads_as_translated() -> None:
    found = [
        f"{name}: {bad[0]}" for name in tracked() for bad in BAD.finditer(text_of(name))
    ]
    assert found == []


def quoted() -> list[str]:
    """Return what the table's left column quotes."""
    page = TABLE.read_text(encoding="utf-8")
    rows = re.findall(r'^\| (".*?) \|', page, re.MULTILINE)
    return [word for row in rows for word in re.findall(r'"([^"]+)"', row)]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_in_the_table(form: str) -> None:
    assert any(re.search(form, phrase) for phrase in quoted())
