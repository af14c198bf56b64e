# SPDX-License-Identifier: GPL-2.0-only
"""Median, ratio and what is proven of them.

The unit is what is independent: a process of the bench, a boot of the lab. The
rounds within a process share its mappings and its luck, so they count as one
sample, their median.

Intervals of a median come from order statistics: for n independent samples of
one distribution, whatever its shape, the chance that the median lies between
two of the sorted samples is a sum of binomial terms. With few samples that is
exact (at least 95 %), where a bootstrap of the median is not: it draws from few
distinct values and comes out too narrow. Below six samples not even the whole
range reaches 95 %; then the range is given, and is called that.

Ratios of a bench are **paired** (``paired``): in each round every variant runs
once, so the log-ratio of a round is free of what drifts between rounds. The
median of these is the ratio of a process; its median over processes is the
ratio, and the spread is that of the processes. Proven means:

- from six processes on: an exact Wilcoxon signed-rank test of the processes'
  log-ratios at 5 %, corrected by Holm's method for all ratios of the scenario
  if they are more than a handful, and an interval without 1. The least p of n
  processes is 2^(1-n): among 20 ratios it takes ten of them;
- from three to five: all processes agree in sign, and the least of their
  effects is above all that the A/A control (a variant against itself) shows in
  any process. If the effect were noise of the control's kind, the chance of that
  is 2^(1-n) / C(2n, n): 1.3 % with three processes, 0.02 % with five. That other
  pairs are no noisier than the control's is assumed, not tested;
- below three, or without a control: nothing.

Ratios of arms that were not run in rounds (``ratio``: boots, two files) have no
pairs: bootstrapped, each arm on its own, and proven if a Mann-Whitney test at
5 % and the interval agree; below six samples the range of all pairs is given.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from bulkmm.results import INTERVAL_LEAST, Ratio, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

LEVEL = 0.95
RESAMPLES = 10_000
HANDFUL = 5  # ratios that are read side by side without a correction
CONTROLLED_LEAST = 3  # processes that prove something beside a control
NOTICED = math.log(1.02)  # no smaller movement of a control makes a row unstable


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
    """Return one arm with its median and the spread of it."""
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


def of_processes(
    scenario: str, variant: str, nbytes: int, raw: Sequence[Sequence[int]]
) -> Result:
    """Return one arm of a bench; ``raw`` are the times of each process by round."""
    samples = [statistics.median(times) for times in raw]
    result = summarise(scenario, variant, "ns", nbytes, samples)
    return replace(result, raw=[list(times) for times in raw], cv=_variation(samples))


def _variation(samples: Sequence[float]) -> float | None:
    middle = statistics.fmean(samples)
    if len(samples) == 1 or not middle:
        return None
    return round(statistics.stdev(samples) / middle, 4)


def effects(base: Result, variant: Result) -> list[float]:
    """Return the log-ratio of each process, the median of its rounds."""
    if base.scenario != variant.scenario:
        raise ValueError(f"{base.scenario} and {variant.scenario} do not compare")
    return [_effect(a, b) for a, b in zip(base.raw, variant.raw, strict=True)]


def _effect(base: Sequence[int], variant: Sequence[int]) -> float:
    # 1: a clock that did not move
    if len(base) != len(variant):
        base, variant = ([max(1, round(statistics.median(t)))] for t in (base, variant))
    return statistics.median(
        math.log(max(1, a) / max(1, b)) for a, b in zip(base, variant, strict=True)
    )


def paired(
    arms: Mapping[str, Result],
    pairs: Iterable[tuple[str, str]],
    control: tuple[str, str] | None = None,
) -> list[Ratio]:
    """Return the ratios of one scenario: base and variant of each pair."""
    found = {(a, b): effects(arms[a], arms[b]) for a, b in pairs}
    noise = most_noise(arms, control) if control else None
    p_values = holm_if_many([_signed_rank(logs) for logs in found.values()])
    scenario = next(iter(arms.values())).scenario
    return [
        _paired(Ratio(scenario, *pair, 0, (0, 0), significant=False), logs, p, noise)
        for (pair, logs), p in zip(found.items(), p_values, strict=True)
    ]


def most_noise(arms: Mapping[str, Result], control: tuple[str, str]) -> float:
    """Return the largest log-ratio of a variant to itself in any process."""
    return max(map(abs, effects(*(arms[name] for name in control))))


def _paired(
    ratio: Ratio, logs: Sequence[float], p: float, noise: float | None
) -> Ratio:
    middle, (low, high) = statistics.median(logs), median_interval(logs)
    if len(logs) >= INTERVAL_LEAST:
        proven = p <= 1 - LEVEL and not low <= 0 <= high
    else:
        least = min(map(abs, logs)) if low * high > 0 else 0
        proven = len(logs) >= CONTROLLED_LEAST and noise is not None and least > noise
    return replace(
        ratio,
        ratio=round(math.exp(middle), 4),
        ci95=(round(math.exp(low), 4), round(math.exp(high), 4)),
        significant=proven,
        n=len(logs),
        unstable=noise is not None and noise > max(abs(middle), NOTICED),
    )


def _signed_rank(logs: Sequence[float]) -> float:
    if len(logs) < INTERVAL_LEAST or not any(logs):
        return 1.0
    from scipy import stats  # noqa: PLC0415 - slow to import, seldom needed

    return float(stats.wilcoxon(logs).pvalue)  # exact as long as no two are equal


def holm_if_many(p_values: Sequence[float]) -> list[float]:
    """Return the p-values, corrected if they are more than a handful."""
    return holm(p_values) if len(p_values) > HANDFUL else list(p_values)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected by Holm's step-down method, in their order."""
    corrected = [1.0] * len(p_values)
    so_far = 0.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank, i in enumerate(order):
        so_far = max(so_far, (len(p_values) - rank) * p_values[i])
        corrected[i] = min(1.0, so_far)
    return corrected


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
    """Return time of the base / time of the variant, of arms without pairs."""
    if base.scenario != variant.scenario or base.unit != variant.unit:
        raise ValueError(f"{base.scenario} and {variant.scenario} do not compare")
    a, b = base.samples, variant.samples
    n = min(len(a), len(b))
    if n < INTERVAL_LEAST:
        low, high = min(a) / max(b), max(a) / (min(b) or 1)  # ns
    else:
        low, high = _ratio_interval(a, b, seed)
    return Ratio(
        scenario=base.scenario,
        base=base.variant,
        variant=variant.variant,
        ratio=base.median / variant.median,
        ci95=(low, high),
        significant=not low <= 1 <= high and _differ(a, b),
        n=n,
        unit=base.unit,
    )
