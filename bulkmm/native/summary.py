# SPDX-License-Identifier: GPL-2.0-only
"""Kernels side by side: the few headlines of "bench kernel", and all of ours."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bulkmm import grid, table
from bulkmm.control import needs, text
from bulkmm.results import Document, Ratio, Result
from bulkmm.sheet import Sheet


@dataclass(frozen=True)
class Headline:
    """A headline row: what is done, and the scenario and arm that show it."""

    what: str  # "{}" is the size in the scenario's name
    scenario: re.Pattern[str]
    ours: str
    rate: bool = False  # show GB/s, if no size is typical

    def leads(self, ratio: Ratio) -> str:
        """Return the label of a ratio's row; "" if the ratio is not of this row."""
        named = self.scenario.fullmatch(ratio.scenario)
        if not named or (ratio.base, ratio.variant) != (grid.STOCK, self.ours):
            return ""
        return self.what.format(_size(named[1]))


HEADLINES = (
    Headline("{} device, fsdax", re.compile(r"pmem-fsdax-(\d+g)"), "bulkmm"),
    Headline("{} device, devdax 2 MiB", re.compile(r"pmem-devdax-(\d+g)"), "bulkmm"),
    Headline(
        "populate huge pages", re.compile(r"thp-(2m)-populate"), "bulkmm", rate=True
    ),
    Headline("touch huge pages", re.compile(r"thp-(2m)"), "bulkmm", rate=True),
    Headline("vmap() {} in blocks of 1 MiB", re.compile(r"vmap-(\d+m)-order8"), "pte"),
    Headline("vmap() {} of single pages", re.compile(r"vmap-(\d+m)-order0"), "pte"),
)


OURS = ("bulkmm", "pte", "block")  # the module as it is, not what else it could use


def headlines(documents: Iterable[Document]) -> Sheet:
    """Return the headlines, kernels side by side."""
    held = list(documents)
    headings = ["on this CPU", *_headings(held, "faster")]
    found = []
    for line in HEADLINES:
        cells = [_cells(line, document) for document in held]
        if name := next((name for name, _ in cells if name), None):
            found.append([name, *(cell for _, pair in cells for cell in pair)])
    return Sheet(headings, found)


def every(documents: Iterable[Document]) -> Sheet:
    """Return a row for each way in which the module serves a scenario."""
    held = list(documents)
    cells = [
        {(r.scenario, r.variant): r for r in one.ratios if _of_ours(r)} for one in held
    ]
    # in the newest kernel's order, which has them all
    keys = dict.fromkeys(key for one in reversed(cells) for key in one)
    rows = [
        [
            *key,
            *(
                cell
                for d, c in zip(held, cells, strict=True)
                for cell in _full(d, c.get(key))
            ),
        ]
        for key in keys
    ]
    return Sheet(["scenario", "variant", *_headings(held, "faster; of limit")], rows)


def _of_ours(ratio: Ratio) -> bool:
    return ratio.base == grid.STOCK and ratio.variant in OURS


def _full(document: Document, ratio: Ratio | None) -> list[str]:
    """Return a kernel's cells for a ratio: also how near to the limit that is."""
    if not ratio:
        return ["", ""]
    times, faster = _pair(ratio, document)
    arms = {r.variant: r for r in document.results if r.scenario == ratio.scenario}
    if limit := arms.get(grid.LIMIT):
        faster += f"; {limit.median / arms[ratio.variant].median:.2f}"
    return [times, faster]


def _headings(documents: list[Document], gain: str) -> list[str]:
    releases = [needs.series(str(one.machine["kernel"])) for one in documents]
    return [x for one in releases for x in (f"Linux {one}: stock → bulkmm", gain)]


def _cells(line: Headline, document: Document) -> tuple[str, list[str]]:
    """Return a row's label and a document's cells for it."""
    for ratio in document.ratios:
        if name := line.leads(ratio):
            return name, _pair(ratio, document, rate=line.rate)
    return "", ["", ""]


def _size(text: str) -> str:
    """Return a size as written in text: "100 GiB" for "100g"."""
    return f"{text[:-1]} {text[-1].upper()}iB"


def _pair(ratio: Ratio, document: Document, *, rate: bool = False) -> list[str]:
    arms = {(one.scenario, one.variant): one for one in document.results}
    stock = arms[ratio.scenario, ratio.base]
    ours = arms[ratio.scenario, ratio.variant]
    if rate:
        said = f"{_rate(stock)} → {_rate(ours)} GB/s"
    else:
        said = f"{text.duration(stock.median)} → {text.duration(ours.median)}"
    return [said, table.factor(ratio)]


def _rate(arm: Result) -> str:
    return f"{arm.bytes / arm.median:.1f}"
