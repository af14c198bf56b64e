# SPDX-License-Identifier: GPL-2.0-only
"""How wide text is, and lines that are wrapped to it."""

import shutil
import textwrap
from collections.abc import Iterable

WIDTH = 100  # if the output is not a terminal
INDENT = "  "


def measure_width() -> int:
    """Return the columns of the terminal, or COLUMNS, or WIDTH."""
    return shutil.get_terminal_size((WIDTH, 0)).columns


def wrap_line(line: str, indent: str | None = None) -> list[str]:
    """Return a line as lines of the terminal; words are never cut.

    All but the first have an indent: by default, deeper than the first.
    """
    if indent is None:
        indent = " " * (len(line) - len(line.lstrip())) + INDENT
    width = measure_width()
    if len(line) <= width:
        return [line]
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap_lines(lines: Iterable[str]) -> list[str]:
    """Return lines as lines of the terminal."""
    return [part for line in lines for part in wrap_line(line)]
