# SPDX-License-Identifier: GPL-2.0-only
"""Many scenarios of one kind as grids of throughput.

One grid has a row per scenario and a column per variant; the other what they say of
ours, by size and by use of the memory.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from bulkmm.results.model import Document, Ratio, Result
from bulkmm.results.sheet import Sheet
from bulkmm.results.variants import LIMIT, OURS, split

MANY = 4  # from this many scenarios of one kind a grid is shorter than rows
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
    groups: dict[str, list[str]] = {}
    if document.machine.get("accelerator", "native") != "native":
        return groups
    for scenario in document.scenarios:
        groups.setdefault(kind(scenario), []).append(scenario)
    return {name: held for name, held in groups.items() if len(held) >= MANY}


def of_kernel(document: Document) -> bool:
    """Return whether a kernel's own code was measured: the one base there."""
    return any(ratio.base in (STOCK, AGAINST) for ratio in document.ratios)


def usual(document: Document) -> Document:
    """Return a document without single backends and kinds of limit."""

    def is_usual(variant: str) -> bool:
        return not split(variant)[2] or not variant.startswith((OURS, LIMIT))

    return replace(
        document,
        results=[r for r in document.results if is_usual(r.variant)],
        ratios=[r for r in document.ratios if is_usual(r.base) and is_usual(r.variant)],
    )


def of_one_thread(results: Iterable[Result]) -> list[Result]:
    """Return the single-threaded results; multi-threaded ones have a single size."""
    return [r for r in results if not split(r.variant)[1]]


def picked(document: Document, scenario: str, variant: str) -> str:
    """Return the backend that served a variant, or the kind of the limit."""
    picks = document.run.get("picks", {})
    return str(picks.get(scenario, {}).get(variant, ""))


def grids(document: Document) -> Iterator[Sheet]:
    """Return GB/s of all variants of kinds with many scenarios, then ``by_size``."""
    arms = of_one_thread(document.results)
    for name, scenarios in kinds(document).items():
        results = [r for r in arms if r.scenario in scenarios]
        variants = list(dict.fromkeys(r.variant for r in results))
        columns = [
            v for v in variants if v.removesuffix(AGAIN) not in {*variants} - {v}
        ]
        cells = {(r.scenario, r.variant): rate(r) for r in results}
        rows = [[s, *(cells.get((s, v), "") for v in columns)] for s in scenarios]
        yield Sheet([f"{name}, GB/s", *columns], rows, columns)
    yield from by_size(document)


def by_size(document: Document) -> Iterator[Sheet]:
    """Return GB/s of the call meant for a use of the memory, by size and by use.

    With the backend picked; beside it the fastest peer and the limit.
    """
    arms, peers = document.arms, {r.scenario: r for r in best_peers(document)}
    for name, scenarios in kinds(document).items():
        rates: dict[str, dict[str, str]] = {}
        for scenario in scenarios:
            sized, ratio = SIZED.fullmatch(scenario), peers.get(scenario)
            if not sized or not ratio:
                continue
            mark = "" if ratio.significant else " ~"
            pick = picked(document, scenario, ratio.variant)
            parts = [f"{rate(arms[scenario, ratio.variant])} {pick}".rstrip()]
            parts += [f"{ratio.base} {rate(arms[scenario, ratio.base])}{mark}"]
            if limit := arms.get((scenario, LIMIT)):
                parts += [f"limit {rate(limit)}"]
            rates.setdefault(sized[2], {})[sized[5] or ""] = "; ".join(parts)
        uses = list(dict.fromkeys(use for cells in rates.values() for use in cells))
        heads = [USES.get(use, "cold") for use in uses]
        rows = [[n, *(its.get(use, "") for use in uses)] for n, its in rates.items()]
        if rows:
            yield Sheet([f"{name}, GB/s: ours; fastest peer", *heads], rows)


def rate(arm: Result) -> str:
    """Return an arm's GB/s; nothing if the clock stood still."""
    return f"{arm.bytes / arm.median:.1f}" if arm.median else ""


def best_peers(document: Document) -> list[Ratio]:
    """Return the ratio of ours to the fastest peer, in kinds with a grid.

    A bench of the core has peers; a bench of kernel code has only that code. Of the
    core's calls that clear or copy, ours is the one meant for the use.
    """
    if of_kernel(document):
        return []
    arms = document.arms
    within = {s for scenarios in kinds(document).values() for s in scenarios}
    ratios = [r for r in document.ratios if r.scenario in within and _against_peer(r)]
    # The fastest base last, so that it overwrites the others.
    ratios.sort(key=lambda r: -arms[r.scenario, r.base].median)
    return list({(ratio.scenario, ratio.variant): ratio for ratio in ratios}.values())


def _against_peer(ratio: Ratio) -> bool:
    _, threads, kind = split(ratio.variant)
    is_ours = ratio.variant.startswith(OURS) and not (threads or kind)
    if sized := SIZED.fullmatch(ratio.scenario):
        call = "streaming" if sized[5] in (None, "misaligned") else "cached"
        is_ours = ratio.variant == f"{OURS}-{call}"
    return is_ours and not ratio.base.startswith((OURS, LIMIT))


def controls(document: Document) -> list[str]:
    """Return a line for each A/A control: how often chance looked like an effect."""
    lines = []
    groups = {"": document.scenarios} if of_kernel(document) else kinds(document)
    for name, scenarios in groups.items():
        ratios = [
            r
            for r in document.ratios
            if r.scenario in scenarios and r.variant == r.base + AGAIN
        ]
        if ratios:
            low, high = (pick(r.ratio for r in ratios) for pick in (min, max))
            equal = sum(not r.significant for r in ratios)
            lines.append(
                (f"{name}: " if name else "")
                + f"A/A control {ratios[0].base} / {ratios[0].variant}: "
                f"{equal} of {len(ratios)} ~, from {low:.2f} to {high:.2f}."
            )
    return lines
