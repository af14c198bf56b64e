# SPDX-License-Identifier: GPL-2.0-only
"""A result as a figure of the report: marks with their places, which figure.svg draws.

Operations measured over a range of sizes become lines of throughput by size, one
panel for each use of the memory; of other scenarios the ratios are drawn.
"""

from collections.abc import Callable
from math import ceil, floor, log, log10
from operator import itemgetter
from typing import Any

from bulkmm.control.format import format_size
from bulkmm.report import conclusion
from bulkmm.results import size_grid
from bulkmm.results.model import NS, Document, Ratio, Result
from bulkmm.results.result_tables import TIMES

HOW_TO_READ = (
    "GB/s: bytes written, in the time of writing and of the use that follows. "
    "Ratios: filled if proven, hollow if not. Bars: 95 % interval, below six samples "
    "the range."
)
# in user units
WIDTH, ROW = 960, 20
PANEL = (52, 24, 468, 232)  # left, top, right and bottom of the frame of two in a row
CHARACTER = 8  # in a wide font
BESIDE = 1.3  # sizes differ by 2 or more
WIDE = 8  # from this ratio of the ends on, an axis has ticks at 1, 2, 5
SIZE_LABELS = 10
Points = list[tuple[int, Result]]  # by size
Panels = dict[str, dict[str, Points]]  # by title; by variant
Marks = list[tuple[float, ...]]  # x, y, and the ends of the interval
Scale = Callable[[float], float]  # the place of a value


def draw_figure(whole: Document, name: str) -> dict[str, Any]:
    """Return a result's figure by the names in figure.svg; empty if there is none."""
    document = whole.printed()
    series, ratios = _series(document), _unsized(document)
    if not series and not ratios:
        return {}
    heading = _heading(document, name, ratios) if ratios else ""
    variants = list(dict.fromkeys(v for arms in series.values() for v in arms))
    return {
        "name": name,
        "description": _description(series, heading, ratios),
        "variants": variants,
        "panels": [_panel(title, arms) for title, arms in series.items()],
        "ratios": _ratios(heading, ratios) if ratios else None,
        "width": WIDTH,
        "row": ROW,
        "legend_width": max(map(len, variants), default=0) * CHARACTER + 50,
    }


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
    return panels


def _emulation(document: Document) -> str:
    return ": emulation (TCG)" if document.emulated else ""


def _unsized(document: Document) -> list[Ratio]:
    """Return the module's ratios in the scenarios that no panel has by size.

    An interval that includes 0 has no place on a logarithmic axis.
    """
    arms = document.arms
    return [
        ratio
        for ratio in conclusion.select_ratios(document)
        if not arms[ratio.scenario, ratio.base].is_sized and ratio.ci95[0] > 0
    ]


def _heading(document: Document, name: str, ratios: list[Ratio]) -> str:
    work = "less work" if document.emulated else "faster"
    than = conclusion.name_base(ratios)
    return f"{name}: how many times {work} than {than}{_emulation(document)}"


def _description(series: Panels, heading: str, ratios: list[Ratio]) -> str:
    """Return the figure in words."""
    words = [
        f"{title}, GB/s by size: {', '.join(arms)}." for title, arms in series.items()
    ]
    if ratios:
        values = (f"{one.scenario} {one.variant} {one.ratio:.2f}" for one in ratios)
        words.append(f"{heading}: {', '.join(values)}.")
    return " ".join(words)


def _panel(title: str, arms: dict[str, Points]) -> dict[str, Any]:
    """Return throughput by size: measured sizes across, GB/s from 0 up."""
    start, top, end, bottom = PANEL
    sizes = sorted({size for points in arms.values() for size, _ in points})
    rates = [one.bytes / one.ci95[0] for points in arms.values() for _, one in points]
    most = max(rates) * 1.05
    across = _scale(log(sizes[0] / 1.5), log(sizes[-1] * 1.5), start, end)
    up = _scale(0, most, bottom, top)  # heights are comparable only from zero
    # Shifted slightly, so that no interval hides another.
    shifts = [log(BESIDE) * ((k + 0.5) / len(arms) - 0.5) for k in range(len(arms))]
    ticks = sizes[:: ceil(len(sizes) / SIZE_LABELS)]
    return {
        "title": title,
        "box": PANEL,
        "across": [(across(log(size)), format_size(size)) for size in ticks],
        "up": [(up(rate), f"{rate:g}") for rate in _ticks(0, most)],
        "unit": "GB/s, emulated" if title.endswith("(TCG)") else "GB/s",
        "lines": {
            variant: _line(points, shift, across, up)
            for (variant, points), shift in zip(arms.items(), shifts, strict=True)
        },
    }


def _line(points: Points, shift: float, across: Scale, up: Scale) -> Marks:
    return [
        (
            across(log(size) + shift),
            *(up(one.bytes / ns) for ns in (one.median, one.ci95[1], one.ci95[0])),
        )
        for size, one in sorted(points, key=itemgetter(0))
    ]


def _ratios(heading: str, ratios: list[Ratio]) -> dict[str, Any]:
    """Return a row for each ratio with its interval; hollow: not proven."""
    alike = len({one.base for one in ratios}) == 1
    labels = [
        f"{r.scenario}: {r.variant}" + ("" if alike else f" against {r.base}")
        for r in ratios
    ]
    ends = [end for one in ratios for end in (*one.ci95, one.ratio, 1)]
    margin = max(1.01, (max(ends) / min(ends)) ** 0.03)
    low, high = min(ends) / margin, max(ends) * margin
    start, top, end = max(map(len, labels)) * CHARACTER + 12, PANEL[1], WIDTH - 20
    across = _scale(log(low), log(high), start, end)
    ticks = _log_ticks(low, high) if high / low > WIDE else _ticks(low, high)
    places = [top + (i + 0.5) * ROW for i in range(len(ratios))]
    return {
        "title": heading,
        "box": (start, top, end, top + len(ratios) * ROW),
        "across": [(across(log(tick)), f"{tick:g}{TIMES}") for tick in ticks],
        "up": list(zip(places, labels, strict=True)),
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
