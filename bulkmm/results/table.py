# SPDX-License-Identifier: GPL-2.0-only
"""A table of text: on the screen, as Markdown, and in report/page.html."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

WIDTH = 100  # if the output is not a terminal


@dataclass(frozen=True)
class Table:
    """Headings and rows; a row of one cell is a subheading."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[str] = ()  # headings of right-aligned columns

    def markdown(self) -> list[str]:
        """Return it as lines of Markdown, followed by an empty line."""
        rule = ("--:" if name in self.numbers else "---" for name in self.headings)
        rows = (row if len(row) > 1 else [f"**{row[0]}**"] for row in self.rows)
        first, *rest = (f"| {' | '.join(row)} |" for row in (self.headings, *rows))
        return [first, f"|{'|'.join(rule)}|", *rest, ""]

    def print(self, console: Console | None = None) -> None:
        """Print it, as wide as the terminal or WIDTH."""
        import rich.table
        from rich import box
        from rich.text import Text

        table = rich.table.Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        for i, name in enumerate(self.headings):
            # A long variant name may be broken at hyphens.
            right = name in self.numbers
            heading = Text(name.replace("-", "-\n") if right and i else name)
            at: Literal["left", "right"] = "right" if right else "left"
            table.add_column(heading, justify=at, no_wrap=not i, overflow="fold")
        for row in self.rows:
            if len(row) == 1 and table.rows:
                table.rows[-1].end_section = True
            style = "bold" if len(row) == 1 else ""
            table.add_row(*(Text(cell, style) for cell in row))
        make_console(console).print(table)


def make_console(console: Console | None = None) -> Console:
    """Return the console for tables, as wide as the terminal or WIDTH."""
    from rich.console import Console

    console = console or Console()
    if not console.is_terminal and console.width < WIDTH:
        console.width = WIDTH
    return console


def print_lines(lines: Iterable[str], console: Console | None = None) -> None:
    """Print lines above or below a table."""
    console = make_console(console)
    for line in lines:
        console.print(line, markup=False, highlight=False)
