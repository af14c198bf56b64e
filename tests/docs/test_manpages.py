# SPDX-License-Identifier: GPL-2.0-only
"""Man pages of section 3 describe all public functions, parameters and types."""

import re
from pathlib import Path

import manpages
import pytest
from docpages import BOOK, ROOT

HEADERS = [ROOT / "core/bulkmm.h", ROOT / "lib/bulkmm-populate.h"]
SOURCES = [*HEADERS, *(ROOT / "core").rglob("*.c"), *(ROOT / "lib").rglob("*.c")]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return manpages.make_pages(SOURCES)


def test_every_exported_function_has_a_page(pages: dict[str, str]) -> None:
    exports = (ROOT / "lib/libbulkmm.map").read_text()
    functions = {*re.findall(r"^\t(bmm_\w+);", exports, re.MULTILINE)}
    assert functions == pages.keys() - {manpages.OVERVIEW}
    names = [re.findall(r"\w+", text.splitlines()[2].split(" - ")[0])
             for text in pages.values() if text]  # fmt: skip
    assert [name for group in names for name in group] == [*pages]


def test_parameters_and_types_are_described(pages: dict[str, str]) -> None:
    header = manpages.read_header(HEADERS)
    for prototypes in manpages.group_prototypes(header):
        text = pages[next(iter(prototypes))]
        for prototype in prototypes.values():
            assert prototype in text
            for parameter in re.findall(r"(\w+)[,)]", prototype.replace("(void)", "")):
                assert f"\n- `{parameter}`: " in text
    types = re.findall(r"^(?:struct|enum) (\w+) \{", header, re.MULTILINE)
    assert types == re.findall(r"^### (\w+)", pages[manpages.OVERVIEW], re.MULTILINE)


def test_a_function_without_a_comment_is_refused(tmp_path: Path) -> None:
    header = tmp_path / "bulkmm.h"
    header.write_text(f"{HEADERS[0].read_text()}\nint bmm_bare(void);\n")
    with pytest.raises(manpages.SourceError, match="bmm_bare"):
        manpages.make_pages([header, *SOURCES[1:]])


def test_a_page_of_the_book_says_where_a_man_page_is() -> None:
    """Who reads it on the web has no man command."""
    for page in (ROOT / "README.md", *BOOK):
        for paragraph in page.read_text().split("\n\n"):
            if re.search(r"\bb(?:ulk)?mm\w*\(3\)", paragraph):
                assert re.search(r"#man-pages\)|bulkmm\.h\)", paragraph), paragraph


def test_the_written_pages(tmp_path: Path) -> None:
    shared = {"a": "## NAME\n\na, b - x\n\n## SEE_ALSO\n\n**c**(3)\n", "b": ""}
    manpages.write_pages(shared, "1.2", tmp_path)
    text = (tmp_path / "a.3").read_text()
    assert '.TH A 3 "" "bulkmm 1.2"' in text
    assert ".SH SEE ALSO\n\\fBc\\fP(3)" in text
    assert (tmp_path / "b.3").read_text() == ".so man3/a.3\n"
