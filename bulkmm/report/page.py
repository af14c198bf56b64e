# SPDX-License-Identifier: GPL-2.0-only
"""What the page says, as data; page.html says it.

Every number that is printed keeps its raw value beside it, so that it can be
compared with the result that it came from.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field

from bulkmm import facts, grid, panels, plot, published, table
from bulkmm.native import summary
from bulkmm.published import Published
from bulkmm.report import breakdown, conclusion, figures, lines
from bulkmm.report.figures import Drawn
from bulkmm.report.lines import Forest, Interval, Mark, Number
from bulkmm.results import ACCELERATORS, NS, STORES, Check, Document, Ratio, Result
from bulkmm.sheet import Sheet

# What each kind of figure is worth, beside every one of them.
BADGES = {
    "native": "measured natively on this hardware",
    "KVM": "measured in a virtual machine (KVM)",
    "TCG": "emulated (TCG): work where it was counted, no hardware figures",
}
FOREST_MOST = 60  # ratios in one figure
OPEN_MOST = 8  # scenarios whose tables are shown without being asked for


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
    mark: Mark


@dataclass(frozen=True)
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
    conclusion: str
    notes: list[str]
    facts: dict[str, str]
    commands: list[str]
    json: str  # the whole result, for a link
    failed: list[Check]
    checks: int
    forests: list[Forest] = field(default_factory=list)
    grids: list[Sheet] = field(default_factory=list)
    figures: list[Drawn] = field(default_factory=list)
    scenarios: list[Scenario] = field(default_factory=list)

    @property
    def many(self) -> bool:
        """Tell if its scenarios' tables are too many to be read one by one."""
        return len(self.scenarios) > OPEN_MOST


@dataclass(frozen=True)
class Page:
    """The whole page."""

    title: str
    sources: list[Source]
    headlines: list[Headline]


class Builder:
    """Makes the page; figures are numbered through."""

    def __init__(self, documents: list[Document], names: list[str]) -> None:
        held = list(zip(names, documents, strict=True))
        held.sort(key=lambda pair: ACCELERATORS.index(facts.where(pair[1])))
        self.held = held  # native first
        self.figures = 0

    def page(self, title: str) -> Page:
        """Return the page of all documents."""
        sources = [
            self._source(document, name, f"result-{number + 1}")
            for number, (name, document) in enumerate(self.held)
        ]
        heads = [
            head
            for name, document in self.held
            for head in headlines(document.printed(), name)
        ]
        # Native first, then those with something published beside them.
        heads.sort(key=lambda one: not (one.published or one.said))
        heads.sort(key=lambda one: ACCELERATORS.index(one.where))
        return Page(title, sources, heads)

    def _source(self, whole: Document, name: str, anchor: str) -> Source:
        document, where = whole.printed(), facts.where(whole)
        source = Source(
            name=name,
            anchor=anchor,
            where=where,
            badge=BADGES[where],
            conclusion=conclusion.conclude(document),
            notes=[*facts.footnotes(document), *grid.controls(document)],
            facts={**facts.facts(document), **_versions(document)},
            commands=conclusion.commands(document),
            json=b64encode(whole.to_json().encode()).decode(),
            failed=document.failed,
            checks=len(document.checks),
        )
        source.forests = list(_forests(document))
        source.grids = grid.grids(document, table.factor)
        source.figures = list(self._sweeps(document))
        source.figures += self._shares(document, name)
        source.scenarios = [_scenario(document, one) for one in document.scenarios]
        return source

    def _sweeps(self, document: Document) -> Iterator[Drawn]:
        """Return the figures of what was measured by size."""
        found = [panel for panel in panels.panels([document]) if panel.by_size]
        looks = plot.looks_of(found)
        for panel in found:
            self.figures += 1
            yield figures.sweep(panel, looks, self.figures)

    def _shares(self, document: Document, name: str) -> Iterator[Drawn]:
        """Return where the time of whole operations goes, if that was traced."""
        for one in breakdown.operations(document):
            self.figures += 1
            title = f"{name}, {one.name} by function, tracing included"
            title += ", emulated" if document.emulated else ""
            yield figures.shares(one, title, self.figures)


def _scenario(document: Document, name: str) -> Scenario:
    every = (r for r in document.results if r.unit != STORES)
    results = [r for r in every if r.scenario == name]
    leading = table.leading(document, name)
    return Scenario(
        name=name,
        base=next(iter(leading.values())).base if leading else "",
        lines=[
            _line(document, result, leading.get(result.variant), mark)
            for result, mark in zip(results, lines.strips(results), strict=True)
        ],
        published=_published(document, name),
        counted=document.counted,
    )


def _line(document: Document, result: Result, ratio: Ratio | None, mark: Mark) -> Line:
    rate = None
    if result.unit != NS:
        stores = table.stores_of(document, result).median
        rate = Number(stores, table.count(stores))
    elif facts.where(document) == "native" and result.median > 0:
        value = result.bytes / result.median
        rate = Number(value, f"{value:.1f}")
    return Line(
        variant=result.variant,
        time=lines.time(result),
        n=len(result.samples),
        rate=rate,
        ratio=lines.factor(ratio) if ratio else None,
        samples=[lines.number(result, value) for value in result.samples],
        mark=mark,
    )


def _versions(document: Document) -> dict[str, str]:
    """Return what made the figures: for whoever wants to make them again."""
    machine = document.machine
    names = ("revision", "bulkmm", "python", "numpy", "qemu")
    held = {name: machine.get(name) for name in names}
    held["seed"] = document.run.get("seed")
    return {name: str(value) for name, value in held.items() if value is not None}


def headlines(document: Document, name: str) -> Iterator[Headline]:
    """Return before and after of what leads: few scenarios, or those chosen."""
    results = {(r.scenario, r.variant): r for r in document.results if r.unit != STORES}
    in_grids = {s for held in grid.kinds(document).values() for s in held}
    for ratio in conclusion.ours(document):
        chosen = any(line.leads(ratio) for line in summary.HEADLINES)
        if ratio.scenario in in_grids and not chosen:
            continue
        yield Headline(
            scenario=ratio.scenario,
            source=name,
            where=facts.where(document),
            base=ratio.base,
            variant=ratio.variant,
            before=lines.time(results[ratio.scenario, ratio.base]),
            after=lines.time(results[ratio.scenario, ratio.variant]),
            ratio=lines.factor(ratio),
            # no figures of hardware beside work
            published=_published(document, ratio.scenario),
            said=[] if document.emulated else _said(document, ratio.scenario),
        )


def _published(document: Document, scenario: str) -> tuple[Published, ...]:
    return () if document.emulated else published.for_scenario(scenario)


def _said(document: Document, scenario: str) -> list[str]:
    """Return what the lab knows to be published of a scenario, as text."""
    if document.run.get("scenario") != scenario or published.for_scenario(scenario):
        return []
    said = document.run.get("published")
    return [str(line) for line in said] if isinstance(said, list) else []


def _forests(document: Document) -> Iterator[Forest]:
    """Return the module's ratios, and of a bench ours against the best peer."""
    if document.emulated:
        return  # work is no ratio of times
    peers = conclusion.best_peers(document)
    rest = [r for r in conclusion.ours(document) if grid.kind(r.scenario) not in peers]
    for i in range(0, len(rest), FOREST_MOST):
        part = rest[i : i + FOREST_MOST]
        yield lines.forest(f"How many times faster than {conclusion.base(part)}", part)
    for kind, ratios in peers.items():
        title = f"{kind}: how many times faster than {conclusion.PEER}"
        yield lines.forest(title, ratios)
