# SPDX-License-Identifier: GPL-2.0-only
"""The page's content as data, which page.html renders.

Every printed number keeps its raw value, so that it can be compared with the
result that it came from.
"""

from base64 import b64encode
from collections.abc import Iterator
from itertools import count
from typing import Any

from bulkmm import facts, grid, panels, plot, published, table
from bulkmm.native import summary
from bulkmm.published import Published
from bulkmm.report import breakdown, conclusion, figures, lines
from bulkmm.report.figures import Drawn
from bulkmm.report.lines import Forest, Mark, Number
from bulkmm.results import ACCELERATORS, NS, STORES, Document, Ratio, Result

# The weight of each kind of figure, shown beside it.
BADGES = {
    "native": "measured natively on this hardware",
    "KVM": "measured in a virtual machine (KVM)",
    "TCG": "emulated (TCG): work where it was counted, no hardware figures",
}
FOREST_MOST = 60  # ratios in one figure
OPEN_MOST = 8  # scenarios whose tables are initially open
View = dict[str, Any]  # by the names in page.html


def page(documents: list[Document], names: list[str], title: str) -> View:
    """Return the page of some documents, native ones first."""
    held = list(zip(names, documents, strict=True))
    held.sort(key=lambda pair: ACCELERATORS.index(facts.where(pair[1])))
    figure = count(1)  # figures are numbered across the page
    heads = [
        head for name, document in held for head in headlines(document.printed(), name)
    ]
    # Native first, then those with published figures.
    heads.sort(key=lambda one: not (one["published"] or one["said"]))
    heads.sort(key=lambda one: ACCELERATORS.index(one["where"]))
    return {
        "title": title,
        "sources": [
            _source(document, name, f"result-{number}", figure)
            for number, (name, document) in enumerate(held, 1)
        ],
        "headlines": heads,
    }


def _source(whole: Document, name: str, anchor: str, figure: Iterator[int]) -> View:
    """Return all of one document."""
    document, where = whole.printed(), facts.where(whole)
    scenarios = document.scenarios
    return {
        "name": name,
        "anchor": anchor,
        "where": where,
        "badge": BADGES[where],
        "conclusion": conclusion.conclude(document),
        "notes": [*facts.footnotes(document), *grid.controls(document)],
        "facts": {**facts.facts(document), **_versions(document)},
        "commands": conclusion.commands(document),
        # the whole result, for a link
        "json": b64encode(whole.to_json().encode()).decode(),
        "failed": document.failed,
        "checks": len(document.checks),
        "forests": list(_forests(document)),
        "grids": grid.grids(document, table.factor),
        "figures": [*_sweeps(document, figure), *_shares(document, name, figure)],
        "scenarios": [_scenario(document, one) for one in scenarios],
        "many": len(scenarios) > OPEN_MOST,  # too many to read one by one
    }


def _sweeps(document: Document, figure: Iterator[int]) -> Iterator[Drawn]:
    """Return the figures of scenarios measured over sizes."""
    found = [panel for panel in panels.panels([document]) if panel.by_size]
    looks = plot.looks_of(found)
    for panel in found:
        yield figures.sweep(panel, looks, next(figure))


def _shares(document: Document, name: str, figure: Iterator[int]) -> Iterator[Drawn]:
    """Return the time of operations by function, if traced."""
    for one in breakdown.operations(document):
        title = f"{name}, {one.name} by function, tracing included"
        title += ", emulated" if document.emulated else ""
        yield figures.shares(one, title, next(figure))


def _scenario(document: Document, name: str) -> View:
    """Return all of one scenario."""
    every = (r for r in document.results if r.unit != STORES)
    results = [r for r in every if r.scenario == name]
    leading = table.leading(document, name)
    return {
        "name": name,
        "base": next(iter(leading.values())).base if leading else "",
        "lines": [
            _line(document, result, leading.get(result.variant), mark)
            for result, mark in zip(results, lines.strips(results), strict=True)
        ],
        "published": _published(document, name),
        "counted": document.counted,  # work and not times
    }


def _line(document: Document, result: Result, ratio: Ratio | None, mark: Mark) -> View:
    """Return one variant of a scenario."""
    rate = None  # GB/s, or the stores among instructions
    if result.unit != NS:
        stores = table.stores_of(document, result).median
        rate = Number(stores, table.count(stores))
    elif facts.where(document) == "native" and result.median > 0:
        value = result.bytes / result.median
        rate = Number(value, f"{value:.1f}")
    return {
        "variant": result.variant,
        "time": lines.time(result),
        "n": len(result.samples),
        "rate": rate,
        "ratio": lines.factor(ratio) if ratio else None,
        "samples": [lines.number(result, value) for value in result.samples],
        "mark": mark,
    }


def _versions(document: Document) -> dict[str, str]:
    """Return how the figures were made, to reproduce them."""
    machine = document.machine
    names = ("revision", "bulkmm", "python", "numpy", "qemu")
    held = {name: machine.get(name) for name in names}
    held["seed"] = document.run.get("seed")
    return {name: str(value) for name, value in held.items() if value is not None}


def headlines(document: Document, name: str) -> Iterator[View]:
    """Return before and after of the headlines: few scenarios, or those chosen."""
    results = {(r.scenario, r.variant): r for r in document.results if r.unit != STORES}
    in_grids = {s for held in grid.kinds(document).values() for s in held}
    for ratio in conclusion.ours(document):
        chosen = any(line.leads(ratio) for line in summary.HEADLINES)
        if ratio.scenario in in_grids and not chosen:
            continue
        yield {
            "scenario": ratio.scenario,
            "source": name,
            "where": facts.where(document),
            "base": ratio.base,
            "variant": ratio.variant,
            "before": lines.time(results[ratio.scenario, ratio.base]),
            "after": lines.time(results[ratio.scenario, ratio.variant]),
            "ratio": lines.factor(ratio),
            # no hardware figures beside work; some are known only as text
            "published": _published(document, ratio.scenario),
            "said": [] if document.emulated else _said(document, ratio.scenario),
        }


def _published(document: Document, scenario: str) -> tuple[Published, ...]:
    return () if document.emulated else published.for_scenario(scenario)


def _said(document: Document, scenario: str) -> list[str]:
    """Return a scenario's published figures, as text."""
    if document.run.get("scenario") != scenario or published.for_scenario(scenario):
        return []
    said = document.run.get("published")
    return [str(line) for line in said] if isinstance(said, list) else []


def _forests(document: Document) -> Iterator[Forest]:
    """Yield the module's ratios; for a bench, ours against the best peer."""
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
