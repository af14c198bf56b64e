# SPDX-License-Identifier: GPL-2.0-only
"""The page's content as data, which page.html renders."""

import re
from collections.abc import Iterator
from typing import Any

from bulkmm import facts, grid, panels, plot, published, table
from bulkmm.native import summary
from bulkmm.report import breakdown, conclusion
from bulkmm.results import ACCELERATORS, Document
from bulkmm.sheet import Sheet

# The weight of each kind of figure, shown beside it.
BADGES = {
    "native": "measured natively on this hardware",
    "KVM": "measured in a virtual machine (KVM)",
    "TCG": "emulated (TCG): work where it was counted, no hardware figures",
}
GAIN = "faster, or fewer instructions"
HEADINGS = ("scenario", "result", "where", "before", "after", GAIN, "published")
View = dict[str, Any]  # by the names in page.html


def page(documents: list[Document], names: list[str], title: str) -> View:
    """Return the page of some documents, native ones first."""
    held = list(zip(names, documents, strict=True))
    held.sort(key=lambda pair: ACCELERATORS.index(facts.where(pair[1])))
    heads = [row for name, document in held for row in headlines(document, name)]
    # Native first, then those with published figures.
    heads.sort(key=lambda row: (ACCELERATORS.index(row[2]), not row[-1]))
    return {
        "title": title,
        "sources": [_source(document, name) for name, document in held],
        "headlines": Sheet(HEADINGS, heads),
        "gain": GAIN,
    }


def _source(whole: Document, name: str) -> View:
    """Return all of one document."""
    document, where = whole.printed(), facts.where(whole)
    every = table.Show(full=True, all_rows=True)
    return {
        "name": name,
        "where": where,
        "badge": BADGES[where],
        "conclusion": conclusion.conclude(document),
        "notes": table.lines([document]),
        "facts": {**facts.facts(document), **_versions(document)},
        "commands": conclusion.commands(document),
        "failed": document.failed,
        "checks": len(document.checks),
        "figure": _figure(document, name),
        "tables": table.tables([document]),
        "traced": dict(breakdown.sheets(document)),
        "every": table.tables([document], every) if grid.kinds(document) else [],
        "samples": _samples(document),
    }


def _figure(document: Document, name: str) -> str:
    """Return a document's figure as SVG that can stand in a page beside others."""
    if not (found := panels.panels([document], [name])):
        return ""
    drawn = plot.render(found, [panels.HOW_TO_READ])
    nothing = r"<style.*?</style>|<metadata>.*?</metadata>"
    drawn = re.sub(nothing, "", drawn, flags=re.DOTALL)
    own = re.sub(r"\W", "-", name)
    drawn = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{own}-", drawn)
    return drawn[drawn.index("<svg ") :]


def _samples(document: Document) -> Sheet:
    """Return every sample in the order taken."""
    rows: list[list[str]] = []
    for scenario in document.scenarios:
        rows.append([scenario])
        for one in document.results:
            if one.scenario == scenario:
                samples = ", ".join(f"{value:.10g}" for value in one.samples)
                rows.append([one.variant, one.unit, samples])
    return Sheet(("variant", "unit", "samples"), rows)


def _versions(document: Document) -> dict[str, str]:
    """Return how the figures were made, to reproduce them."""
    machine = document.machine
    names = ("revision", "bulkmm", "python", "numpy", "qemu")
    held = {name: machine.get(name) for name in names}
    held["seed"] = document.run.get("seed")
    return {name: str(value) for name, value in held.items() if value is not None}


def headlines(whole: Document, name: str) -> Iterator[list[str]]:
    """Return before and after of the headlines: few scenarios, or those chosen."""
    document = whole.printed()
    results = {(r.scenario, r.variant, r.unit): r for r in document.results}
    in_grids = {s for held in grid.kinds(document).values() for s in held}
    for ratio in conclusion.ours(document):
        chosen = any(line.leads(ratio) for line in summary.HEADLINES)
        if ratio.scenario in in_grids and not chosen:
            continue
        before, after = (
            f"{one}: {table.measured(results[ratio.scenario, one, ratio.unit])}"
            for one in (ratio.base, ratio.variant)
        )
        yield [
            ratio.scenario,
            name,
            facts.where(document),
            before,
            after,
            table.factor(ratio),
            "; ".join(_published(document, ratio.scenario)),
        ]


def _published(document: Document, scenario: str) -> list[str]:
    """Return a scenario's published figures; none beside emulated work."""
    if document.emulated:
        return []
    if known := published.for_scenario(scenario):
        said = [f"{p.said}, {p.ratio:.2f}{table.TIMES}" for p in known]
        return [f"{published.MACHINE}: {said[0]}", *said[1:]]
    if document.run.get("scenario") != scenario:
        return []
    lines = document.run.get("published")
    return [str(line) for line in lines] if isinstance(lines, list) else []
