# SPDX-License-Identifier: GPL-2.0-only
"""Medians, ratios, and whether they are proven.

A sample is what is independent: a process of the bench, a file of ``compare``.
Times within one share mappings and luck, so they count as one sample, their
median. A run of the lab is one boot: its samples are visits in it and prove
something only for that boot; several boots are several files.

Intervals of a median come from order statistics (the sign test): exact
for every distribution, whereas a bootstrap of so few values is too narrow. Below
six samples not even the whole range covers 95 %; then the range is given, marked
as such. One sample has no spread.

Ratios of a bench are **paired** (compare_arms()): in each round every variant runs
once, so the log-ratio of a round is free of drift between rounds. The median of
these is the ratio of a process; the median over processes is the ratio, and the
spread is that of the processes. Proven means that the interval lacks 1, and that the
change is beyond what chance does to the largest of all ratios of the run
(``p_of_signs``): a false positive in 5 % of runs, however many ratios there are. Fewer
than six processes prove nothing.

Ratios of arms that were not run in rounds (compute_ratio(): two sets of files) have no
pairs: the interval is made of those of the two medians, or of their ranges, which is
wider than needed. Proven means that these are apart; of ranges, too, that chance parts
so many samples in less than 5 % of the ways to deal them.
"""

from __future__ import annotations

import math
import statistics
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bulkmm import libraries
from bulkmm.control.requirements import is_at_least
from bulkmm.results import row_names
from bulkmm.results.model import ALPHA, INTERVAL_LEAST, Ratio, Result
from bulkmm.shell.errors import BulkmmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from bulkmm.results.model import Measurement

    Array = np.ndarray[Any, np.dtype[Any]]
    Effect = tuple[Ratio, list[float]]  # and the log-ratio of each process

RESAMPLES = 9999  # the exact distribution, if it is no larger
BATCH = 100  # resamples at a time: each is as large as all arms together
FLOOR = 1e-3  # 0.1 %: clocks resolve no less, and equal samples have no spread
NOTICED = math.log(1.02)  # no smaller movement of a control makes a row unstable


