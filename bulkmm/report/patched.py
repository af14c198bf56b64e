# SPDX-License-Identifier: GPL-2.0-only
"""What the patches in upstream/ gain: a kernel with them beside the same one without.

A result of "bench kernel --kernel base --against patched --module default".
"""

import re
from collections.abc import Mapping

from msgspec.structs import replace

from bulkmm.control import requirements
from bulkmm.control.format import format_duration
from bulkmm.results import conditions, result_tables, size_grid
from bulkmm.results.model import LIMIT, Document, Ratio, Result
from bulkmm.results.size_grid import AGAINST, KERNEL
from bulkmm.results.table import Table

# the lab's names: the newest series is not in them
RELEASE = re.compile(r"(\d+\.\d+)\.\d+\+deb1\d-(base|patched)(?:-[\d.]+)?\.\w+-amd64")
# what a series does the same work by; of several, the fastest counts
PUBLISHED = ("template-copy", "template-movnti", "rep-stosb")
MODULE = ("bulkmm", "pte", "block")  # as it comes: no forced mode
HEADINGS = (
    *("base → patched", "faster", "of the published method", "of the module"),
    "of the limit",
)

SHARES = (
    "faster: how much the patches gain over base; of the …: how fast they are relative "
    "to these, 1.00 is as fast. bulkmm show --all-rows RESULT.json (bench keeps one "
    "with -o) has every variant, relative to the patched kernel."
)
LEGENDS = SHARES, result_tables.PAIRED, result_tables.CONTROLS, result_tables.LEGEND


def list_notes(document: Document) -> list[str]:
    """Return the notes below the table of one result."""
    return [
        *filter(None, [conditions.describe_load(document)]),
        f"patched: {document.run[AGAINST]}.",
        *size_grid.describe_controls(document),
        *conditions.list_footnotes(document),
    ]


def make_cpu_table(document: Document) -> Table:
    """Return the table of one result alone, headed by its CPU."""
    table = make_table(document)
    kernel, times, *ratios = table.headings
    first = f"{conditions.cpu_name(document)}, {kernel}"
    brief = Table(
        [first, *(name.removeprefix("of the ") for name in ratios)],
        [[scenario, *cells] for scenario, _, *cells in table.rows],
    )
    headings = [first, times, *ratios]
    return Table(headings, table.rows, brief=brief.drop_empty()).drop_empty()


def is_of_patches(document: Document) -> bool:
    """Return whether a result is of the lab's two kernels, without and with them."""
    two = conditions.get_kernel(document), str(document.run.get(AGAINST))
    (base, patched) = (RELEASE.fullmatch(release) for release in two)
    if not base or not patched or base[1] != patched[1]:
        return False
    return (base[2], patched[2]) == ("base", "patched")


def make_table(document: Document) -> Table:
    """Return a table with a row per scenario: times, and patched beside the others."""
    series = requirements.series_of(conditions.get_kernel(document))
    rows = [_make_row(document, ratio) for ratio in _list_gains(document)]
    kernel = f"Linux {series}, {conditions.name_returns(document)}"
    return Table((kernel, *HEADINGS), rows)


def select_gains(document: Document) -> Document:
    """Return a result as if the kernel without the patches were its only base."""
    return replace(document, ratios=_list_gains(document))


def _list_gains(document: Document) -> list[Ratio]:
    return [
        invert_ratio(ratio)
        for ratio in document.ratios
        if (ratio.base, ratio.variant) == (AGAINST, KERNEL)
    ]


def invert_ratio(ratio: Ratio) -> Ratio:
    """Return the same with base and variant exchanged."""
    low, high = ratio.ci95
    base, variant, inverse = ratio.variant, ratio.base, 1 / ratio.ratio
    spread = 1 / high, 1 / low
    return replace(ratio, base=base, variant=variant, ratio=inverse, ci95=spread)


def _make_row(document: Document, ratio: Ratio) -> list[str]:
    arms = {r.variant: r for r in document.results if r.scenario == ratio.scenario}
    two = (arms[name].median for name in (KERNEL, AGAINST))
    times = " → ".join(map(format_duration, two))
    shares = (_format_share(arms, ways) for ways in (PUBLISHED, MODULE, (LIMIT,)))
    return [ratio.scenario, times, result_tables.format_ratio(ratio), *shares]


def _format_share(arms: Mapping[str, Result], ways: tuple[str, ...]) -> str:
    """Return how fast patched is relative to the fastest of some ways."""
    medians = [arms[way].median for way in ways if way in arms]
    return f"{min(medians) / arms[AGAINST].median:.2f}" if medians else ""
