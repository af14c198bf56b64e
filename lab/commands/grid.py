# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts by scenario and kernel, as a table that later runs add to."""

from collections.abc import Iterator

from bulkmm.control import requirements
from bulkmm.results.table import Table
from lab.commands import page
from lab.machine import arch as archs
from lab.machine import kernel_kinds, kernels
from lab.scenario import SCENARIOS

HEADINGS = ("path", "scenario")


class Grid:
    """A row for each scenario and a column for each kernel."""

    def __init__(self, markdown: str = "") -> None:
        """Begin with the verdicts of a table in Markdown."""
        self._rows: dict[tuple[str, str], dict[str, str]] = {}
        for path, scenario, kernel, verdict in _read_cells(markdown):
            self.add(path, scenario.strip("`"), kernel, verdict)

    def add(self, path: str, scenario: str, kernel: str, verdict: str) -> None:
        """Add a verdict, in place of that on another release of the same kernel."""
        row = self._rows.setdefault((path, scenario), {})
        for column in [*row]:
            if _identify(column) == _identify(kernel):
                del row[column]
        row[kernel] = verdict.replace("|", "/")  # which would end the cell

    def find_column(self, kernel: str) -> str:
        """Return the heading that a kernel of unknown release has already."""
        columns = {column for row in self._rows.values() for column in row}
        alike = [column for column in columns if _identify(column) == _identify(kernel)]
        return max(alike, key=_rank, default=kernel)

    def table(self) -> Table:
        """Return the table."""
        names = [one.name for one in SCENARIOS]

        def rank(key: tuple[str, str]) -> int:
            name = key[1].split()[0]
            return names.index(name) if name in names else len(names)

        columns = sorted(
            {name for row in self._rows.values() for name in row}, key=_rank
        )
        rows = [
            (*key, *(self._rows[key].get(name, "") for name in columns))
            for key in sorted(self._rows, key=rank)
        ]
        return Table((*HEADINGS, *columns), rows)

    def markdown(self) -> list[str]:
        """Return the table as lines of Markdown."""
        table = self.table()
        rows = [(path, f"`{scenario}`", *rest) for path, scenario, *rest in table.rows]
        return Table(table.headings, rows).markdown()


def _read_cells(markdown: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield path, scenario, kernel and verdict of each cell that has one."""
    rows = page.read_rows(markdown, HEADINGS)
    columns = next(rows, [])[len(HEADINGS) :]
    for path, scenario, *cells in rows:
        for kernel, verdict in zip(columns, cells, strict=True):
            if verdict:
                yield path, scenario, kernel, verdict


def _identify(column: str) -> tuple[str, str]:
    """Return what a kernel is, of whatever release: a kind, or series and flavour."""
    name, machine = column.split()
    arch = archs.find_arch(machine)
    if kind := kernel_kinds.of_release(name) or kernel_kinds.find_kind(name):
        return kind.name, machine
    version = kernels.find_version(name)
    flavour = name.removeprefix(version) or f"-cloud-{arch.debian}"
    return requirements.series_of(version) + flavour, machine


def _rank(column: str) -> tuple[int, tuple[int, ...], str]:
    """Return what columns are sorted by: architecture, series, name."""
    name, machine = column.split()
    return archs.NAMES.index(machine), requirements.parse_version(name), name
