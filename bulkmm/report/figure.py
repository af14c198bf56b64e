# SPDX-License-Identifier: GPL-2.0-only
"""A result as a figure of the report: marks with their places, which figure.svg draws.

Operations measured over a range of sizes become lines of throughput by size, one
panel for each use of the memory; of other scenarios the ratios are drawn, one panel
for each operation. A panel is a picture of its own, so that a telephone shows them one
below the other.
"""

from collections.abc import Callable
from math import ceil, floor, log, log10
from operator import itemgetter
from typing import Any

from bulkmm.control import requirements
from bulkmm.control.format import format_size
from bulkmm.report import conclusion
from bulkmm.results import conditions, size_grid
from bulkmm.results.model import NS, Document, Ratio, Result
from bulkmm.results.result_tables import TIMES

HOW_TO_READ = (
    "GB/s: bytes written, in the time of writing and of the use that follows. "
    "Ratios: filled if proven, hollow if not. Bars: 95 % interval, below six samples "
    "the range."
)
# in user units
WIDTH = 480
PANEL = (52, 24, 468, 232)  # left, top, right and bottom of the frame
RATIOS = (8, 24, 468)
ROW = 32  # of a ratio, and the name above it
BESIDE = 1.3  # sizes differ by 2 or more
WIDE = 8  # from this ratio of the ends on, an axis has ticks at 1, 2, 5
SIZE_LABELS = 10
Points = list[tuple[int, Result]]  # by size
Panels = dict[str, dict[str, Points]]  # by title; by variant
Marks = list[tuple[float, ...]]  # x, y, and the ends of the interval
Scale = Callable[[float], float]  # the place of a value


def draw_figure(whole: Document) -> dict[str, Any]:
    """Return a result's figure by the names in figure.svg; empty if there is none."""
    document = whole.printed()
    series = _series(document)
    panels = [_panel(title, arms) for title, arms in series.items()]
    for operation, ratios in _group_ratios(document, _list_scenarios(series)).items():
        heading = _heading(document, operation, ratios)
        panels.append(_ratios(heading, ratios, _name_ratios(ratios)))
    variants = list(dict.fromkeys(v for arms in series.values() for v in arms))
    return {"variants": variants, "panels": panels, "width": WIDTH} if panels else {}


def draw_titled(document: Document, titled: list[tuple[str, Ratio]]) -> dict[str, Any]:
    """Return ratios with titles in place of names, as a figure of a single panel."""
    if not (ratios := [ratio for _, ratio in titled if ratio.ci95[0] > 0]):
        return {}
    titles = [title for title, ratio in titled if ratio.ci95[0] > 0]
    release = f"Linux {requirements.series_of(conditions.get_kernel(document))}"
    panel = _ratios(_heading(document, release, ratios), ratios, titles)
    return {"variants": [], "panels": [panel], "width": WIDTH}


def _series(document: Document) -> Panels:
    """Return throughput by size; an interval that includes 0 has no rate."""
    panels: Panels = {}
    for result in size_grid.select_one_thread(size_grid.select_usual(document).results):
        if not result.is_sized or result.unit != NS or not result.ci95[0] > 0:
            continue
        words = [result.operation, size_grid.describe_use(result)]
        title = ", ".join(filter(None, words)) + _emulation(document)
        arm = panels.setdefault(title, {}).setdefault(result.variant, [])
        arm.append((result.size, result))
    return {title: arms for title, arms in panels.items() if len(_sizes(arms)) > 1}


def _sizes(arms: dict[str, Points]) -> list[int]:
    return sorted({size for points in arms.values() for size, _ in points})


def _list_scenarios(series: Panels) -> set[str]:
    lines = [points for arms in series.values() for points in arms.values()]
    return {result.scenario for points in lines for _, result in points}


def _emulation(document: Document) -> str:
    return ": emulation (TCG)" if document.emulated else ""


def _group_ratios(document: Document, scenarios: set[str]) -> dict[str, list[Ratio]]:
    """Return the module's ratios by operation, but of scenarios drawn by size.

    An interval that includes 0 has no place on a logarithmic axis.
    """
    arms, groups = document.arms, dict[str, list[Ratio]]()
    for ratio in conclusion.select_ratios(document):
        if ratio.scenario not in scenarios and ratio.ci95[0] > 0:
            operation = arms[ratio.scenario, ratio.base].operation
            groups.setdefault(operation, []).append(ratio)
    return groups


