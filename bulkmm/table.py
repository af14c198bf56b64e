# SPDX-License-Identifier: GPL-2.0-only
"""What the tables of results hold; ``sheet`` and the report's page render them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING

from msgspec.structs import replace

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
TIMES = "\N{MULTIPLICATION SIGN}"
NUMBERS = ("n", "GB/s", "stores")  # headings of right-aligned columns
BRACKETS = f"(a{DASH}b): 95 % interval. [a{DASH}b]: range of fewer than six samples."
LEGEND = f"{BRACKETS} ~ not proven. ! unstable: the A/A control moved by more."


@dataclass(frozen=True)
class Show:
    """How much the tables show."""

    full: bool = False  # a row for every median, and no grids
    all_rows: bool = False  # backends and kinds of limit too


DEFAULT = Show()


@dataclass(frozen=True)
class Part:
    """The table's part for one scenario; rows have a cell per heading."""

    scenario: str
    rows: list[list[str]]
    notes: list[str]  # the meaning of its ratios, and those not in the rows


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
    said = [_means(document, base)] if base else []
    said += [_said(r) for r in here.ratios if r.base != base and r.unit != STORES]
    return Part(
        scenario=scenario,
        rows=rows + _published_rows(document, scenario),
        notes=[f"{scenario}: {line}" for line in said],
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


def tables(documents: list[Document], show: Show = DEFAULT) -> list[Sheet]:
    """Return all tables of some results: rows by scenario, then the grids."""
    compact = [
        held
        for one in documents
        if not show.full
        for held in grid.grids(one, factor, all_rows=show.all_rows)
    ]
    found = []
    for kind in _kinds(documents):
        held = [part for one in kind for part in parts(one, show)]
        rows = [row for part in held for row in ([part.scenario], *part.rows)]
        if rows or not compact:
            found.append(Sheet(headings(kind), rows, NUMBERS))
    return found + compact


def lines(documents: list[Document], show: Show = DEFAULT) -> list[str]:
    """Return the lines below the tables."""
    said = [n for one in documents for part in parts(one, show) for n in part.notes]
    for document in documents:
        said += [] if show.full else grid.controls(document)
        said += facts.footnotes(document)
    return list(dict.fromkeys([*said, LEGEND]))


def print_documents(
    documents: list[Document], console: Console | None = None, show: Show = DEFAULT
) -> None:
    """Print the tables of several documents, and the lines below."""
    console = screen(console)
    for one in tables(documents, show):
        one.print(console)
        console.print()
    print_lines(lines(documents, show), console)


def markdown(*documents: Document, show: Show = DEFAULT) -> str:
    """Return the same tables and lines as Markdown."""
    held = [*documents]
    said = [line for one in tables(held, show) for line in one.markdown()]
    said += [f"{line}  " for line in lines(held, show)]
    return "\n".join(said).rstrip() + "\n"
