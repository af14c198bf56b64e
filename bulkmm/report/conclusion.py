# SPDX-License-Identifier: GPL-2.0-only
"""A result in one sentence; and how to measure it again."""

import shlex
from statistics import median

from bulkmm import facts, grid, table
from bulkmm.results import NS, Document, Ratio

BASES = ("rebuild", "off", "absent")  # the first present leads its scenario
# the variant that represents the module: the first of these present
LEADING = ("on", "auto", "pte", "block", "bulkmm")
PEER = "the fastest peer"
CALLED = {
    grid.STOCK: "the stock kernel's own code",
    "rebuild": "the kernel's loop",
    "off": "the module off",
    "absent": "no module",
}


def ours(document: Document) -> list[Ratio]:
    """Return the ratio that represents each scenario, or those to its peers."""
    peers = grid.best_peers(document)
    compared = {grid.kind(ratio.scenario) for ratio in peers}
    found = [
        next((held[name] for name in LEADING if name in held), None)
        for scenario in document.scenarios
        if (held := leading(document, scenario)) and grid.kind(scenario) not in compared
    ]
    return [*filter(None, found), *peers]


def leading(document: Document, scenario: str) -> dict[str, Ratio]:
    """Return the ratio of each variant to the base that leads the scenario."""
    here = [r for r in document.ratios if r.scenario == scenario]
    bases = [r.base for r in here]
    base = next((base for base in (*BASES, *bases) if base in bases), "")
    return {r.variant: r for r in here if r.base == base}


def conclude(document: Document) -> str:
    """Return one sentence: what was found, and whether it is usable."""
    cpu = "Emulated CPU" if document.emulated else facts.cpu_name(document)
    place = f"{cpu}, kernel {facts.kernel(document)} ({facts.where(document)})"
    many = len(document.checks)
    if failed := len(document.failed):
        return f"{place}: {failed} of {many} checks failed: no figure here is valid."
    if ratios := ours(document):
        said = _counted(ratios)
    elif document.emulated:
        said = "no work was counted, and its times do not reflect hardware."
    else:
        said = "nothing to compare with."
    return f"{place}: {said}{f' {many} of {many} checks passed.' if many else ''}"


def _counted(ratios: list[Ratio]) -> str:
    """Return how many ratios are faster, slower and neither, and by how much."""
    proven = [r for r in ratios if r.significant and not r.unstable]
    better = [r for r in proven if r.ratio > 1]
    worse = [r for r in proven if r.ratio < 1]
    time = ratios[0].unit == NS
    more, less = ("faster", "slower") if time else ("with less work", "with more")
    found = f"{len(better)} of {len(ratios)} {more}"
    said = [f"{found} than {base(ratios)}{_range(better)}"]
    said += [f"{len(worse)} {less}{_range(worse)}"] if worse else []
    left = len(ratios) - len(proven)
    said += [f"{left} not proven or unstable"] if left else []
    return f"{', '.join(said)}.{'' if time else ' Less work is not speed.'}"


def base(ratios: list[Ratio]) -> str:
    """Return the base of comparison."""
    bases = {r.base for r in ratios}
    return PEER if len(bases) > 1 else CALLED.get(ratios[0].base, ratios[0].base)


def _range(ratios: list[Ratio]) -> str:
    """Return a single ratio, or the median and range of several."""

    def write(value: float) -> str:
        if ratios[0].unit == NS:
            return f"{value:.2f}{table.TIMES}"
        return f"{table.removed(value):.0f} %"

    held = sorted(r.ratio for r in ratios)
    if len(held) > 1:
        ends = f"{write(held[0])} to {write(held[-1])}"
        return f" (median {write(median(held))}, {ends})"
    return f" ({write(held[0])})" if held else ""


def commands(document: Document) -> list[str]:
    """Return how to measure it again; nothing if its command is not recorded."""
    if not (argv := document.run.get("argv")):
        return []
    revision, changed, _ = str(document.machine.get("revision") or "").partition("+")
    begin = [f"git checkout {revision} && make build"] if revision else []
    begin += ["# and changes that were not committed"] if changed else []
    return [*begin, f".venv/bin/bulkmm {shlex.join(argv)}"]
