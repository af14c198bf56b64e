# SPDX-License-Identifier: GPL-2.0-only
"""What the tables of results hold; table.py and the report's page render them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from bulkmm.control import requirements
from bulkmm.control.format import (
    choose_unit,
    format_duration,
    format_number,
)
from bulkmm.results import conditions, published_figures, size_grid
from bulkmm.results.conditions import DASH
from bulkmm.results.model import INTERVAL, LIMIT, NS, RANGE, Document, Result
from bulkmm.results.table import Table, make_console, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rich.console import Console

    from bulkmm.results.model import Ratio

SPREADS = {INTERVAL: "({})", RANGE: "[{}]"}  # to tell them apart
TIMES = "\N{MULTIPLICATION SIGN}"
# the module as it is, not what else it could use
MODULE_ARMS = ("bulkmm", "pte", "block")


NUMBERS = ("n", "GB/s")  # headings of right-aligned columns
FASTER = f"N{TIMES}: time of the base / time of the variant."
PAIRED = "Medians of the ratios within rounds, not ratios of the medians printed."
CONTROLS = "A/A ratios are medians, too: in one process the control may move by more."
OF_LIMIT = "Of limit: time of the limit / time of the variant; 1.00: at the limit."
FEWER = "N %: share of the work of the base that is gone; below 0: there is more."
BRACKETS = f"(a{DASH}b): 95 % interval. [a{DASH}b]: range of fewer than six samples."
LEGEND = (
    f"{BRACKETS} ~ not proven. "
    "! unstable: in any process the A/A control moved by more."
)


@dataclass(frozen=True)
class Show:
    """How much the tables show."""

    full: bool = False  # a row for every median, and no grids
    all_rows: bool = False  # backends and kinds of limit too


DEFAULT = Show()


def format_count(value: float, median: float = 0) -> str:
    """Return a number of instructions to four digits.

    With a median, in the median's unit: thousands, millions or billions.
    """
    for unit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if (median or value) >= unit:
            decimals = max(0, 3 - int(log10((median or value) / unit)))
            return f"{value / unit:.{decimals}f}{'' if median else letter}"
    return f"{value:.0f}"


def format_value(amount: float, unit: str) -> str:
    """Return a time or a number of instructions with its unit."""
    return format_duration(amount) if unit == NS else format_count(amount)


def format_median(result: Result) -> str:
    """Return the median with its spread, both in the unit of the median."""

    def write(amount: float) -> str:
        if result.unit == NS:
            return format_number(amount / choose_unit(result.median)[0])
        return format_count(amount, result.median)

    return f"{format_value(result.median, result.unit)}{format_spread(result, write)}"


def compute_saving(ratio: float) -> float:
    """Return the percentage of the base's work that the variant saves."""
    return 100 * (1 - 1 / ratio)


def format_spread(figure: Ratio | Result, write: Callable[[float], str]) -> str:
    """Return an interval in round brackets, a range in square ones, or nothing."""
    low, high = map(write, figure.ci95)
    return (
        f" {SPREADS[figure.spread].format(low + DASH + high)}" if figure.spread else ""
    )


def format_gain(ratio: Ratio, digits: int = 2) -> str:
    """Return how many times faster, or how much less work, with its spread."""

    def faster(value: float) -> str:
        return f"{value:.{digits}f}"

    def fewer(value: float) -> str:
        return f"{compute_saving(value):.1f}"

    if ratio.unit == NS:
        return f"{faster(ratio.ratio)}{TIMES}{format_spread(ratio, faster)}"
    return f"{fewer(ratio.ratio)} %{format_spread(ratio, fewer)}"


def format_ratio(ratio: Ratio) -> str:
    """Return the ratio with its spread, marked if unproven or unstable."""
    proven = "" if ratio.significant else " ~"
    return f"{format_gain(ratio)}{proven}{' !' if ratio.unstable else ''}"


def list_headings(documents: Iterable[Document]) -> tuple[str, ...]:
    """Return the headings of the rows; those of figures name their spread."""
    results = [r for document in documents for r in document.results]
    spreads = dict.fromkeys(r.spread for r in results if r.spread)
    marks = "".join(f" {SPREADS[name].format(name)}" for name in spreads)
    if results and results[0].unit != NS:
        work = f"fewer instructions{marks}"
        return ("variant", f"instructions{marks}", "n", work, "where")
    return ("variant", f"median{marks}", "n", "GB/s", f"faster{marks}", "where")