def _heading(document: Document, subject: str, ratios: list[Ratio]) -> str:
    work = "times less work" if document.emulated else "times faster"
    words = f"{work} than {conclusion.name_base(ratios)}{_emulation(document)}"
    return f"{subject}: {words}"


def _panel(title: str, arms: dict[str, Points]) -> dict[str, Any]:
    """Return throughput by size: measured sizes across, GB/s from 0 up."""
    start, top, end, bottom = PANEL
    sizes = _sizes(arms)
    rates = [one.bytes / one.ci95[0] for points in arms.values() for _, one in points]
    most = max(rates) * 1.05
    across = _scale(log(sizes[0] / 1.5), log(sizes[-1] * 1.5), start, end)
    up = _scale(0, most, bottom, top)  # heights are comparable only from zero
    # Shifted slightly, so that no interval hides another.
    shifts = [log(BESIDE) * ((k + 0.5) / len(arms) - 0.5) for k in range(len(arms))]
    ticks = sizes[:: ceil(len(sizes) / SIZE_LABELS)]
    return {
        "title": title,
        "description": f"GB/s by size: {', '.join(arms)}.",
        "box": PANEL,
        "height": bottom + 48,
        "across": [(across(log(size)), format_size(size)) for size in ticks],
        "up": [(up(rate), f"{rate:g}") for rate in _ticks(0, most)],
        "unit": "GB/s, emulated" if title.endswith("(TCG)") else "GB/s",
        "lines": {
            variant: _place_points(points, shift, across, up)
            for (variant, points), shift in zip(arms.items(), shifts, strict=True)
        },
    }


def _place_points(points: Points, shift: float, across: Scale, up: Scale) -> Marks:
    return [
        (
            across(log(size) + shift),
            *(up(one.bytes / ns) for ns in (one.median, one.ci95[1], one.ci95[0])),
        )
        for size, one in sorted(points, key=itemgetter(0))
    ]


def _name_ratios(ratios: list[Ratio]) -> list[str]:
    alike = len({one.base for one in ratios}) == 1
    return [
        f"{r.scenario}: {r.variant}" + ("" if alike else f" against {r.base}")
        for r in ratios
    ]


def _ratios(heading: str, ratios: list[Ratio], labels: list[str]) -> dict[str, Any]:
    """Return a row for each ratio with its interval; hollow: not proven."""
    ends = [end for one in ratios for end in (*one.ci95, one.ratio, 1)]
    margin = max(1.01, (max(ends) / min(ends)) ** 0.03)
    low, high = min(ends) / margin, max(ends) * margin
    start, top, end = RATIOS
    across = _scale(log(low), log(high), start, end)
    ticks = _log_ticks(low, high) if high / low > WIDE else _ticks(low, high)
    places = [top + (i + 0.75) * ROW for i in range(len(ratios))]
    bottom = top + len(ratios) * ROW
    values = ", ".join(
        f"{label} {one.ratio:.2f}" for label, one in zip(labels, ratios, strict=True)
    )
    return {
        "title": heading,
        "description": f"{values}.",
        "box": (start, top, end, bottom),
        "height": bottom + 24,
        "across": [(across(log(tick)), f"{tick:g}{TIMES}") for tick in ticks],
        "up": [],  # as panels by size have them
        "lines": {},
        "names": list(zip(places, labels, strict=True)),
        "equal": across(0),
        "marks": [
            (across(log(r.ratio)), y, *(across(log(end)) for end in r.ci95))
            for y, r in zip(places, ratios, strict=True)
        ],
        "filled": [one.significant and not one.unstable for one in ratios],
    }


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: round(start + (value - low) / (high - low) * (end - start), 1)


def _ticks(low: float, high: float) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten: two to seven."""
    least = (high - low) / 6
    power = 10.0 ** floor(log10(least))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= least)
    return [i * step for i in range(ceil(low / step), floor(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten."""
    powers = range(floor(log10(low)), ceil(log10(high)))
    ticks = [n * 10.0**power for power in powers for n in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]
