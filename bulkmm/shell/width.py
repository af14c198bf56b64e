# SPDX-License-Identifier: GPL-2.0-only
"""How wide text is, and lines that are wrapped to it."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable

WIDTH = 100  # of a terminal that does not know its own
INDENT = "  "


def measure_width() -> int:
    """Return COLUMNS, or the columns of the terminal.

    Output to a pipe or a file is not wrapped: grep finds whole lines.
    """
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return shutil.get_terminal_size((WIDTH, 0)).columns
    return sys.maxsize


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