def _make_row(document: Document, result: Result) -> list[str]:
    """Return the cells of an arm: of times, which have a rate, or of instructions."""
    key, place = (result.scenario, result.variant), conditions.get_accelerator(document)
    rate = size_grid.format_rate(result) if place == "native" else ""
    gains = [
        f"{format_ratio(r)} against {r.base}"
        for r in document.ratios
        if (r.scenario, r.variant) == key
    ]
    n, name = str(len(result.samples)), _name_variant(document, *key)
    rates = [rate] if result.unit == NS else []
    return [name, format_median(result), n, *rates, "; ".join(gains), place]


def _name_variant(document: Document, scenario: str, variant: str) -> str:
    """Return a variant, and the backend that served it."""
    pick = size_grid.get_backend(document, scenario, variant)
    return f"{variant} ({pick})" if pick else variant


def _make_rows(document: Document, scenario: str) -> list[list[str]]:
    """Return a scenario's rows, its name above them."""
    arms = [r for r in document.arms.values() if r.scenario == scenario]
    return [[scenario], *(_make_row(document, r) for r in arms)]


def _filter_document(document: Document, show: Show) -> Document:
    """Return the part of a document that its tables show."""
    printed = document.printed()
    return printed if show.all_rows else size_grid.select_usual(printed)


def _in_rows(document: Document, show: Show) -> list[str]:
    """Return the scenarios that have rows, not a line of a grid."""
    if show.full:
        return document.scenarios
    if size_grid.is_of_kernel(document):
        return []
    in_grids = size_grid.scenarios_of(document)
    rows = [r.scenario for r in document.results if r.operation not in in_grids]
    return list(dict.fromkeys(rows))


def make_kernel_table(
    documents: list[Document],
    ways: tuple[str, ...] = (),
    amounts: Mapping[str, int] = MappingProxyType({}),
) -> Table:
    """Return kernels' own code beside ours, side by side: a row per arm of the module.

    Without a module, a row for each of its candidates; or for the kernel that is
    compared with another one. ``ways``: only these arms, without what they picked;
    ``amounts``: bytes of scenarios to calculate times for, at the rates measured.
    """
    headings, cells = ["scenario", "variant"], []
    for document in documents:
        kernel = conditions.get_kernel(document)
        arm = "bulkmm" if ways else "variant"  # not all rows are the module's
        arms = f"Linux {requirements.series_of(kernel)}: stock → {arm}"
        if against := document.run.get(size_grid.AGAINST):
            arms = f"{against} → {kernel}"
        headings += [
            arms,
            "faster; of limit" if _has_limit(document) else "faster",
        ]
        cells.append(_of_kernel(document, ways, amounts))
    # in the newest kernel's order, which has them all
    keys = dict.fromkeys(key for column in reversed(cells) for key in column)
    rows = [
        [
            *key,
            *(
                x
                for column in cells
                for x in (column[key].cells() if key in column else ("", ""))
            ),
        ]
        for key in keys
    ]
    if len(documents) > 1 or ways:
        return Table(headings, rows, keys=2)
    names = [
        [scenario, _name_variant(documents[0], scenario, x)] for scenario, x in keys
    ]
    rows = [[*name, *row[2:]] for name, row in zip(names, rows, strict=True)]
    entries = [cells[0][key].brief_cells() for key in keys]
    brief = Table(
        [
            *headings[:2],
            headings[2].replace(": ", ":\n").replace("→ ", "→\n"),
            "faster",
            "limit",
        ],
        [[*name, *entry] for name, entry in zip(names, entries, strict=True)],
        ("limit",),
        keys=2,
    )
    return Table(headings, rows, keys=2, brief=brief.drop_empty())


class _Pair(NamedTuple):
    """What a row of a kernel has: two times in ns, and their ratio."""

    before: float
    after: float
    ratio: Ratio
    of_limit: str  # nothing if there is none

    def cells(self) -> tuple[str, str]:
        """Return times, and ratio with spread, marks and limit."""
        times = " → ".join(map(format_duration, (self.before, self.after)))
        return times, "; ".join(filter(None, [format_ratio(self.ratio), self.of_limit]))

    def brief_cells(self) -> tuple[str, str, str]:
        """Return the same for a narrow terminal: three digits, and a unit once."""
        before, after = map(format_duration, (self.before, self.after))
        if choose_unit(self.before) == choose_unit(self.after):
            before = before.split()[0]
        marks = "~" * (not self.ratio.significant) + "!" * self.ratio.unstable
        spread = format_spread(self.ratio, format_number)
        gain = f"{format_number(self.ratio.ratio)}{TIMES}{marks}{spread}"
        return f"{before}→{after}", gain, self.of_limit


