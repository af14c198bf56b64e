# SPDX-License-Identifier: GPL-2.0-only
"""docs/api.md is what its script writes now, and says all that the sources say."""

import re

import apipage
from docpages import ROOT

PAGE = ROOT / "docs" / "api.md"


def test_the_page_is_the_one_that_the_script_writes() -> None:
    said = "docs/api.md is not what the sources say now: run scripts/apipage.py"
    assert PAGE.read_text() == apipage.made(), said


def test_every_exported_function_is_described() -> None:
    page = PAGE.read_text()
    exported = {
        *re.findall(
            r"^\t(bmm_\w+);", (ROOT / "lib/libbulkmm.map").read_text(), re.MULTILINE
        )
    }
    headings = "".join(re.findall(r"^### .*", page, re.MULTILINE))
    assert exported == {*re.findall(r"bmm_\w+(?=\()", headings)}
