# SPDX-License-Identifier: GPL-2.0-only
"""Many scenarios of one kind as grids: a row each, a column per variant.

One grid has the throughput of every variant. The other has the measure of goals:
time of the best peer / time of ours, with its interval.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from bulkmm.bench.subjects import CLEAR, COPY, LIMIT, split
from bulkmm.results import Document, Ratio, Result
from bulkmm.sheet import Sheet

Factor = Callable[[Ratio], str]

MANY = 4  # from this many scenarios of one kind a grid is shorter than rows
OURS = "bulkmm"
STOCK = "stock"  # a kernel's own code
AGAINST = "against"  # the same of the kernel to compare with
AGAIN = "-again"  # a variant measured twice: the A/A control
FIRST_USE = "first-use"
# scenarios of a size, and how their memory is used
SIZED = re.compile(r"(clear|copy)-(([0-9]+)([bkmgt]))(?:-(.+))?")
USES = {
    "again": "again, hot",
    "then-read": "then read in order",
    "then-write": "then write in order",
    "then-random": "then read at random",
    "misaligned": "misaligned",
    "misaligned-again": "misaligned, again, hot",
}


def kind(scenario: str) -> str:
    """Return a scenario's kind: its first word, or FIRST_USE."""
    return FIRST_USE if scenario.startswith(FIRST_USE) else scenario.partition("-")[0]


def kinds(document: Document) -> dict[str, list[str]]:
    """Return the scenarios of each kind with many in a native document."""
    found: dict[str, list[str]] = {}
    if document.machine.get("accelerator", "native") != "native":
        return found
    for scenario in document.scenarios:
        found.setdefault(kind(scenario), []).append(scenario)
    return {name: held for name, held in found.items() if len(held) >= MANY}


def of_kernel(document: Document) -> bool:
    """Return whether a kernel's own code was measured: the one base there."""
    return any(ratio.base in (STOCK, AGAINST) for ratio in document.ratios)


def usual(document: Document) -> Document:
    """Return a document without single backends and kinds of limit."""

    def kept(variant: str) -> bool:
        return not split(variant)[2] or not variant.startswith((OURS, LIMIT))

    return replace(
        document,
        results=[r for r in document.results if kept(r.variant)],
        ratios=[r for r in document.ratios if kept(r.base) and kept(r.variant)],
    )


def of_one_thread(results: Iterable[Result]) -> list[Result]:
    """Return the single-threaded results; multi-threaded ones have a single size."""
    return [r for r in results if not split(r.variant)[1]]


def picked(document: Document, scenario: str, variant: str) -> str:
    """Return the backend that served a variant, or the kind of the limit."""
    picks = document.run.get("picks", {})
    return str(picks.get(scenario, {}).get(variant, ""))


def grids(document: Document, factor: Factor) -> list[Sheet]:
    """Return the grids of kinds with many scenarios; ``factor`` formats a ratio."""
    found = []
    every = of_one_thread(document.results)
    for name, scenarios in kinds(document).items():
        results = [r for r in every if r.scenario in scenarios]
        found.append(_rates(name, scenarios, results))
        if held := goals(document, scenarios):
            found.append(_best(document, scenarios, held, factor))
    return found


def _rates(name: str, scenarios: list[str], results: list[Result]) -> Sheet:
    variants = list(dict.fromkeys(r.variant for r in results))
    shown = [v for v in variants if v.removesuffix(AGAIN) not in {*variants} - {v}]
    cells = {(r.scenario, r.variant): rate(r) for r in results if r.median > 0}
    rows = [[s, *(cells.get((s, v), "") for v in shown)] for s in scenarios]
    return Sheet([f"{name}, GB/s", *shown], rows, shown)


def by_size(document: Document) -> Iterator[Sheet]:
    """Return GB/s of clearing and of copying, by size and by use of the memory.

    Ours is the call meant for that use; beside it the fastest peer, and the limit.
    """
    arms = document.arms
    for subject in (CLEAR, COPY):
        found: dict[str, dict[str, str]] = {}
        for scenario in document.scenarios:
            sized = SIZED.fullmatch(scenario)
            if not sized or sized[1] != subject.name:
                continue
            use = sized[5] or ""
            ours = "bulkmm-streaming" if use in ("", "misaligned") else "bulkmm-cached"
            peers = (arms.get((scenario, name)) for name in subject.peers[ours])
            best = min(filter(None, peers), key=attrgetter("median"))
            limit = arms.get((scenario, LIMIT))
            beside = (f"{one.variant} {rate(one)}" for one in (best, limit) if one)
            cell = "; ".join((rate(arms[scenario, ours]), *beside))
            found.setdefault(sized[2], {})[use] = cell
        uses = list(dict.fromkeys(use for cells in found.values() for use in cells))
        heads = [f"{subject.name}, GB/s", *(USES.get(use, "cold") for use in uses)]
        rows = [
            [n, *(cells.get(use, "") for use in uses)] for n, cells in found.items()
        ]
        yield Sheet(heads, rows)


def rate(arm: Result) -> str:
    """Return an arm's GB/s."""
    return f"{arm.bytes / arm.median:.1f}"


def goals(document: Document, scenarios: Iterable[str]) -> dict[tuple[str, str], Ratio]:
    """Return the ratio of each of ours to the fastest peer compared."""
    arms = document.arms
    known = [r for r in document.ratios if r.scenario in scenarios and _against_peer(r)]
    # The fastest base last, so that it overwrites the others.
    known.sort(key=lambda r: -arms[r.scenario, r.base].median)
    return {(ratio.scenario, ratio.variant): ratio for ratio in known}


def _against_peer(ratio: Ratio) -> bool:
    _, threads, kind = split(ratio.variant)
    ours = ratio.variant.startswith(OURS) and not (threads or kind)
    return ours and not ratio.base.startswith((OURS, LIMIT))


def _best(
    document: Document,
    scenarios: list[str],
    found: dict[tuple[str, str], Ratio],
    factor: Factor,
) -> Sheet:
    ours = sorted({variant for _, variant in found})

    def cell(scenario: str, variant: str) -> str:
        ratio = found.get((scenario, variant))
        pick = picked(document, scenario, variant)
        said = f"{ratio.base} {factor(ratio)}" if ratio else ""
        return f"{pick}; {said}" if pick and said else said

    rows = [[s, *(cell(s, variant) for variant in ours)] for s in scenarios]
    picks = "pick; " if document.run.get("picks") else ""
    return Sheet([f"{picks}best peer / ours", *ours], rows)


def controls(document: Document) -> list[str]:
    """Return a line for each A/A control: how often chance looked like an effect."""
    lines = []
    every = {"": document.scenarios} if of_kernel(document) else kinds(document)
    for name, scenarios in every.items():
        held = [
            r
            for r in document.ratios
            if r.scenario in scenarios and r.variant == r.base + AGAIN
        ]
        if held:
            low, high = (pick(r.ratio for r in held) for pick in (min, max))
            equal = sum(not r.significant for r in held)
            lines.append(
                (f"{name}: " if name else "")
                + f"A/A control {held[0].base} / {held[0].variant}: "
                f"{equal} of {len(held)} ~, from {low:.2f} to {high:.2f}."
            )
    return lines
