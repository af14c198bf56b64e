# SPDX-License-Identifier: GPL-2.0-only
"""The man pages: one for every function, which groff reads without a warning."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from corelib import ROOT
from installed import Installed, header_functions

PAGES = ["bulkmm", *header_functions()]


def groff(page: Path) -> str:
    """Return a page as text; every warning fails."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", page.name],
        check=True,
        capture_output=True,
        text=True,
        cwd=page.parent,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed(installed: Installed, name: str) -> None:
    page = installed.root / f"usr/local/share/man/man3/{name}.3"
    if link := re.fullmatch(r"\.so (man3/\w+\.3)\n", page.read_text()):
        page = page.parents[1] / link[1]
    text = groff(page)
    assert re.search(rf"^NAME\n\s+.*\b{name}\b", text, re.MULTILINE)
    assert "$(pkg-config --cflags --libs bulkmm)" in text
    assert name == "bulkmm" or re.search(rf"{name}\(\w", text)
    assert not {"@", "`"} & {*text}


def test_there_is_no_page_of_something_else(installed: Installed) -> None:
    pages = (installed.root / "usr/local/share/man/man3").iterdir()
    assert sorted(p.name for p in pages) == sorted(f"{name}.3" for name in PAGES)


def test_the_overview_names_all(installed: Installed) -> None:
    text = groff(installed.root / "usr/local/share/man/man3/bulkmm.3")
    for name in header_functions():
        assert f" {name}()\n" in text
    assert "BULKMM_CLEAR_STREAMING" in text


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("bmm_stamp() - ", "bmm_other() - ", "no kernel-doc comment for bmm_stamp"),
        ("bmm_stamp() - ", "bmm_stamp() ", "no 'name - purpose' in the comment"),
    ],
)
def test_a_comment_that_makes_no_page_is_one_line(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    sources = [*ROOT.glob("core/*.c"), *ROOT.glob("lib/**/*.c")]
    text = "".join(file.read_text() for file in sources)
    assert old in text
    (tmp_path / "all.c").write_text(text.replace(old, new))
    script = [sys.executable, ROOT / "scripts/manpages.py", ROOT / "core/bulkmm.h"]
    done = subprocess.run(
        [*script, tmp_path / "all.c", "--out", tmp_path],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("manpages: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
