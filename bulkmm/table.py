# SPDX-License-Identifier: GPL-2.0-only
"""Result documents as a table: on the screen, or as Markdown for the README."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log10
from typing import TYPE_CHECKING

from bulkmm import facts, grid, published
from bulkmm.control import text
from bulkmm.facts import DASH
from bulkmm.results import INTERVAL, NS, RANGE, STORES
from bulkmm.sheet import Sheet, print_lines, screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console

    from bulkmm.results import Document, Ratio, Result

SPREADS = {INTERVAL: "({})", RANGE: "[{}]"}  # to tell them apart
MAIN_BASES = ("rebuild", "off", "absent")  # the first present leads its scenario
BRIEF = (
    "rebuild",
    "rebuild-saferet",
    "template-movnti",
    "bulkmm",
    "limit",
    "absent",
    "off",
    "on",
)
TIMES = "\N{MULTIPLICATION SIGN}"
NUMBERS = ("n", "GB/s", "stores")  # headings of right-aligned columns
BRACKETS = f"(a{DASH}b): 95 % interval. [a{DASH}b]: range of fewer than six samples."
LEGEND = f"{BRACKETS} ~ not proven. ! unstable: the A/A control moved by more."


@dataclass(frozen=True)
class Show:
    """How much a table shows."""

    full: bool = False  # a row for every median, and no grids
    all_rows: bool = False  # backends and kinds of limit too


DEFAULT = Show()


@dataclass(frozen=True)
class Part:
    """The table's part for one scenario; rows have a cell per heading."""

    scenario: str
    title: str  # the scenario, and the meaning of its ratios
    rows: list[list[str]]
    notes: list[str]


def count(value: float, median: float = 0) -> str:
    """Return a number of instructions or stores to four digits.

    With a median, in the median's unit: thousands, millions or billions.
    """
    for unit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if (median or value) >= unit:
            decimals = 3 - int(log10((median or value) / unit))
            return f"{value / unit:.{decimals}f}{'' if median else letter}"
    return f"{value:.0f}"


def value(amount: float, unit: str) -> str:
    """Return a time or a number of instructions or stores with its unit."""
    return text.duration(amount) if unit == NS else count(amount)


def measured(result: Result) -> str:
    """Return the median with its spread, both in the unit of the median."""

    def write(amount: float) -> str:
        if result.unit == NS:
            return text.number(amount / text.scale(result.median)[0])
        return count(amount, result.median)

    return f"{value(result.median, result.unit)}{spread(result, write)}"


def removed(ratio: float) -> float:
    """Return the percentage of the base's work that the variant saves."""
    return 100 * (1 - 1 / ratio)


def spread(held: Ratio | Result, write: Callable[[float], str]) -> str:
    """Return an interval in round brackets, a range in square ones, or nothing."""
    low, high = map(write, held.ci95)
    return f" {SPREADS[held.spread].format(low + DASH + high)}" if held.spread else ""


def span(ratio: Ratio, digits: int = 2) -> str:
    """Return how many times faster, or how much less work, with its spread."""

    def faster(value: float) -> str:
        return f"{value:.{digits}f}"

    def fewer(value: float) -> str:
        return f"{removed(value):.1f}"

    if ratio.unit == NS:
        return f"{faster(ratio.ratio)}{TIMES}{spread(ratio, faster)}"
    return f"{fewer(ratio.ratio)} %{spread(ratio, fewer)}"


def marks(ratio: Ratio) -> str:
    """Return the marks of an unproven or unstable ratio."""
    return ("" if ratio.significant else " ~") + (" !" if ratio.unstable else "")


def factor(ratio: Ratio) -> str:
    """Return the ratio with its spread, marked if unproven or unstable."""
    return span(ratio) + marks(ratio)


