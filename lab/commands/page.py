# SPDX-License-Identifier: GPL-2.0-only
"""Pages of which a command makes a part; what is around it is written by hand."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path

from bulkmm.shell import files

WIDTH = 100


def _between(label: str = "") -> re.Pattern[str]:
    """Return the pattern of what stands between marks with a label."""
    begin, end = (f"<!-- generated{label}: {mark} -->" for mark in ("begin", "end"))
    return re.compile(rf"(?<={begin}\n).*?(?={end})", re.DOTALL)


GENERATED = _between()


def read_part(file: Path, label: str = "") -> str:
    """Return what stands between the marks of a page; without marks, all of it."""
    text = ""
    if file.is_file():
        text = file.read_text(encoding="utf-8", errors=files.FOREIGN)
    part = _between(label).search(text) or GENERATED.search(text)
    return part[0] if part else text


def read_rows(markdown: str, headings: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of a table's heading, then of its rows.

    The table is the first one whose headings begin with these.
    """
    begin = f"| {' | '.join(headings)} |"
    lines = dropwhile(lambda line: not line.startswith(begin), markdown.splitlines())
    for number, line in enumerate(takewhile(lambda line: line.startswith("|"), lines)):
        if number != 1:  # the rule
            yield [cell.strip() for cell in line[1:-1].split("|")]


def wrap_text(text: str) -> list[str]:
    """Return the lines of a paragraph, of the page's width in bytes as well."""
    padded = "".join(letter.ljust(len(letter.encode()), "\0") for letter in text)
    lines = textwrap.wrap(padded, WIDTH, break_on_hyphens=False)
    return [line.replace("\0", "") for line in lines]


def write_page(file: Path, lines: Iterable[str], label: str = "") -> None:
    """Write lines to a file; in a page with the marks, between these.

    A page may have several parts: the one with the label, else the one without.
    """
    part = "\n".join(("", *lines))
    text = ""
    if file.is_file():
        text = file.read_text(encoding="utf-8", errors=files.FOREIGN)
    for pattern in (_between(label), GENERATED):
        page, marked = pattern.subn(lambda _: part, text)
        if marked:
            break
    files.write_file(file, page if marked else part, "the page")
