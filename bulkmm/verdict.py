# SPDX-License-Identifier: GPL-2.0-only
"""Which cells provably changed by more than a threshold between two sets of runs.

A cell is one arm of one scenario, and a file is one sample of it: times within a
run share the placement of memory and the time of day. A cell counts as slower only
if two things agree: the whole 95 % interval of the ratio of medians (below six
files the range of all pairs) lies beyond the threshold, and the change is beyond
what chance does to the largest of all cells.

That chance is known: without a change any of the files may be on either side. So
the files are dealt to the sides in every way (a permutation test), and the largest
change of any cell is noted each time (max-T, Westfall and Young). A run has a
hundred cells; one is named by mistake in 5 % of comparisons, however many there
are and however they depend on each other. Holm's method has the same bound but
treats each test separately: for a hundred cells it would take seven files per
side, where this takes four.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from bulkmm import stats
from bulkmm.results import ALPHA, Ratio, Result

SLOWER, FASTER, UNPROVEN = "slower", "faster", "unproven"


@dataclass(frozen=True)
class Cell:
    """One arm before and now, and what is proven of it."""

    before: Result
    after: Result
    ratio: Ratio  # time before / time after; significant if the verdict is proven
    p: float  # of a change by chance, corrected for all cells
    verdict: str


def smallest_p(n: int, m: int) -> float:
    """Return the least p-value of ``n`` files against ``m``.

    One way to deal them has all slow ones on one side; with equally many files on
    both sides, two.
    """
    return (1 + (n == m)) / math.comb(n + m, n)


def files_needed() -> int:
    """Return how many files per side it takes to prove anything."""
    n = 1
    while smallest_p(n, n) > ALPHA:
        n += 1
    return n


def judge(pairs: Sequence[tuple[Result, Result]], threshold: float) -> list[Cell]:
    """Return the verdict on each pair (before, after), the worst first."""
    import numpy as np

    if smallest_p(*(len(side.samples) for side in pairs[0])) > ALPHA:
        found = [1.0] * len(pairs)
    else:
        sides = zip(*((a.samples, b.samples) for a, b in pairs), strict=True)
        found = stats.p_of_sides(*(np.log(np.asarray(side)) for side in sides))
    cells = [_cell(*pair, threshold, p) for pair, p in zip(pairs, found, strict=True)]
    rank = (SLOWER, UNPROVEN, FASTER).index
    return sorted(cells, key=lambda cell: (rank(cell.verdict), cell.ratio.ratio))


def _cell(before: Result, after: Result, threshold: float, p: float) -> Cell:
    ratio = stats.ratio(before, after)
    low, high = ratio.ci95
    verdict = UNPROVEN
    if p <= ALPHA and high < 1 / (1 + threshold):
        verdict = SLOWER
    elif p <= ALPHA and low > 1 + threshold:
        verdict = FASTER
    proven = verdict != UNPROVEN
    return Cell(before, after, replace(ratio, significant=proven), p, verdict)
