# SPDX-License-Identifier: GPL-2.0-only
"""Many scenarios of one kind as grids of throughput.

One grid has a row per scenario and a column per variant; the other what they say of
ours, by size and by use of the memory.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from bulkmm.results.model import AGAIN, BULKMM, LIMIT, Document, Ratio, Result
from bulkmm.results.table import Table
from bulkmm.shell.size import name_size

MANY = 4  # from this many scenarios of one operation a grid is shorter than rows
STOCK = "stock"  # a kernel's own code
AGAINST = "against"  # the same of the kernel to compare with
KERNEL = "kernel"  # and of the other
USES = {
    "again": "again, hot",
    "then-read": "then read in order",
    "then-write": "then write in order",
    "then-random": "then read at random",
}


def describe_use(result: Result) -> str:
    """Return how the memory lies and is used; nothing if it is cold and not used."""
    words = result.placement, USES.get(result.use, result.use)
    return ", ".join(filter(None, words))


def scenarios_of(document: Document) -> dict[str, list[str]]:
    """Return the scenarios of each operation with many in a native document."""
    groups: dict[str, dict[str, None]] = {}
    if document.machine.get("accelerator", "native") == "native":
        for result in document.results:
            groups.setdefault(result.operation, {})[result.scenario] = None
    return {name: [*group] for name, group in groups.items() if len(group) >= MANY}


def is_of_kernel(document: Document) -> bool:
    """Return whether a kernel's own code was measured: the one base there."""
    return any(ratio.base in (STOCK, AGAINST) for ratio in document.ratios)


def select_usual(document: Document) -> Document:
    """Return a document without single backends and kinds of limit."""
    results = [result for result in document.results if not result.backend]
    keys = {result.key for result in results}
    ratios = [
        r
        for r in document.ratios
        if keys >= {(r.scenario, r.base), (r.scenario, r.variant)}
    ]
    return replace(document, results=results, ratios=ratios)


def select_one_thread(results: Iterable[Result]) -> list[Result]:
    """Return the results without those of several threads that have a single size."""
    return [r for r in results if r.threads == 1 or not r.is_sized]


def get_backend(document: Document, scenario: str, variant: str) -> str:
    """Return the backend that served a variant, or the kind of the limit."""
    picks = document.run.get("picks", {})
    return str(picks.get(scenario, {}).get(variant, ""))


def make_grids(document: Document) -> Iterator[Table]:
    """Return GB/s of all variants of operations with many scenarios, and by size."""
    arms = select_one_thread(document.results)
    for name, scenarios in scenarios_of(document).items():
        results = [r for r in arms if r.operation == name and r.control != AGAIN]
        columns = list(dict.fromkeys(r.variant for r in results))
        cells = {r.key: format_rate(r) for r in results}
        rows = [[s, *(cells.get((s, v), "") for v in columns)] for s in scenarios]
        yield Table([f"{name}, GB/s", *columns], rows, columns)
    yield from make_size_grids(document)


def make_size_grids(document: Document) -> Iterator[Table]:
    """Return GB/s of the call meant for a use of the memory, by size and by use.

    With the backend picked; beside it the fastest peer and the limit.
    """
    arms, peers = document.arms, {r.scenario: r for r in best_peers(document)}
    sheets: dict[str, dict[str, dict[str, str]]] = {}
    for ratio in (peers[s] for s in document.scenarios if s in peers):
        result, base = (arms[ratio.scenario, v] for v in (ratio.variant, ratio.base))
        if not result.is_sized:
            continue
        pick = get_backend(document, *result.key)
        parts = [f"{format_rate(result)} {pick}".rstrip()]
        parts += [
            f"{base.variant} {format_rate(base)}{'' if ratio.significant else ' ~'}"
        ]
        if limit := arms.get((ratio.scenario, LIMIT)):
            parts += [f"limit {format_rate(limit)}"]
        rates = sheets.setdefault(result.operation, {})
        cells = rates.setdefault(name_size(result.size).lower(), {})
        cells[describe_use(result)] = "; ".join(parts)
    for name, rates in sheets.items():
        uses = list(dict.fromkeys(use for cells in rates.values() for use in cells))
        heads = [use or "cold" for use in uses]
        rows = [[n, *(its.get(use, "") for use in uses)] for n, its in rates.items()]
        yield Table([f"{name}, GB/s: ours; fastest peer", *heads], rows)


def format_rate(arm: Result) -> str:
    """Return an arm's GB/s; nothing if the clock stood still."""
    return f"{arm.bytes / arm.median:.1f}" if arm.median else ""


def best_peers(document: Document) -> list[Ratio]:
    """Return the ratio of ours to the fastest peer, in kinds with a grid.

    A bench of the core has peers; a bench of kernel code has only that code. Of the
    core's calls that clear or copy, ours is the one meant for the use.
    """
    if is_of_kernel(document):
        return []
    arms = document.arms
    within = scenarios_of(document)
    ratios = [
        (arms[r.scenario, r.base].median, r)
        for r in document.ratios
        if arms[r.scenario, r.base].operation in within
        if _is_leading(arms[r.scenario, r.variant])
        and arms[r.scenario, r.base].arm not in (BULKMM, LIMIT)
    ]
    # The fastest base last, so that it overwrites the others.
    ratios.sort(key=lambda pair: -pair[0])
    return list({(r.scenario, r.variant): r for _, r in ratios}.values())


def _is_leading(result: Result) -> bool:
    """Return whether it is ours, by itself, and the call meant for the use."""
    call, threads = result.call, result.threads
    if result.is_sized:
        call, threads = ("cached" if result.use else "streaming"), 1
    wanted = {"arm": BULKMM, "call": call, "threads": threads, "backend": ""}
    return result.matches({**wanted, "control": ""})


def describe_controls(document: Document) -> list[str]:
    """Return a line for each A/A control: how often chance looked like an effect."""
    lines, arms = [], document.arms
    whole = (
        {"": document.scenarios} if is_of_kernel(document) else scenarios_of(document)
    )
    for name, scenarios in whole.items():
        ratios = [
            r
            for r in document.ratios
            if r.scenario in scenarios
            if arms[r.scenario, r.variant].control == AGAIN
            and arms[r.scenario, r.variant].arm == arms[r.scenario, r.base].arm
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
