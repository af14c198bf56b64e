# SPDX-License-Identifier: GPL-2.0-only
"""The few headlines of "bench kernel", kernels side by side."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bulkmm import grid, table
from bulkmm.control import needs
from bulkmm.results import Document, Ratio
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


def headlines(documents: Iterable[Document]) -> Sheet:
    """Return the headlines, kernels side by side."""
    held = list(documents)
    headings = ["on this CPU"]
    for one in held:
        release = needs.series(str(one.machine["kernel"]))
        headings += [f"Linux {release}: stock → bulkmm", "faster"]
    found = []
    for line in HEADLINES:
        cells = [_cells(line, document) for document in held]
        if name := next((name for name, _ in cells if name), None):
            found.append([name, *(cell for _, pair in cells for cell in pair)])
    return Sheet(headings, found)


def _cells(line: Headline, document: Document) -> tuple[str, list[str]]:
    """Return a row's label and a document's cells for it."""
    for ratio in document.ratios:
        if name := line.leads(ratio):
            return name, [
                table.pair(document, ratio, rate=line.rate),
                table.factor(ratio),
            ]
    return "", ["", ""]


def _size(text: str) -> str:
    """Return a size as written in text: "100 GiB" for "100g"."""
    return f"{text[:-1]} {text[-1].upper()}iB"
