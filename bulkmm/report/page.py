# SPDX-License-Identifier: GPL-2.0-only
"""What the page says, as data; page.html says it.

Every number that is printed keeps its raw value beside it, so that it can be
compared with the result that it came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bulkmm import compare, grid, panels, plot, published, table
from bulkmm.report import figures
from bulkmm.results import NS, STORES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bulkmm.grid import Grid
    from bulkmm.published import Published
    from bulkmm.report.figures import Drawn
    from bulkmm.results import Check, Document, Ratio, Result

# What each kind of figure is worth, beside every one of them.
BADGES = {
    "native": "measured natively on this hardware",
    "KVM": "measured in a virtual machine (KVM)",
    "TCG": "emulated (TCG): work where it was counted, no hardware figures",
}
# the variant that a headline is of: the first of these that is there
LEADING = ("on", "auto", "block", "pte", "computed", "bulkmm")
FOREST_MOST = 40  # ratios in one figure


@dataclass(frozen=True)
class Number:
    """A number as it is printed, and as it was measured."""

    value: float
    text: str


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval or its range."""

    middle: Number
    low: Number
    high: Number
    spread: str  # which of the two, or "" for one sample
    proven: bool = True
    unit: str = ""


@dataclass(frozen=True)
class Headline:
    """One scenario before and after, with what was published of it."""

    scenario: str
    source: str
    where: str
    base: str
    variant: str
    before: Interval
    after: Interval
    ratio: Interval
    published: tuple[Published, ...]
    said: list[str]  # what was published, where it is known as text only


@dataclass(frozen=True)
class Line:
    """One variant of a scenario."""

    variant: str
    time: Interval
    n: int
    rate: Number | None  # GB/s, or the stores among instructions
    ratio: Interval | None
    samples: list[Number]


@dataclass
class Scenario:
    """All of one scenario."""

    name: str
    base: str
    lines: list[Line]
    published: tuple[Published, ...]
    counted: bool  # work and not times


@dataclass
class Source:
    """One result document."""

    name: str
    anchor: str
    where: str
    badge: str
    notes: list[str]
    facts: dict[str, str]
    failed: list[Check]
    checks: int
    scenarios: list[Scenario] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    figures: list[Drawn] = field(default_factory=list)


