# SPDX-License-Identifier: GPL-2.0-only
"""What is proven of two runs: which cells changed by more than a threshold.

A cell is one arm of one scenario. It counts as slower only if two things agree:
the whole 95 % interval of the ratio of medians lies beyond the threshold, and
a one-sided Mann-Whitney test rejects "slower by no more than the threshold".
The test compares with the first run's samples, each made longer by the
threshold, so it speaks of the threshold and not merely of a difference.

A run has a hundred cells, so at 5 % each some five would be false alarms. The
p-values are therefore corrected by Holm's method. It bounds the chance that
even one named cell is a false alarm, which is what an exit code says, and it
holds however the tests depend on each other: cells of one run share the
machine's state, and one noisy neighbour slows many of them. Benjamini-Hochberg
finds more but allows for a share of false findings, and needs an assumption
about that dependence.

Cells whose samples are too few to reach 5 % even if no two overlap can never be
rejected, so they are no tests and are not counted in the correction. That is
known from their numbers alone, before any time is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bulkmm import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bulkmm.results import Ratio, Result

ALPHA = 0.05  # of each direction, for all cells together
SLOWER, FASTER, UNPROVEN = "slower", "faster", "unproven"


@dataclass(frozen=True)
class Cell:
    """One arm as it was before and as it is now, and what is proven of it."""

    before: Result
    after: Result
    ratio: Ratio  # time before / time after; significant if the verdict is proven
    p_slower: float  # corrected
    p_faster: float
    verdict: str
    enough: bool  # so many samples that a change could be proven among so many cells


def smallest_p(n: int, m: int) -> float:
    """Return the least p-value of a one-sided test of ``n`` against ``m`` samples.

    One of the equally likely ways to deal the ranks has all of one arm on top.
    """
    return 1 / math.comb(n + m, n)


def samples_needed(cells: int) -> int:
    """Return how many samples an arm needs to prove a change among ``cells``."""
    n = 1
    while smallest_p(n, n) * cells > ALPHA:
        n += 1
    return n


def p_longer(times: Sequence[float], than: Sequence[float], threshold: float) -> float:
    """Return the p-value of "``times`` are not beyond ``than`` by the threshold"."""
    from scipy import stats as tests  # noqa: PLC0415 - slow to import, seldom needed

    stretched = [t * (1 + threshold) for t in than]
    least = smallest_p(len(times), len(than))
    if min(times) == max(times) == min(stretched) == max(stretched):
        return 1.0  # nothing but ties: the test's variance is zero
    p = tests.mannwhitneyu(times, stretched, alternative="greater").pvalue
    # With ties an approximation is used, which knows no least value.
    return max(float(p), least)


def _smallest_p(pair: tuple[Result, Result]) -> float:
    before, after = pair
    return smallest_p(len(before.samples), len(after.samples))


def _corrected(
    pairs: Sequence[tuple[Result, Result]], tested: list[int], threshold: float
) -> list[float]:
    """Return p of "the second is longer" for each pair; 1 where none is tested."""
    found = [
        p_longer(pairs[i][1].samples, pairs[i][0].samples, threshold) for i in tested
    ]
    every = [1.0] * len(pairs)
    for i, p in zip(tested, stats.holm(found), strict=True):
        every[i] = p
    return every


def judge(pairs: Sequence[tuple[Result, Result]], threshold: float) -> list[Cell]:
    """Return the verdict on each pair (before, after), the worst first."""
    tested = [i for i, pair in enumerate(pairs) if _smallest_p(pair) <= ALPHA]
    # Each direction is a family of its own: interest in what got faster must
    # not make it harder to prove what got slower.
    slower = _corrected(pairs, tested, threshold)
    faster = _corrected([(b, a) for a, b in pairs], tested, threshold)
    cells = [
        _cell(pair, threshold, p, len(tested))
        for pair, p in zip(pairs, zip(slower, faster, strict=True), strict=True)
    ]
    rank = (SLOWER, UNPROVEN, FASTER).index
    return sorted(cells, key=lambda cell: (rank(cell.verdict), cell.ratio.ratio))


def _cell(
    pair: tuple[Result, Result],
    threshold: float,
    p: tuple[float, float],  # corrected: slower, faster
    tests: int,
) -> Cell:
    before, after = pair
    ratio = stats.ratio(before, after)
    low, high = ratio.ci95
    verdict = UNPROVEN
    if high < 1 / (1 + threshold) and p[0] <= ALPHA:
        verdict = SLOWER
    elif low > 1 + threshold and p[1] <= ALPHA:
        verdict = FASTER
    return Cell(
        before=before,
        after=after,
        ratio=replace(ratio, significant=verdict != UNPROVEN),
        p_slower=p[0],
        p_faster=p[1],
        verdict=verdict,
        enough=_smallest_p(pair) * max(tests, 1) <= ALPHA,
    )
