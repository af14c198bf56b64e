# SPDX-License-Identifier: GPL-2.0-only
"""The content of a figure: panels, arms and points, without drawing."""

import re
from collections import Counter
from dataclasses import dataclass, field

from bulkmm import facts, grid
from bulkmm.results import NS, STORES, Document, Result

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
    "Bars: 95 % interval of the median, below six samples the range. Strips: samples, "
    "downwards in the order taken."
)
EMULATION = "emulation (TCG)"
MS, WORK = "ms", "million instructions"  # units of samples


@dataclass(frozen=True)
class Point:
    """Throughput of one size, in GB/s (bytes per ns), with its interval or range."""

    size: int
    rate: float
    low: float
    high: float


@dataclass
class Arm:
    """One variant in one panel: points by size, or raw samples."""

    label: str
    variant: str
    source: int  # index of the document
    points: list[Point] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)
    median: float = 0
    low: float = 0
    high: float = 0


@dataclass
class Panel:
    """One operation and use, or one scenario without sizes."""

    title: str
    by_size: bool
    emulated: bool
    unit: str = "GB/s"
    arms: list[Arm] = field(default_factory=list)

    def arm(self, wanted: Arm) -> Arm:
        """Return the arm with the same label, added if missing."""
        for arm in self.arms:
            if arm.label == wanted.label:
                return arm
        self.arms.append(wanted)
        return wanted


def panels(documents: list[Document], names: list[str] | None = None) -> list[Panel]:
    """Return what to draw, series first, each in the order of the results."""
    names = names or [f"result {i + 1}" for i in range(len(documents))]
    documents = [document.printed() for document in documents]
    drawn = [
        [r for r in grid.of_one_thread(grid.shown(document)) if r.unit != STORES]
        for document in documents
    ]
    seen = Counter((r.scenario, r.variant) for results in drawn for r in results)
    twice = any(count > 1 for count in seen.values())
    found: dict[tuple[str, bool], Panel] = {}
    for i, document in enumerate(documents):
        emulated = facts.where(document) == "TCG"
        for result in drawn[i]:
            variant = result.variant
            label = f"{variant} ({names[i]})" if twice else variant
            _add(found, result, Arm(label, variant, i), emulated=emulated)
    for panel in found.values():
        for arm in panel.arms:
            arm.points.sort(key=lambda point: point.size)
    return sorted(found.values(), key=lambda panel: not panel.by_size)


def _add(
    found: dict[tuple[str, bool], Panel], result: Result, arm: Arm, *, emulated: bool
) -> None:
    series = SERIES.fullmatch(result.scenario)
    # An interval that includes 0 has no rate.
    if series and not (result.median > 0 and result.ci95[0] > 0):
        series = None
    title = result.scenario
    if series:
        operation, _, _, use = series.groups(default="")
        said = f"{operation}, {use.replace('-', ' ')}".rstrip(", ")
        title = TITLES.get((operation, use), said)
    if emulated:
        title = f"{title}: {EMULATION}"
    unit = "GB/s" if series else MS if result.unit == NS else WORK
    panel = found.setdefault(
        (title, bool(series)), Panel(title, bool(series), emulated, unit)
    )
    arm = panel.arm(arm)
    if series:
        size = int(series[2]) << 10 * "bkmgt".index(series[3])
        rates = [result.bytes / ns for ns in (result.median, *reversed(result.ci95))]
        arm.points.append(Point(size, *rates))
        return
    arm.samples = [value / 1e6 for value in result.samples]  # whatever the unit
    arm.median = result.median / 1e6
    arm.low, arm.high = (value / 1e6 for value in result.ci95)


def title(found: list[Panel]) -> str:
    """Return the figure's title."""
    kinds = [
        what
        for what, unit in (
            ("throughput by size", "GB/s"),
            ("time of each run", MS),
            ("work of each run", WORK),
        )
        if any(panel.unit == unit for panel in found)
    ]
    emulated = f"; {EMULATION}" if any(panel.emulated for panel in found) else ""
    return f"bulkmm: {', '.join(kinds)}{emulated}"


def footnotes(documents: list[Document]) -> list[str]:
    """Return the figure's caption: the machine, n, how to read it."""
    lines = [line for document in documents for line in facts.footnotes(document)]
    return list(dict.fromkeys([*lines, HOW_TO_READ]))


def description(documents: list[Document], found: list[Panel]) -> str:
    """Return a description of the figure in words."""
    said = []
    for panel in found:
        what = "GB/s by size" if panel.by_size else f"samples in {panel.unit}"
        said.append(f"{panel.title}, {what}: {', '.join(a.label for a in panel.arms)}.")
    return " ".join([*said, *footnotes(documents)])