def _has_limit(document: Document) -> bool:
    return any(r.variant == LIMIT for r in document.results)


def _of_kernel(
    document: Document, ways: tuple[str, ...], amounts: Mapping[str, int]
) -> dict[tuple[str, str], _Pair]:
    """Return what a kernel's rows have, by scenario and arm."""
    base = size_grid.AGAINST if size_grid.AGAINST in document.run else size_grid.STOCK
    arms, pairs = document.arms, {}
    ratios = [
        r
        for r in document.ratios
        if r.base == base
        if r.variant in ways or not (ways or arms[r.scenario, r.variant].control)
    ]
    own_ratios = [r for r in ratios if r.variant != LIMIT] or ratios
    for ratio in own_ratios:
        limit = arms.get((ratio.scenario, LIMIT))
        near = limit.median / arms[ratio.scenario, ratio.variant].median if limit else 0
        two = [arms[ratio.scenario, name] for name in (ratio.base, ratio.variant)]
        before, after = (
            r.median * amounts.get(r.scenario, r.bytes) / r.bytes for r in two
        )
        of_limit = f"{near:.2f}" if limit else ""
        pairs[ratio.scenario, ratio.variant] = _Pair(before, after, ratio, of_limit)
    return pairs


def _describe_rest(document: Document, show: Show) -> list[str]:
    """Return where the ratios are that the table of a kernel's code has no row for."""
    if not size_grid.is_of_kernel(document):
        return []
    many = len(document.printed().ratios)
    rows = len(make_kernel_table([_filter_document(document, show)]).rows)
    if rows >= many:
        return []
    full = "bulkmm show --full --all-rows RESULT.json"
    keep = "(bench keeps one with -o RESULT.json)"
    return [f"Of {many} ratios the table has {rows}: {full} has all {keep}."]


def make_tables(documents: list[Document], show: Show = DEFAULT) -> list[Table]:
    """Return all tables of some results: rows by scenario, then the grids.

    No table has both times and work.
    """
    documents = [_filter_document(document, show) for document in documents]
    compact = []
    for document in () if show.full else documents:
        of_kernel = size_grid.is_of_kernel(document)
        compact += (
            [make_kernel_table([document])]
            if of_kernel
            else [*size_grid.make_grids(document)]
        )
    tables = []
    for of_work in (False, True):
        kind = [document for document in documents if document.counts_work is of_work]
        rows = [
            row
            for document in kind
            for scenario in _in_rows(document, show)
            for row in _make_rows(document, scenario)
        ]
        if rows or (kind and not compact):
            tables.append(Table(list_headings(kind), rows, NUMBERS).drop_empty())
    return tables + compact


def list_notes(documents: list[Document], show: Show = DEFAULT) -> list[str]:
    """Return the lines below the tables."""
    notes = []
    for document in documents:
        for scenario in () if document.emulated else document.scenarios:
            figures = "; ".join(published_figures.list_figures(scenario))
            machine = f"published ({published_figures.MACHINE})"
            notes += [f"{scenario}, {machine}: {figures}"] if figures else []
        controls = [] if show.full else size_grid.describe_controls(document)
        notes += controls
        notes += conditions.list_footnotes(document)
        notes += [] if show.full else _describe_rest(document, show)
        if document.printed().ratios:
            notes.append(FEWER if document.counts_work else FASTER)
        notes += [PAIRED] if "processes" in document.run else []
        notes += [CONTROLS] if controls and "processes" in document.run else []
        if size_grid.is_of_kernel(document) and _has_limit(document):
            notes.append(OF_LIMIT)
    return list(dict.fromkeys([*notes, LEGEND]))


def print_documents(
    documents: list[Document], console: Console | None = None, show: Show = DEFAULT
) -> None:
    """Print the tables of several documents, and the lines below."""
    console = console or make_console()
    for table in make_tables(documents, show):
        table.print(console)
        console.print()
    print_lines(list_notes(documents, show), console)


def format_markdown(*documents: Document, show: Show = DEFAULT) -> str:
    """Return the same tables and lines as Markdown."""
    results = [*documents]
    output = [line for table in make_tables(results, show) for line in table.markdown()]
    output += [f"{line}  " for line in list_notes(results, show)]
    return "\n".join(output).rstrip() + "\n"