def _import_scipy() -> Any:  # noqa: ANN401 - it has no types
    """Return scipy's tests; raise if they cannot be given a generator."""
    import scipy
    from scipy import stats

    if not is_at_least(scipy.__version__, libraries.SCIPY):
        problem = f"scipy {scipy.__version__} is too old"
        raise BulkmmError(f"{problem}: {libraries.explain_remedy('scipy')}")
    return stats


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest pair of samples that covers 95 %, or the range."""
    if len(samples) < INTERVAL_LEAST:
        return min(samples), max(samples)
    low = _find_rank(len(samples))
    ordered = sorted(samples)
    return float(ordered[low]), float(ordered[-1 - low])


@cache
def _find_rank(n: int) -> int:
    """Return the rank, from 0, of the lower end of an interval of any ``n`` samples.

    As scipy's quantile_test(), which takes longer to load than a file to read.
    """
    rank, tail = 0, 1 + n  # of the 2^n ways to lie above or below the median
    while tail <= ALPHA / 2 * 2**n:
        rank += 1
        tail += math.comb(n, rank + 1)
    return rank


def replace_samples(result: Result, samples: Sequence[float]) -> Result:
    """Return an arm with other samples, and their median and spread."""
    median, ci95 = float(statistics.median(samples)), median_interval(samples)
    parts = {"median": median, "ci95": ci95, "raw": [], "cv": None}
    return replace(result, samples=list(samples), **parts)


def resample_raw(result: Result, raw: Sequence[Sequence[int]]) -> Result:
    """Return an arm of a bench with the times of each process by round."""
    samples = [statistics.median(times) for times in raw]
    arm = replace_samples(result, samples)
    return replace(arm, raw=[list(times) for times in raw], cv=_variation(samples))


def summarise_arm(
    scenario: str, variant: str, unit: str, nbytes: int, samples: Sequence[float]
) -> Result:
    """Return one arm, as recorded: its fields, its median and spread."""
    fields = row_names.read_names(scenario, variant)
    empty: dict[str, Any] = {"samples": [], "median": 0, "ci95": (0, 0)}
    return replace_samples(Result(**fields, unit=unit, bytes=nbytes, **empty), samples)


def of_processes(
    scenario: str, variant: str, nbytes: int, raw: Sequence[Sequence[int]]
) -> Result:
    """Return one arm of a bench; ``raw`` are the times of each process by round."""
    return resample_raw(summarise_arm(scenario, variant, "ns", nbytes, raw[0]), raw)


def _variation(samples: Sequence[float]) -> float | None:
    middle = statistics.fmean(samples)
    if len(samples) == 1 or not middle:
        return None
    return round(statistics.stdev(samples) / middle, 4)


def compute_effects(base: Result, variant: Result) -> list[float]:
    """Return the log-ratio of each process: the median of its rounds."""
    return [_compute_effect(a, b) for a, b in zip(base.raw, variant.raw, strict=True)]


def _compute_effect(base: Sequence[int], variant: Sequence[int]) -> float:
    # 1: the clock did not advance
    if len(base) != len(variant):
        base, variant = ([max(1, round(statistics.median(t)))] for t in (base, variant))
    return statistics.median(
        math.log(max(1, a) / max(1, b)) for a, b in zip(base, variant, strict=True)
    )


def compare_arms(
    arms: Mapping[str, Result],
    pairs: Iterable[tuple[str, str]],
    control: tuple[str, str] | None = None,
) -> list[Effect]:
    """Return the ratios of one scenario, for judge_ratios() to judge with others."""
    noise = most_noise(arms, control) if control else None
    return [_pair_arms(arms[a], arms[b], noise) for a, b in pairs]


def most_noise(arms: Mapping[str, Result], control: tuple[str, str]) -> float:
    """Return the largest log-ratio of a variant to its repetition in any process."""
    return max(map(abs, compute_effects(*(arms[name] for name in control))))


def _pair_arms(base: Result, variant: Result, noise: float | None) -> Effect:
    logs = compute_effects(base, variant)
    middle, (low, high) = statistics.median(logs), median_interval(logs)
    ratio = Ratio(
        scenario=base.scenario,
        base=base.variant,
        variant=variant.variant,
        ratio=_round_ratio(math.exp(middle)),
        ci95=(_round_ratio(math.exp(low)), _round_ratio(math.exp(high))),
        significant=low * high > 0 and len(logs) >= INTERVAL_LEAST,
        n=len(logs),
        unstable=noise is not None and noise > max(abs(middle), NOTICED),
    )
    return ratio, logs


def _round_ratio(ratio: float) -> float:
    """Return a ratio rounded to five significant digits."""
    return float(f"{ratio:.5g}")


def judge_ratios(candidates: Sequence[Effect]) -> list[Ratio]:
    """Return all ratios of a run, judged together."""
    if not candidates or min(len(logs) for _, logs in candidates) < INTERVAL_LEAST:
        return [ratio for ratio, _ in candidates]
    p_values = p_of_signs([logs for _, logs in candidates])
    return [
        replace(ratio, significant=ratio.significant and p <= ALPHA)
        for (ratio, _), p in zip(candidates, p_values, strict=True)
    ]


def p_of_signs(logs: Sequence[Sequence[float]]) -> list[float]:
    """Return p of each row of paired log-ratios, corrected for all the rows.

    Without an effect the sign of a process is chance, for all rows at once. So p
    is the share of signs under which any row is as far from 0 as this one (max-T
    of Westfall and Young): it holds however the rows depend on each other.
    """
    import numpy as np

    scaled = _scale_rows(np.asarray(logs, float))

    def effect(signs: Array, _: Array) -> Array:
        return signs @ scaled.T

    ones = np.ones(scaled.shape[1])
    return _p_of_largest((ones, -ones), effect, "samples")


def p_of_sides(before: Array, after: Array) -> list[float]:
    """Return p of each arm's change between two sides, corrected for all the arms.

    Each side has a row per arm and a column per file, of logarithms. Without a change
    it is chance which files are on which side, for all arms at once.
    """
    import numpy as np

    rows = np.concatenate([before, after], axis=1)
    scaled = _scale_rows(rows - rows.mean(axis=1, keepdims=True))

    def change(*sides: Array) -> Array:
        first, second = (scaled.T[side.astype(int)].mean(axis=-2) for side in sides)
        return np.asarray(first - second)

    files = np.arange(rows.shape[1])
    split = files[: before.shape[1]], files[before.shape[1] :]
    return _p_of_largest(split, change, "independent")


def _scale_rows(rows: Array) -> Array:
    """Return rows that all have the same length as vectors, so that they compare."""
    import numpy as np

    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(FLOOR))


def _p_of_largest(
    data: tuple[Array, Array], effect: Callable[[Array, Array], Array], kind: str
) -> list[float]:
    """Return how often chance makes the largest effect of any row as large as each."""
    import numpy as np

    def largest(*data: Array, axis: int = -1) -> Array:
        resamples = (np.moveaxis(one, axis, -1) for one in data)
        return np.asarray(np.abs(effect(*resamples)).max(axis=-1))

    test = _import_scipy().permutation_test(
        data,
        largest,
        permutation_type=kind,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=BATCH,
        alternative="greater",
        rng=np.random.default_rng(0),
    )
    null, rounding = test.null_distribution, 1e-9
    sizes = np.abs(effect(*data)) - rounding
    return [float(max((null >= one).mean(), 1 / null.size)) for one in sizes]


def compute_ratio(base: Result, variant: Result) -> Ratio:
    """Return time of the base / time of the variant, of arms without pairs."""
    x, y = base.samples, variant.samples
    n, ways = min(len(x), len(y)), math.comb(len(x) + len(y), len(x))
    (x_low, x_high), (y_low, y_high) = (
        median_interval(s) if n >= INTERVAL_LEAST else (min(s), max(s)) for s in (x, y)
    )
    low, high = x_low / y_high, x_high / y_low
    return Ratio(
        scenario=base.scenario,
        base=base.variant,
        variant=variant.variant,
        ratio=base.median / variant.median,
        ci95=(low, high),
        significant=not low <= 1 <= high and 2 / ways < ALPHA,
        n=n,
        unit=base.unit,
    )


def rate_arms(
    scenario: str,
    unit: str,
    nbytes: int,
    arms: Mapping[str, Sequence[float]],
    pairs: Iterable[tuple[str, str]],
) -> Measurement:
    """Return the arms of a scenario, and the ratios of those pairs present."""
    results = {
        arm: summarise_arm(scenario, arm, unit, nbytes, samples)
        for arm, samples in arms.items()
    }
    # no ratio of no work at all, or of a clock that stood still
    return list(results.values()), [
        compute_ratio(results[a], results[b])
        for a, b in pairs
        if {a, b} <= results.keys() and min(results[a].samples + results[b].samples)
    ]


def join_measurements(parts: Iterable[Measurement]) -> Measurement:
    """Return all results and all ratios of several measurements."""
    measurements = list(parts)
    return [r for results, _ in measurements for r in results], [
        r for _, ratios in measurements for r in ratios
    ]