def headings(documents: Iterable[Document]) -> tuple[str, ...]:
    """Return the headings of the rows; those of figures name their spread."""
    results = [r for document in documents for r in document.printed().results]
    spreads = dict.fromkeys(r.spread for r in results if r.spread)
    said = "".join(f" {SPREADS[name].format(name)}" for name in spreads)
    if results and results[0].unit != NS:
        work = f"fewer instructions{said}, stores"
        return ("variant", f"instructions{said}", "n", "stores", work, "where")
    return ("variant", f"median{said}", "n", "GB/s", f"faster{said}", "where")


def stores_of(document: Document, result: Result) -> Result:
    """Return the stores counted together with instructions."""
    key = (result.scenario, result.variant, STORES)
    return next(r for r in document.results if (r.scenario, r.variant, r.unit) == key)


def _fewer(document: Document, ratio: Ratio) -> str:
    """Return how many fewer instructions, and how many fewer stores."""
    alike = replace(ratio, unit=STORES)
    key = (alike.scenario, alike.base, alike.variant, alike.unit)
    stores = [
        f"{removed(r.ratio):.1f} %"
        for r in document.ratios
        if (r.scenario, r.base, r.variant, r.unit) == key
    ]
    return ", ".join([factor(ratio), *stores])


def _row(document: Document, result: Result, ratio: Ratio | None) -> list[str]:
    """Return the cells of an arm: of times, or of instructions and stores."""
    place, name, rate, gain = facts.where(document), result.variant, "", ""
    if result.unit != NS:
        rate = count(stores_of(document, result).median)
        gain = _fewer(document, ratio) if ratio else ""
    else:
        if pick := grid.picked(document, result.scenario, result.variant):
            name = f"{name} ({pick})"
        if place == "native" and result.median > 0:
            rate = f"{result.bytes / result.median:.1f}"
        gain = factor(ratio) if ratio else ""
    return [name, measured(result), str(len(result.samples)), rate, gain, place]


def _published_rows(document: Document, scenario: str) -> list[list[str]]:
    """Return the published times of a scenario, not shown beside work."""
    known = () if document.emulated else published.for_scenario(scenario)
    name = f"published ({published.MACHINE})"
    return [[name, f"{p.said}", "", "", f"{p.ratio:.2f}{TIMES}", "VM"] for p in known]


def main_base(ratios: list[Ratio]) -> str:
    """Return the leading base of a scenario."""
    bases = [ratio.base for ratio in ratios]
    return next((base for base in MAIN_BASES if base in bases), bases[0])


def leading(document: Document, scenario: str) -> dict[str, Ratio]:
    """Return the ratio of each variant to the base that leads the scenario."""
    here = [r for r in document.ratios if r.scenario == scenario and r.unit != STORES]
    base = main_base(here) if here else ""
    return {r.variant: r for r in here if r.base == base}


def _part(document: Document, scenario: str, *, all_rows: bool) -> Part:
    every = [r for r in grid.shown(document, all_rows=all_rows) if r.unit != STORES]
    results = [r for r in every if r.scenario == scenario]
    names = {r.variant for r in results}
    ratios = [r for r in document.ratios if {r.base, r.variant} <= names]
    here = replace(document, ratios=[r for r in ratios if r.scenario == scenario])
    first = leading(here, scenario)
    base = next(iter(first.values())).base if first else ""
    rows = [_row(document, r, first.get(r.variant)) for r in results]
    others = [r for r in here.ratios if r.base != base and r.unit != STORES]
    return Part(
        scenario=scenario,
        title=f"{scenario}: {_means(document, base)}" if base else scenario,
        rows=rows + _published_rows(document, scenario),
        notes=[f"{scenario}: {_said(r)}" for r in others],
    )


def _means(document: Document, base: str) -> str:
    """Return the meaning of a scenario's ratios."""
    if document.counted:
        return (
            f"fewer = share of the work of {base} that is gone; below 0: there is more"
        )
    return f"faster = time of {base} / time of the variant"


