# SPDX-License-Identifier: GPL-2.0-only
"""Median, ratio and what is proven of them.

Intervals of a median come from order statistics: for n independent samples of
one distribution, whatever its shape, the chance that the median lies between
two of the sorted samples is a sum of binomial terms. With the 5 to 50 samples
of a run that is exact (at least 95 %), where a bootstrap of the median is not:
it draws from few distinct values and comes out too narrow. Below six samples
not even the whole range reaches 95 %; then the range is given.

A ratio of two medians has no such exact interval; it is bootstrapped, each
arm on its own, and it counts as proven only if a Mann-Whitney test at 5 % and
the interval agree.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from bulkmm.results import Ratio, Result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LEVEL = 0.95
RESAMPLES = 10_000


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest symmetric pair of samples that covers 95 %."""
    ordered = sorted(samples)
    n = len(ordered)
    drop = 0  # how many samples are left out at each end
    outside = 0.0
    for k in range(n // 2):
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 1 - LEVEL:
            break
        drop = k
    return ordered[drop], ordered[n - 1 - drop]


def summarise(
    scenario: str, variant: str, unit: str, nbytes: int, samples: Sequence[float]
) -> Result:
    """Return one arm with its median and the 95 % interval of it."""
    if not samples:
        raise ValueError(f"{scenario}, {variant}: no samples")
    return Result(
        scenario=scenario,
        variant=variant,
        unit=unit,
        bytes=nbytes,
        samples=list(samples),
        median=float(statistics.median(samples)),
        ci95=median_interval(samples),
    )


def _ratio_interval(
    base: Sequence[float], variant: Sequence[float], seed: int
) -> tuple[float, float]:
    import numpy as np  # noqa: PLC0415 - slow to import, seldom needed

    rng = np.random.default_rng(seed)

    def medians(samples: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
        drawn = rng.choice(np.asarray(samples, float), (RESAMPLES, len(samples)))
        return np.asarray(np.median(drawn, axis=1))

    ratios = medians(base) / medians(variant)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _differ(base: Sequence[float], variant: Sequence[float]) -> bool:
    from scipy import stats  # noqa: PLC0415 - slow to import, seldom needed

    # So few samples cannot differ at this level, whatever an approximation says.
    if 2 / math.comb(len(base) + len(variant), len(base)) >= 1 - LEVEL:
        return False
    return bool(stats.mannwhitneyu(base, variant).pvalue < 1 - LEVEL)


def ratio(base: Result, variant: Result, seed: int = 0) -> Ratio:
    """Return time of the base / time of the variant: above 1, the variant wins."""
    if base.scenario != variant.scenario or base.unit != variant.unit:
        raise ValueError(f"{base.scenario} and {variant.scenario} do not compare")
    low, high = _ratio_interval(base.samples, variant.samples, seed)
    proven = not low <= 1 <= high and _differ(base.samples, variant.samples)
    return Ratio(
        scenario=base.scenario,
        base=base.variant,
        variant=variant.variant,
        ratio=base.median / variant.median,
        ci95=(low, high),
        significant=proven,
    )
