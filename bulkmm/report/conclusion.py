# SPDX-License-Identifier: GPL-2.0-only
"""A result in one sentence; and how to measure it again."""

import shlex
from statistics import median

from bulkmm.results import conditions, result_tables, size_grid
from bulkmm.results.model import NS, Document, Ratio

# the first present leads its scenario
BASES = ("rebuild", "off", "absent", "prealloc", "read")
# the variant that represents the module, or patches: the first of these present
LEADING = ("on", "auto", "pte", "block", "bulkmm", "server", "kept", size_grid.AGAINST)
PEER = "the fastest peer"
BASE_NAMES = {
    size_grid.STOCK: "the stock kernel's own code",
    size_grid.AGAINST: "the kernel of --against",
    size_grid.KERNEL: "the kernel without the patches",
    "rebuild": "the kernel's loop",
    "off": "the module off",
    "absent": "no module",
    "prealloc": "QEMU's prealloc",
    "read": "a read of the file",
}


def select_ratios(document: Document) -> list[Ratio]:
    """Return the ratio that represents each scenario, or those to its peers."""
    peers = size_grid.best_peers(document)
    operations = {r.scenario: r.operation for r in document.results}
    with_peers = {operations[ratio.scenario] for ratio in peers}
    representatives = [
        next((by_variant[name] for name in LEADING if name in by_variant), None)
        for scenario in document.scenarios
        if (by_variant := select_leading(document, scenario))
        and operations[scenario] not in with_peers
    ]
    return [*filter(None, representatives), *peers]


def select_leading(document: Document, scenario: str) -> dict[str, Ratio]:
    """Return the ratio of each variant to the base that leads the scenario."""
    ratios = [r for r in document.ratios if r.scenario == scenario]
    bases = [r.base for r in ratios]
    base = next((base for base in (*BASES, *bases) if base in bases), "")
    return {r.variant: r for r in ratios if r.base == base}


def draw_conclusion(document: Document) -> str:
    """Return one sentence: what was found, and whether it is usable."""
    cpu = "Emulated CPU" if document.emulated else conditions.describe_cpu(document)
    where = conditions.get_accelerator(document)
    place = f"{cpu}, kernel {conditions.get_kernel(document)} ({where})"
    many = len(document.checks)
    if failed := len(document.failed):
        return f"{place}: {failed} of {many} checks failed: no figure here is valid."
    if ratios := select_ratios(document):
        summary = _count_verdicts(ratios)
    elif document.emulated:
        summary = "no work was counted, and its times do not reflect hardware."
    else:
        summary = "nothing to compare with."
    checks = f"{many} of {many} checks passed." if many else ""
    return " ".join(
        filter(
            None, [f"{place}: {summary}", checks, conditions.describe_load(document)]
        )
    )


def _count_verdicts(ratios: list[Ratio]) -> str:
    """Return how many ratios are faster, slower and neither, and by how much."""
    proven = [r for r in ratios if r.significant and not r.unstable]
    better = [r for r in proven if r.ratio > 1]
    worse = [r for r in proven if r.ratio < 1]
    time = ratios[0].unit == NS
    more, less = ("faster", "slower") if time else ("with less work", "with more")
    share = f"{len(better)} of {len(ratios)} {more}"
    parts = [f"{share} than {name_base(ratios)}{_range(better)}"]
    parts += [f"{len(worse)} {less}{_range(worse)}"] if worse else []
    shaky = [r for r in ratios if r.significant and r.unstable and r.ratio < 1]
    parts += [f"{len(shaky)} {less}, unstable{_range(shaky)}"] if shaky else []
    unproven = len(ratios) - len(proven) - len(shaky)
    parts += [f"{unproven} not proven or unstable"] if unproven else []
    return f"{', '.join(parts)}.{'' if time else ' Less work is not speed.'}"


def name_base(ratios: list[Ratio]) -> str:
    """Return the base of comparison."""
    bases = dict.fromkeys(r.base for r in ratios)
    if len(bases) > 1 and not {*bases} <= {*BASE_NAMES}:
        return PEER
    return " and ".join(BASE_NAMES.get(base, base) for base in bases)


def _range(ratios: list[Ratio]) -> str:
    """Return a single ratio, or the median and range of several."""

    def write(value: float) -> str:
        if ratios[0].unit == NS:
            return f"{value:.2f}{result_tables.TIMES}"
        return f"{result_tables.compute_saving(value):.0f} %"

    values = sorted(r.ratio for r in ratios)
    if len(values) > 1:
        ends = f"{write(values[0])} to {write(values[-1])}"
        return f" (median {write(median(values))}, {ends})"
    return f" ({write(values[0])})" if values else ""


def list_commands(document: Document) -> list[str]:
    """Return how to measure it again; nothing if its command is not recorded."""
    if not (argv := document.run.get("argv")):
        return []
    revision, changed, _ = str(document.machine.get("revision") or "").partition("+")
    begin = [f"git checkout {revision} && make build"] if revision else []
    begin += ["# and changes that were not committed"] if changed else []
    return [*begin, f".venv/bin/bulkmm {shlex.join(argv)}"]
