# SPDX-License-Identifier: GPL-2.0-only
"""docs/api.md is what its script writes now, and says all that the sources say."""

import re

import apipage
import pytest
from docpages import ROOT

PAGE = ROOT / "docs" / "api.md"
HEADER = (ROOT / "core" / "bulkmm.h").read_text()


def test_the_page_is_the_one_that_the_script_writes() -> None:
    said = "docs/api.md is not what the sources say now: run scripts/apipage.py"
    assert PAGE.read_text() == apipage.made(), said


NAMES = [apipage.name_of(one) for some in apipage.declared(HEADER) for one in some]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_described(name: str) -> None:
    page = PAGE.read_text()
    assert re.search(rf"^### .*\b{name}\(\)", page, re.MULTILINE)
    assert re.search(rf"^[a-z].*\b{name}\(", page, re.MULTILINE)
    assert f"\n| `{name}()` | " in page
