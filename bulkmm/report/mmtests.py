# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm compare --format mmtests``: the table that the kernel's lists read."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, stdev

from bulkmm.results.model import NS, Result

US = 1e3
PERCENT = 100.0


def _spread(samples: list[float]) -> float:
    return stdev(samples) if len(samples) > 1 else 0.0


STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "Min": min,
    "Amean": fmean,
    "Stddev": _spread,
    "CoeffVar": lambda samples: PERCENT * _spread(samples) / fmean(samples),
    "Max": max,
}


def format_comparison(
    pairs: Sequence[tuple[Result, Result]], names: tuple[str, str]
) -> Iterator[str]:
    """Return arms of two sides as MMTests' compare prints them.

    A row per statistic and arm, a column per side. In brackets: by how much less the
    side takes than A, in percent of A. Times are in microseconds.
    """
    arms = {"-".join(pair[0].key): pair for pair in pairs}
    width = max(map(len, arms))
    wide = max(14, *map(len, names))
    indent = " " * (len("CoeffVar") + 1 + width)
    for part in ("A", "B"), names:
        yield indent + "".join(f" {one:>{wide + 11}}" for one in part)
    for name, statistic in STATISTICS.items():
        for arm, pair in arms.items():
            values = [statistic(_samples(result)) for result in pair]
            cells = (f" {v:{wide}.2f} ({_less(values[0], v):7.2f}%)" for v in values)
            yield f"{name:8} {arm:{width}}{''.join(cells)}"


def _samples(result: Result) -> list[float]:
    return [s / US if result.unit == NS else float(s) for s in result.samples]


def _less(base: float, value: float) -> float:
    """Return by how many percent of the base a value is below it."""
    return PERCENT * (base - value) / base if base else 0.0
