# SPDX-License-Identifier: GPL-2.0-only
"""The man pages: one for every function, well formed, and what makes them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from corelib import ROOT
from installed import Installed, header_functions

PAGES = ["bulkmm", *header_functions()]
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION"]

HEADER = r"""/* made up */
/*
 * tiny.h - a library
 *
 * It does things - often.
 *
 * Ordering. None \ at all.
 */
int bmm_one(const char *a,
            int b)
        BMM_ATTR(BMM_MUST_CHECK, BMM_NONNULL(1));
void bmm_two(void) BMM_ATTR();

void bmm_three(void);

int bmm_environment_error(void);
"""
SOURCE = r"""
/**
 * bmm_one() - do it
 * @a: a pointer,
 *     or NULL
 * @b: -1 or 2^8; 'x' and ~y
 *
 * .dots and \fBslashes\fP stay. Then bmm_three().
 *
 * Return: 0, or -BMM_EINVAL for a bad @b.
 */
/**
 * bmm_two() - do it again
 */
/**
 * bmm_three() - end
 *
 * Return: never.
 */
/**
 * bmm_environment_error() - variables
 *
 * TINY is read.
 */
"""


def groff(page: Path) -> tuple[str, str]:
    """Return a page as text, and every warning."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", page.name],
        check=True,
        capture_output=True,
        text=True,
        cwd=page.parent,
    )
    return done.stdout, done.stderr


def generate(at: Path, header: str, source: str) -> subprocess.CompletedProcess[str]:
    """Make pages of these texts."""
    files = {"tiny.h": header, "core.c": source}
    for name, text in files.items():
        (at / name).write_text(text)
    script = ROOT / "scripts" / "manpages.py"
    return subprocess.run(
        [sys.executable, script, "--version", "9.9", *files],
        check=False,
        capture_output=True,
        text=True,
        cwd=at,
    )


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed(installed: Installed, name: str) -> None:
    page = installed.root / f"usr/local/share/man/man3/{name}.3"
    if link := re.fullmatch(r"\.so (man3/\w+\.3)\n", page.read_text()):
        page = page.parents[1] / link[1]
    text, warnings = groff(page)
    assert warnings == ""
    titles = re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)
    assert titles[:3] == SECTIONS
    assert titles[-2:] == ["ATTRIBUTES", "SEE ALSO"]
    assert re.search(rf"^NAME\n\s+.*\b{name}\b", text, re.MULTILINE)
    assert "#include <bulkmm.h>" in text
    assert "$(pkg-config --cflags --libs bulkmm)" in text
    assert name == "bulkmm" or re.search(rf"{name}\(\w", text)
    assert "@" not in text


def test_there_is_no_page_of_something_else(installed: Installed) -> None:
    pages = (installed.root / "usr/local/share/man/man3").iterdir()
    assert sorted(p.name for p in pages) == sorted(f"{name}.3" for name in PAGES)


def test_the_overview_names_all(installed: Installed) -> None:
    text, _ = groff(installed.root / "usr/local/share/man/man3/bulkmm.3")
    for name in header_functions():
        assert re.search(rf"^ +{name}\(\)$", text, re.MULTILINE)
    for part in ("ORDERING", "ENVIRONMENT", "BULKMM_CLEAR_STREAMING", "MT-Safe"):
        assert part in text
    assert re.search(r"struct bmm_image {\n +uint32_t size;\n", text)


def test_comments_become_a_page(tmp_path: Path) -> None:
    assert generate(tmp_path, HEADER, SOURCE).returncode == 0
    text, warnings = groff(tmp_path / "bmm_one.3")
    assert warnings == ""
    assert "bmm_one, bmm_two - do it; do it again" in text
    assert re.search(r"int bmm_one\(const char \*a,\n +int b\);\n", text)
    assert "BMM_ATTR" not in text
    assert re.search(r"a +a pointer, or NULL\n", text)
    assert re.search(r"b +-1 or 2\^8; 'x' and ~y\n", text)
    assert r".dots and \fBslashes\fP stay. Then bmm_three()." in text
    assert re.search(r"bmm_one\(\)\n +0, or a negative error number\.\n", text)
    assert re.search(r"BMM_EINVAL, bmm_one\(\)\n +For a bad b\.\n", text)
    assert "bmm_three(3), bulkmm(3)" in text
    assert (tmp_path / "bmm_two.3").read_text() == ".so man3/bmm_one.3\n"
    text, _ = groff(tmp_path / "bmm_three.3")
    assert "ERRORS" not in text
    assert "bmm_one(3), bulkmm(3)" in text
    text, warnings = groff(tmp_path / "bulkmm.3")
    assert warnings == ""
    assert "It does things - often." in text
    assert re.search(r"^ORDERING\n +None \\ at all\.$", text, re.MULTILINE)
    assert "TINY is read." in text


@pytest.mark.parametrize(
    ("header", "source", "says"),
    [
        (HEADER, SOURCE.replace("bmm_two", "bmm_2"), "no kernel-doc comment for bmm_t"),
        (HEADER, SOURCE.replace(" - end", ""), "no 'name - purpose' in the comment"),
        (HEADER, SOURCE.replace("0, or", "0 or"), "bmm_one: not '0, or -BMM_E"),
        (HEADER.replace(" - a lib", ""), SOURCE, "tiny.h: no comment that begins"),
    ],
)
def test_a_comment_that_makes_no_page_is_one_line(
    tmp_path: Path, header: str, source: str, says: str
) -> None:
    done = generate(tmp_path, header, source)
    assert done.returncode == 1
    assert done.stderr.startswith("manpages: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
