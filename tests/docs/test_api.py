# SPDX-License-Identifier: GPL-2.0-only
"""docs/api.md is what its script writes now, and says all that the sources say."""

import re

import apipage
import manpages
import pytest
from docpages import ROOT

PAGE = ROOT / "docs" / "api.md"
HEADER = (ROOT / "core" / "bulkmm.h").read_text()


def test_the_page_is_the_one_that_the_script_writes() -> None:
    said = "docs/api.md is not what the sources say now: run scripts/apipage.py"
    assert PAGE.read_text() == apipage.made(), said


@pytest.mark.parametrize("name", manpages.declared(HEADER)[1])
def test_a_function_is_described(name: str) -> None:
    page = PAGE.read_text()
    assert re.search(rf"^### .*\b{name}\(\)", page, re.MULTILINE)
    assert re.search(rf"^[a-z].*\b{name}\(", page, re.MULTILINE)
    assert f"\n| `{name}()` | " in page


@pytest.mark.parametrize(
    ("comment", "markdown"),
    [
        ("@dst * @len->size, 1 << @n", r"`dst` \* `len->size`, 1 \<\< `n`"),
        ("bmm_drain() of -BMM_EINVAL", "`bmm_drain()` of `-BMM_EINVAL`"),
        ("BULKMM_CLEAR is read", "`BULKMM_CLEAR` is read"),
        ("a_b stays, 2^64 too", "a_b stays, 2^64 too"),
    ],
)
def test_comments_become_markdown(comment: str, markdown: str) -> None:
    assert apipage.prose(comment) == markdown


def test_a_source_that_cannot_be_read_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apipage, "CORE", ROOT / "none")
    monkeypatch.setattr("sys.argv", ["apipage"])
    with pytest.raises(SystemExit, match=r"^apipage: "):
        apipage.main()