@dataclass
class Page:
    """The whole page."""

    title: str
    sources: list[Source]
    headlines: list[Headline]

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Return where figures were taken, each with what that is worth."""
        seen = dict.fromkeys(source.where for source in self.sources)
        return [(where, BADGES[where]) for where in seen]


class Builder:
    """Makes the page; figures are numbered through."""

    def __init__(self, documents: list[Document], names: list[str]) -> None:
        self.documents = [document.printed() for document in documents]
        self.names = names
        self.figures = 0

    def page(self, title: str) -> Page:
        """Return the page of all documents."""
        sources = [
            self._source(document, name, f"result-{i + 1}")
            for i, (document, name) in enumerate(
                zip(self.documents, self.names, strict=True)
            )
        ]
        heads = [
            head
            for document, name in zip(self.documents, self.names, strict=True)
            for head in headlines(document, name)
        ]
        # Those with a published peer first, each in the order measured.
        heads.sort(key=lambda head: not (head.published or head.said))
        return Page(title, sources, heads)

    def _number(self) -> int:
        self.figures += 1
        return self.figures

    def _source(self, document: Document, name: str, anchor: str) -> Source:
        where = table.where(document)
        source = Source(
            name=name,
            anchor=anchor,
            where=where,
            badge=BADGES[where],
            notes=[*table.footnotes(document), *grid.controls(document)],
            facts={**compare.facts(document), **_versions(document)},
            failed=[check for check in document.checks if not check.ok],
            checks=len(document.checks),
        )
        source.grids = grid.grids(document, table.factor)
        source.scenarios = [_scenario(document, one) for one in _names(document)]
        source.figures = list(self._figures(document, name))
        return source

    def _figures(self, document: Document, name: str) -> Iterator[Drawn]:
        """Return sweeps, forests and strips."""
        found = panels.panels([document])
        looks = plot.looks_of([panel for panel in found if panel.by_size])
        for panel in found:
            if panel.by_size:
                yield figures.sweep(panel, looks, self._number())
        for title, ratios in _forests(document):
            yield figures.forest(ratios, f"{name}: {title}", self._number())
        for panel in found:
            if not panel.by_size:
                yield figures.strips(panel, self._number())


def _scenario(document: Document, name: str) -> Scenario:
    results = _results(document, name)
    leading = _leading(document, name)
    return Scenario(
        name=name,
        base=next(iter(leading.values())).base if leading else "",
        lines=[_line(document, r, leading.get(r.variant)) for r in results],
        published=() if document.emulated else published.for_scenario(name),
        counted=document.counted,
    )


def _results(document: Document, scenario: str) -> list[Result]:
    """Return the results that have a line of their own."""
    every = (r for r in document.results if r.unit != STORES)
    return [r for r in every if r.scenario == scenario]


def _names(document: Document) -> list[str]:
    return list(dict.fromkeys(result.scenario for result in document.results))


def _versions(document: Document) -> dict[str, str]:
    """Return what made the figures: for whoever wants to make them again."""
    machine = document.machine
    names = ("revision", "bulkmm", "python", "numpy", "qemu")
    held = {name: machine.get(name) for name in names}
    held["seed"] = document.run.get("seed")
    return {name: str(value) for name, value in held.items() if value is not None}


def _leading(document: Document, scenario: str) -> dict[str, Ratio]:
    """Return the ratio of each variant to the base that leads the scenario."""
    every = (r for r in document.ratios if r.unit != STORES)
    ratios = [r for r in every if r.scenario == scenario]
    if not ratios:
        return {}
    base = table.main_base(ratios)
    return {r.variant: r for r in ratios if r.base == base}


def _time(result: Result) -> Interval:
    middle, low, high = (
        _number(result, value) for value in (result.median, *result.ci95)
    )
    unit = " ms" if result.unit == NS else f" {result.unit}"
    return Interval(middle, low, high, result.spread, unit=unit)


def _number(result: Result, value: float) -> Number:
    write = table.ms if result.unit == NS else table.count
    return Number(value, write(value))


def _factor(ratio: Ratio) -> Interval:
    """Return how many times faster, or how much of the work is gone."""
    held, decimals, unit = (ratio.ratio, *ratio.ci95), 2, table.TIMES
    if ratio.unit != NS:
        low, high = map(table.removed, ratio.ci95)
        held, decimals, unit = (table.removed(ratio.ratio), low, high), 1, " %"
    middle, least, most = (Number(value, f"{value:.{decimals}f}") for value in held)
    proven = ratio.significant
    return Interval(middle, least, most, ratio.spread, proven=proven, unit=unit)


def _line(document: Document, result: Result, ratio: Ratio | None) -> Line:
    rate = None
    if table.where(document) == "native" and result.median > 0:
        value = result.bytes / result.median
        rate = Number(value, f"{value:.1f}")
    if result.unit != NS:
        stores = table.stores_of(document, result).median
        rate = Number(stores, table.count(stores))
    return Line(
        variant=result.variant,
        time=_time(result),
        n=len(result.samples),
        rate=rate,
        ratio=_factor(ratio) if ratio else None,
        samples=[_number(result, value) for value in result.samples],
    )


def headlines(document: Document, name: str) -> Iterator[Headline]:
    """Return before and after of each scenario that no grid shows."""
    in_grids = {s for held in grid.kinds(document).values() for s in held}
    results = {(r.scenario, r.variant): r for r in document.results if r.unit != STORES}
    for scenario in _names(document):
        leading = _leading(document, scenario)
        variant = next((v for v in LEADING if v in leading), None)
        if scenario in in_grids or variant is None:
            continue
        ratio = leading[variant]
        yield Headline(
            scenario=scenario,
            source=name,
            where=table.where(document),
            base=ratio.base,
            variant=variant,
            before=_time(results[scenario, ratio.base]),
            after=_time(results[scenario, variant]),
            ratio=_factor(ratio),
            published=published.for_scenario(scenario),
            said=_said(document, scenario),
        )


def _said(document: Document, scenario: str) -> list[str]:
    """Return what the lab knows to be published of a scenario, as text."""
    if document.run.get("scenario") != scenario or published.for_scenario(scenario):
        return []
    said = document.run.get("published")
    return [str(line) for line in said] if isinstance(said, list) else []


def _forests(document: Document) -> Iterator[tuple[str, list[Ratio]]]:
    """Return the ratios of each figure: many of a kind against their best peer."""
    if document.emulated:
        return  # work is no ratio of times
    many = grid.kinds(document)
    rest = [
        r
        for scenario in _names(document)
        if grid.kind(scenario) not in many
        for r in _leading(document, scenario).values()
    ]
    for i in range(0, len(rest), FOREST_MOST):
        yield "ratios", rest[i : i + FOREST_MOST]
    for kind, scenarios in many.items():
        results = [r for r in document.results if r.scenario in scenarios]
        best = grid.goals(document.ratios, results)
        if best:
            yield (
                f"{kind} against the best peer",
                [
                    best[key]
                    for key in sorted(best, key=lambda k: scenarios.index(k[0]))
                ],
            )
