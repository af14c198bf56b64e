# SPDX-License-Identifier: GPL-2.0-only
"""The content of a figure: panels, arms and points, without drawing."""

import re
from collections import Counter
from dataclasses import dataclass, field

from bulkmm import facts, grid
from bulkmm.report import conclusion
from bulkmm.results import NS, STORES, Document, Ratio, Result

SERIES = re.compile(r"(clear|copy)-([0-9]+)([bkmgt])(?:-(.+))?")
TITLES = {
    ("clear", ""): "clear",
    ("clear", "then-read"): "clear, then read in order",
    ("clear", "then-write"): "clear, then write in order",
    ("clear", "then-random"): "clear, then read at random",
    ("clear", "again"): "clear again, hot",
    ("copy", ""): "copy, cold",
    ("copy", "misaligned"): "copy, misaligned",
    ("copy", "again"): "copy again, hot",
    ("copy", "misaligned-again"): "copy again, hot, misaligned",
}
HOW_TO_READ = (
    "GB/s: bytes written, in the time of writing and of the use that follows. "
    "Ratios: filled if proven, hollow if not. Bars: 95 % interval, below six samples "
    "the range."
)
EMULATION = "emulation (TCG)"


@dataclass(frozen=True)
class Point:
    """Throughput of one size, in GB/s (bytes per ns), with its interval or range."""

    size: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Arm:
    """One variant in one panel, by size."""

    label: str
    variant: str
    source: int  # index of the document
    points: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Panel:
    """One operation and use by size, or a result's ratios."""

    title: str
    emulated: bool
    arms: list[Arm] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)


def panels(documents: list[Document], names: list[str] | None = None) -> list[Panel]:
    """Return what to draw: throughput by size, then the ratios of what has no sizes."""
    names = names or [f"result {i + 1}" for i in range(len(documents))]
    documents = [document.printed() for document in documents]
    ratios = [_ratios(*pair) for pair in zip(documents, names, strict=True)]
    return [*_by_size(documents, names), *(one for one in ratios if one.ratios)]


def _by_size(documents: list[Document], names: list[str]) -> list[Panel]:
    """Return a panel for each use of the memory; names tell equal arms apart."""
    drawn = [
        [r for r in grid.of_one_thread(grid.shown(document)) if _series(r)]
        for document in documents
    ]
    seen = Counter((r.scenario, r.variant) for results in drawn for r in results)
    twice = any(count > 1 for count in seen.values())
    found: dict[str, Panel] = {}
    for i, (document, name) in enumerate(zip(documents, names, strict=True)):
        emulated = facts.where(document) == "TCG"
        for result in drawn[i]:
            title, point = _point(result)
            title = f"{title}: {EMULATION}" if emulated else title
            panel = found.setdefault(title, Panel(title, emulated))
            label = f"{result.variant} ({name})" if twice else result.variant
            arm = next((one for one in panel.arms if one.label == label), None)
            if not arm:
                panel.arms.append(arm := Arm(label, result.variant, i))
            arm.points.append(point)
            arm.points.sort(key=lambda point: point.size)
    return list(found.values())


def _series(result: Result) -> re.Match[str] | None:
    """Return the parts of a series' name; an interval that includes 0 has no rate."""
    if result.unit != NS or not (result.median > 0 and result.ci95[0] > 0):
        return None
    return SERIES.fullmatch(result.scenario)


def _point(result: Result) -> tuple[str, Point]:
    """Return the title of a result's panel, and its point there."""
    parts = SERIES.fullmatch(result.scenario)
    operation, number, unit, use = parts.groups(default="") if parts else ("",) * 4
    said = f"{operation}, {use.replace('-', ' ')}".rstrip(", ")
    size = int(number) << 10 * "bkmgt".index(unit)
    rates = [result.bytes / ns for ns in (result.median, *reversed(result.ci95))]
    return TITLES.get((operation, use), said), Point(size, *rates)


def _ratios(document: Document, name: str) -> Panel:
    """Return the module's ratios in the scenarios that no panel has by size."""
    ratios = [
        ratio
        for ratio in conclusion.ours(document)
        if not SERIES.fullmatch(ratio.scenario) and ratio.unit != STORES
    ]
    work = "less work" if document.emulated else "faster"
    than = conclusion.base(ratios) if ratios else ""
    emulated = f": {EMULATION}" if document.emulated else ""
    title = f"{name}: how many times {work} than {than}{emulated}"
    return Panel(title, document.emulated, ratios=ratios)


def title(found: list[Panel]) -> str:
    """Return the figure's title."""
    kinds = ["throughput by size"] if any(panel.arms for panel in found) else []
    kinds += ["ratios"] if any(panel.ratios for panel in found) else []
    emulated = f"; {EMULATION}" if any(panel.emulated for panel in found) else ""
    return f"bulkmm: {', '.join(kinds)}{emulated}"


def footnotes(documents: list[Document]) -> list[str]:
    """Return the figure's caption: the machine, n, how to read it."""
    lines = [line for document in documents for line in facts.footnotes(document)]
    return list(dict.fromkeys([*lines, HOW_TO_READ]))


def description(found: list[Panel]) -> str:
    """Return a description of the figure in words."""
    said = []
    for panel in found:
        shown = [f"{arm.label}" for arm in panel.arms] or [
            f"{one.scenario} {one.variant} {one.ratio:.2f}" for one in panel.ratios
        ]
        what = ", GB/s by size" if panel.arms else ""
        said.append(f"{panel.title}{what}: {', '.join(shown)}.")
    return " ".join(said)