def _said(ratio: Ratio) -> str:
    """Return a line for a ratio that the table has no room for."""
    if ratio.unit == NS:
        return f"{ratio.base} / {ratio.variant}: {factor(ratio)}"
    return f"{ratio.variant} against {ratio.base}: {factor(ratio)} fewer {ratio.unit}"


def parts(document: Document, show: Show = DEFAULT) -> list[Part]:
    """Return the parts of a document's table, one per scenario, in order.

    Unless ``show`` is full, those shown in a grid are omitted.
    """
    document = document.printed()
    in_grids = {} if show.full else grid.kinds(document)
    return [
        _part(document, scenario, all_rows=show.all_rows)
        for scenario in document.scenarios
        if grid.kind(scenario) not in in_grids
    ]


def _kinds(documents: Iterable[Document]) -> list[list[Document]]:
    """Return documents of times and documents of work: no table has both."""
    held = list(documents)
    kinds = ([d for d in held if d.counted is counted] for counted in (False, True))
    return [kind for kind in kinds if kind]


def _grids(documents: Iterable[Document], show: Show) -> list[Sheet]:
    if show.full:
        return []
    return [
        held
        for one in documents
        for held in grid.grids(one, factor, all_rows=show.all_rows)
    ]


def _lines_under(
    documents: Iterable[Document], found: list[Part], show: Show
) -> list[str]:
    lines = [part.title for part in found if ":" in part.title]
    lines += [note for part in found for note in part.notes]
    for document in documents:
        lines += [] if show.full else grid.controls(document)
        lines += facts.footnotes(document)
    return list(dict.fromkeys([*lines, LEGEND]))


def print_documents(
    documents: list[Document], console: Console | None = None, show: Show = DEFAULT
) -> None:
    """Print one table of several documents.

    Many scenarios of one kind are printed as grids, unless ``show`` is full.
    """
    console = screen(console)
    found = [part for one in documents for part in parts(one, show)]
    compact = _grids(documents, show)
    for kind in _kinds(documents) if found or not compact else ():
        rows = [
            row
            for one in kind
            for part in parts(one, show)
            for row in ([part.scenario], *part.rows)
        ]
        Sheet(headings(kind), rows, NUMBERS).print(console)
    for held in compact:
        held.print(console)
        console.print()
    print_lines(_lines_under(documents, found, show), console)


def _brief(part: Part) -> Part:
    """Return the rows that fit the first screen of a README."""
    newest = [row for row in part.rows if row[0].startswith("published")][-1:]
    rows = [row for row in part.rows if row[0].partition(" ")[0] in BRIEF] + newest
    return Part(part.scenario, part.title, rows, [])


def _shown_parts(
    documents: Iterable[Document], *, show: Show, brief: bool = False
) -> list[Part]:
    found = [part for document in documents for part in parts(document, show)]
    if not brief:
        return found
    return [_brief(part) for part in found if not part.title.endswith("-first")]


def markdown_tables(
    *documents: Document, brief: bool = False, show: Show = DEFAULT
) -> list[str]:
    """Return the tables as lines of Markdown."""
    compact = _grids(documents, show)
    lines = []
    for kind in _kinds(documents) or [[]]:
        found = _shown_parts(kind, brief=brief, show=show)
        rows = [[part.scenario, *row] for part in found for row in part.rows]
        if found or not compact:
            lines += Sheet(("scenario", *headings(kind)), rows, NUMBERS).markdown()
    return lines + [line for held in compact for line in held.markdown()]


def markdown(*documents: Document, brief: bool = False, show: Show = DEFAULT) -> str:
    """Return the same rows and lines as Markdown; ``brief``: the main ones."""
    lines = markdown_tables(*documents, brief=brief, show=show)
    found = _shown_parts(documents, brief=brief, show=show)
    lines += [f"{line}  " for line in _lines_under(documents, found, show)]
    return "\n".join(lines).rstrip() + "\n"
