# SPDX-License-Identifier: GPL-2.0-only
"""The book as a whole: its contents, its links, its version."""

import re
from pathlib import Path

import pytest
from docpages import BOOK, FENCED, PAGES, ROOT, name_page

from lab.commands.page import WIDTH
from lab.scenario import SCENARIOS

CONTENTS = ROOT / "docs" / "README.md"
TESTS = [*(ROOT / "tests").rglob("*.py")]
SOURCE = r"[\w./-]+\.(?:c|h|S|py|sh|mk|def)"
REFERENCE = re.compile(rf"`({SOURCE}): ([^`]+)`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def list_links(page: Path) -> list[str]:
    """Return where a page leads."""
    return LINK.findall(FENCED.sub("", page.read_text()))


def list_anchors(page: Path) -> set[str]:
    """Return the names that a page's headings have, as Git forges make them."""
    titles = HEADING.findall(FENCED.sub("", page.read_text()))
    plain = (re.sub(r"[^\w\- ]", "", title.strip().lower()) for title in titles)
    return {title.replace(" ", "-") for title in plain}


def test_the_contents_name_every_page() -> None:
    files = {path.name for path in (ROOT / "docs").iterdir()} - {CONTENTS.name}
    assert {link for link in list_links(CONTENTS) if "/" not in link} == files


@pytest.mark.parametrize("page", BOOK, ids=name_page)
def test_functions_are_where_a_page_says(page: Path) -> None:
    for file, names in REFERENCE.findall(" ".join(page.read_text().split())):
        text = (ROOT / file).read_text()
        missing = {
            n for n in re.findall(r"\w+", names) if not re.search(rf"\b{n}\b", text)
        }
        assert not missing, file


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_links_lead_somewhere(page: Path) -> None:
    for link in list_links(page):
        file, _, anchor = link.partition("#")
        to = page.parent / file if file else page
        assert "://" not in link, link
        assert to.is_file(), link
        assert not anchor or anchor in list_anchors(to), link


def test_the_changes_begin_with_this_version() -> None:
    text = (ROOT / "CHANGES.md").read_text()
    versions = re.findall(r"^## (\S+)$", text, re.MULTILINE)
    log = (ROOT / "debian/changelog").read_text()
    released = re.findall(r"^bulkmm \((\S+)\)", log, re.MULTILINE)
    assert versions == released


@pytest.mark.parametrize("scenario", [one.name for one in SCENARIOS])
def test_a_scenario_is_in_the_table(scenario: str) -> None:
    page = (ROOT / "docs" / "lab.md").read_text()
    table = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert f"`{scenario}`" in " ".join(table)


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_a_line_fits_the_page(page: Path) -> None:
    """In bytes, but for a table's rows and for rules that a command prints."""
    lines = page.read_text().splitlines()
    lines = [line for line in lines if not line.startswith(("|", RULE))]
    assert [line for line in lines if len(line.encode()) > WIDTH] == []


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_no_page_knows_a_machine(page: Path) -> None:
    """Nobody else has these directories."""
    assert not re.search(r"(?<![\w.])/(?:root|home|work|tmp)/", page.read_text())


def test_what_security_names_as_proof_is_there() -> None:
    """Tests, and the files that they are in."""
    page = (ROOT / "docs" / "security.md").read_text()
    files = {path.relative_to(ROOT / "tests") for path in TESTS}
    functions = re.findall(r"\bdef (test_\w+)", "".join(map(Path.read_text, TESTS)))
    assert {*map(Path, re.findall(r"`(\w+/test_\w+\.py)`", page))} <= files
    assert {*re.findall(r"`(test_\w+)`", page)} <= {*functions}
