# SPDX-License-Identifier: GPL-2.0-only
"""A table of text: on the screen, as Markdown, and in report/page.html."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Literal

from bulkmm.shell.width import measure_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console


@dataclass(frozen=True)
class Table:
    """Headings and rows; a row of one cell is a subheading."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[str] = ()  # headings of right-aligned columns
    keys: int = 1  # the first columns, which tell rows apart
    brief: Table | None = None  # printed where no row of this one fits a line

    def markdown(self) -> list[str]:
        """Return it as lines of Markdown, followed by an empty line."""
        rule = ("--:" if name in self.numbers else "---" for name in self.headings)
        rows = (row if len(row) > 1 else [f"**{row[0]}**"] for row in self.rows)
        first, *rest = (f"| {' | '.join(row)} |" for row in (self.headings, *rows))
        return [first, f"|{'|'.join(rule)}|", *rest, ""]

    def drop_empty(self) -> Table:
        """Return it without columns in which no row has anything."""
        whole = [row for row in self.rows if row[1:]]
        columns = [
            i
            for i in range(len(self.headings))
            if i < self.keys or not whole or any(row[i] for row in whole)
        ]
        rows = [[row[i] for i in columns] if row[1:] else row for row in self.rows]
        return replace(self, headings=[self.headings[i] for i in columns], rows=rows)

    def print(self, console: Console | None = None) -> None:
        """Print it, as wide as the console: in parts, if no cell can be wrapped more.

        Words are never cut.
        """
        console = console or make_console()
        if self.brief and not self.fits(console.width):
            self.brief.print(console)
            return
        for i, part in enumerate(self._split_columns(console.width)):
            if i:
                console.print()
            part._print_part(console)  # noqa: SLF001 - of the same class

    def fits(self, width: int) -> bool:
        """Return whether each row fits a line."""
        columns = zip(*(row for row in self.rows if row[1:]), strict=True)
        widths = [max(map(len, cells)) for cells in columns]
        return sum(widths) + len(widths) - 1 <= width

    def _split_columns(self, width: int) -> Iterator[Table]:
        """Yield tables with as many columns as fit each; all have the keys."""
        columns = range(len(self.headings))
        least = [self._measure_column(i, r"\s+") for i in columns]
        keys = [*columns[: self.keys]]
        beside = width - sum(least[i] + 1 for i in keys) + 1
        parts, room = [[*keys]], beside
        for i in columns[self.keys :]:
            if least[i] >= room and len(parts[-1]) > self.keys:
                parts.append([*keys])
                room = beside
            parts[-1].append(i)
            room -= least[i] + 1
        for part in parts:
            rows = [[row[i] for i in part] if row[1:] else row for row in self.rows]
            yield Table([self.headings[i] for i in part], rows, self.numbers)

    def _measure_column(self, i: int, separator: str) -> int:
        """Return the length of the longest text between separators of a column."""
        rows = [row for row in self.rows if i < len(row) and (row[1:] or not i)]
        texts = [self._break_heading(i), *(row[i] for row in rows)]
        return max(len(word) for text in texts for word in re.split(separator, text))

    def _break_heading(self, i: int) -> str:
        """Return a heading; a long variant's, above numbers, is broken at hyphens."""
        name = self.headings[i]
        return name.replace("-", "-\n") if i and name in self.numbers else name

    def _choose_widths(self, width: int) -> list[int]:
        """Return the columns' widths: wrapped first is what makes the fewest lines."""
        columns = range(len(self.headings))
        widths = [self._measure_column(i, "\n") for i in columns]
        least = [self._measure_column(i, r"\s+") for i in columns]
        rows = [row for row in self.rows if row[1:]]
        lengths = [[len(row[i]) or 1 for row in rows] for i in columns]
        while (over := sum(widths) + len(widths) - 1 - width) > 0 and widths != least:

            def price(step: tuple[int, int], over: int = over) -> tuple[float, int]:
                i, narrow = step
                lines = sum(-(-n // narrow) + n // -widths[i] for n in lengths[i])
                return lines / min(over, widths[i] - narrow), -widths[i]

            steps = ((i, n) for i in columns for n in range(least[i], widths[i]))
            i, narrow = min(steps, key=price)
            widths[i] = max(narrow, widths[i] - over)
        return widths

    def _print_part(self, console: Console) -> None:
        import rich.table
        from rich import box
        from rich.text import Text

        table = rich.table.Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        for i, width in enumerate(self._choose_widths(console.width)):
            number = i and self.headings[i] in self.numbers
            at: Literal["left", "right"] = "right" if number else "left"
            table.add_column(Text(self._break_heading(i)), justify=at, width=width)
        for row in self.rows:
            if len(row) == 1 and table.rows:
                table.rows[-1].end_section = True
            style = "bold" if len(row) == 1 else ""
            table.add_row(*(Text(cell, style) for cell in row))
        console.print(table)


def make_console() -> Console:
    """Return the console for tables, as wide as the terminal, if it is one."""
    from rich.console import Console

    return Console(width=measure_width())


def print_lines(lines: Iterable[str], console: Console | None = None) -> None:
    """Print lines above or below a table."""
    console = console or make_console()
    wrap = TextWrapper(console.width, break_long_words=False, break_on_hyphens=False)
    for line in lines:
        # not by the console, which cuts a word that is longer than a line: a path
        for part in wrap.wrap(line) or [""]:
            console.print(part, markup=False, highlight=False, soft_wrap=True)
