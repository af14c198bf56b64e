# SPDX-License-Identifier: GPL-2.0-only
"""Many scenarios of one kind as grids: a row each, a column for each variant.

One grid has the throughput of every variant. The other has what a goal is
stated in: time of the best peer / time of ours, with its interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bulkmm.results import Document, Ratio, Result

    Factor = Callable[[Ratio], str]

MANY = 4  # scenarios of one kind: from here on a grid is shorter than their rows
OURS = "bulkmm"
AGAIN = "-again"  # a variant measured twice: the A/A control
BOUNDS = ("limit",)  # what nobody can beat is no peer


@dataclass(frozen=True)
class Grid:
    """A table of cells; the first heading stands above the scenarios."""

    headings: list[str]
    rows: list[list[str]]
    numeric: bool


def kind(scenario: str) -> str:
    """Return what a scenario is about: its first word."""
    return scenario.partition("-")[0]


def kinds(document: Document) -> dict[str, list[str]]:
    """Return the scenarios of each kind that a native document has many of."""
    found: dict[str, list[str]] = {}
    if document.machine.get("accelerator", "native") != "native":
        return found
    for scenario in dict.fromkeys(result.scenario for result in document.results):
        found.setdefault(kind(scenario), []).append(scenario)
    return {name: held for name, held in found.items() if len(held) >= MANY}


def grids(document: Document, factor: Factor) -> list[Grid]:
    """Return the grids of all kinds that are many; ``factor`` writes a ratio."""
    found = []
    for name, scenarios in kinds(document).items():
        results = [r for r in document.results if r.scenario in scenarios]
        found.append(_rates(name, scenarios, results))
        held = goals(document.ratios, results)
        if held:
            found.append(_best(scenarios, held, factor))
    return found


def _rates(name: str, scenarios: list[str], results: list[Result]) -> Grid:
    variants = list(dict.fromkeys(r.variant for r in results))
    shown = [v for v in variants if not _is_control(v, variants)]
    cells = {
        (r.scenario, r.variant): f"{r.bytes / r.median:.1f}"
        for r in results
        if r.median > 0
    }
    rows = [[s, *(cells.get((s, v), "") for v in shown)] for s in scenarios]
    return Grid([f"{name}, GB/s", *shown], rows, numeric=True)


def _is_control(variant: str, variants: Iterable[str]) -> bool:
    return variant.endswith(AGAIN) and variant.removesuffix(AGAIN) in variants


def goals(ratios: list[Ratio], results: list[Result]) -> dict[tuple[str, str], Ratio]:
    """Return for each of ours its ratio to the fastest peer it was compared with."""
    medians = {(r.scenario, r.variant): r.median for r in results}
    found: dict[tuple[str, str], Ratio] = {}
    # The fastest base last, so that it is the one that stays.
    known = (r for r in ratios if _against_peer(r) and (r.scenario, r.base) in medians)
    for ratio in sorted(known, key=lambda r: -medians[r.scenario, r.base]):
        found[ratio.scenario, ratio.variant] = ratio
    return found


def _against_peer(ratio: Ratio) -> bool:
    ours = ratio.variant.startswith(OURS)
    return ours and not ratio.base.startswith((OURS, *BOUNDS))


def _best(
    scenarios: list[str], found: dict[tuple[str, str], Ratio], factor: Factor
) -> Grid:
    ours = sorted({variant for _, variant in found})
    rows = []
    for scenario in scenarios:
        held = [found.get((scenario, variant)) for variant in ours]
        rows.append([scenario, *(f"{r.base} {factor(r)}" if r else "" for r in held)])
    return Grid(["best peer / ours", *ours], rows, numeric=False)


def controls(document: Document) -> list[str]:
    """Return a line for each A/A control: how often chance looked like a result."""
    lines = []
    for name, scenarios in kinds(document).items():
        held = [
            r
            for r in document.ratios
            if r.scenario in scenarios and r.variant == r.base + AGAIN
        ]
        if not held:
            continue
        low, high = (pick(r.ratio for r in held) for pick in (min, max))
        equal = sum(not r.significant for r in held)
        lines.append(
            f"{name}: A/A control {held[0].base} / {held[0].variant}: "
            f"{equal} of {len(held)} ~, from {low:.2f} to {high:.2f}."
        )
    return lines
