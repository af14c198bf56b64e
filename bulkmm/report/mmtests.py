# SPDX-License-Identifier: GPL-2.0-only
"""A comparison in the layout of MMTests' compare, which the list is used to reading.

A row per statistic and arm, a column per side. In brackets: by how much less the side
takes than A, in percent of A, so that above 0 is better. Times are in microseconds.
"""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING

from bulkmm.results import NS

if TYPE_CHECKING:  # which imports this
    from collections.abc import Callable, Iterator

    from bulkmm.report.compare import Cell
    from bulkmm.results import Result

US = 1e3
PERCENT = 100.0


def _spread(samples: list[float]) -> float:
    return stdev(samples) if len(samples) > 1 else 0.0


def _variation(samples: list[float]) -> float:
    return PERCENT * _spread(samples) / fmean(samples)


STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "Min": min,
    "Amean": fmean,
    "Stddev": _spread,
    "CoeffVar": _variation,
    "Max": max,
}


def lines(cells: list[Cell], names: tuple[str, str]) -> Iterator[str]:
    """Return the table: its header of two rows, then the statistics of all arms."""
    arms = {f"{one.before.scenario}-{one.before.variant}": one for one in cells}
    width = max(map(len, arms))
    wide = max(14, *map(len, names))
    indent = " " * (len("CoeffVar") + 1 + width)
    for part in ("A", "B"), names:
        yield indent + "".join(f" {one:>{wide + 11}}" for one in part)
    for name, statistic in STATISTICS.items():
        for arm, cell in arms.items():
            sides = [_samples(one) for one in (cell.before, cell.after)]
            values = [statistic(samples) for samples in sides]
            cells_ = (f" {v:{wide}.2f} ({_less(values[0], v):7.2f}%)" for v in values)
            yield f"{name:8} {arm:{width}}{''.join(cells_)}"


def _samples(one: Result) -> list[float]:
    return [s / US if one.unit == NS else float(s) for s in one.samples]


def _less(base: float, value: float) -> float:
    """Return by how many percent of the base a value is below it."""
    return PERCENT * (base - value) / base if base else 0.0
