# SPDX-License-Identifier: GPL-2.0-only
"""Numbers and their positions on a line: forest plots of ratios, strips of samples.

Positions are percentages of the line's width, so that a figure fills its cell on
any screen. page.html draws them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bulkmm import table
from bulkmm.control import text
from bulkmm.results import NS, Ratio, Result

EDGE = 3  # percent kept free at each end, for half of a mark
# ticks of a forest plot: the set with the widest view of at most MOST_TICKS
TICKS = (
    tuple(round(0.8 + 0.05 * i, 2) for i in range(9)),
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3),
    (0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 12, 16),
    *(tuple(base**i for i in range(-8, 16)) for base in (2.0, 4.0, 16.0, 256.0)),
)
MOST_TICKS = 7


@dataclass(frozen=True)
class Number:
    """A number as printed and as measured."""

    value: float
    text: str


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval or its range."""

    middle: Number
    low: Number
    high: Number
    spread: str  # which of the two, or "" for one sample
    unit: str = ""
    proven: bool = True
    unstable: bool = False


@dataclass(frozen=True)
class Mark:
    """Positions on a line: of a number, its spread, its samples."""

    at: float
    low: float
    high: float
    dots: tuple[float, ...] = ()


@dataclass(frozen=True)
class Whisker:
    """A line of a forest plot."""

    label: str
    ratio: Interval
    mark: Mark


@dataclass(frozen=True)
class Forest:
    """Ratios on one scale, the largest first."""

    title: str
    rows: list[Whisker]
    ticks: list[tuple[float, str]]
    one: float  # position where neither is faster


class Scale:
    """A scale between two ends."""

    def __init__(self, values: Iterable[float], *, log: bool) -> None:
        self.log = log
        held = [value for value in values if value > 0 or not log]
        self.low, self.high = self._on(min(held)), self._on(max(held))

    def _on(self, value: float) -> float:
        return math.log(value) if self.log else value

    def __call__(self, value: float) -> float:
        """Return the position of a value, clamped to the ends."""
        if self.high <= self.low or (self.log and value <= 0):
            return EDGE
        part = (self._on(value) - self.low) / (self.high - self.low)
        return round(EDGE + (100 - 2 * EDGE) * min(max(part, 0), 1), 2)

    def mark(self, at: float, spread: tuple[float, float]) -> Mark:
        """Return the positions of a number and of its spread."""
        return Mark(self(at), self(spread[0]), self(spread[1]))


def forest(title: str, ratios: Sequence[Ratio]) -> Forest:
    """Return ratios with their spreads, sorted; all ends are in view."""
    alike = len({r.base for r in ratios}) == 1
    scale = Scale([1, *(end for r in ratios for end in (r.ratio, *r.ci95))], log=True)
    rows = [
        Whisker(
            f"{r.scenario}: {r.variant}" + ("" if alike else f" against {r.base}"),
            factor(r),
            scale.mark(r.ratio, r.ci95),
        )
        for r in sorted(ratios, key=lambda r: -r.ratio)
    ]
    low, high = math.exp(scale.low) * 0.999, math.exp(scale.high) * 1.001
    views = ([t for t in ticks if low <= t <= high] for ticks in TICKS)
    fitting = [view for view in views if 1 < len(view) <= MOST_TICKS]
    seen = max(fitting, key=lambda view: (view[-1] / view[0], len(view)), default=[1])
    named = [(scale(tick), f"{tick:g}{table.TIMES}") for tick in seen]
    return Forest(title, rows, named, scale(1))


def factor(ratio: Ratio) -> Interval:
    """Return how many times faster, or the share of work saved."""
    held, decimals, unit = [ratio.ratio, *ratio.ci95], 2, table.TIMES
    if ratio.unit != NS:
        held, decimals, unit = list(map(table.removed, held)), 1, " %"
    middle, low, high = (Number(value, f"{value:.{decimals}f}") for value in held)
    return Interval(
        middle, low, high, ratio.spread, unit, ratio.significant, ratio.unstable
    )


def time(result: Result) -> Interval:
    """Return a median and its spread, in the unit of the median."""
    middle, low, high = (
        number(result, value) for value in (result.median, *result.ci95)
    )
    unit = f" {text.scale(result.median)[1]}" if result.unit == NS else ""
    return Interval(middle, low, high, result.spread, unit)


def number(result: Result, value: float) -> Number:
    """Return one of a result's numbers, in the unit of its median."""
    if result.unit != NS:
        return Number(value, table.count(value))
    divisor, unit = text.scale(result.median)
    said = f"{value:.0f}" if unit == "ns" else text.number(value / divisor)
    return Number(value, said)


def strips(results: Sequence[Result]) -> list[Mark]:
    """Return the marks of a scenario's arms, with all samples, on one scale."""
    scale = Scale(
        [0, *(ns for r in results for ns in (*r.samples, *r.ci95))], log=False
    )
    return [
        replace(scale.mark(r.median, r.ci95), dots=tuple(map(scale, r.samples)))
        for r in results
    ]
