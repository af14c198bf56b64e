# SPDX-License-Identifier: GPL-2.0-only
"""Statistics: known values, and what holds for any samples."""

from __future__ import annotations

import random
import statistics
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulkmm import stats

if TYPE_CHECKING:
    from bulkmm.results import Result

SAMPLES = st.lists(st.floats(1, 1e9), min_size=1, max_size=60)


def arm(variant: str, samples: list[float]) -> Result:
    return stats.summarise("scenario", variant, "ns", 64, samples)


def around(middle: float, n: int, seed: int) -> list[float]:
    chance = random.Random(seed)  # noqa: S311
    return [chance.gauss(middle, middle / 50) for _ in range(n)]


@pytest.mark.parametrize(
    ("n", "rank"),  # of the lower end, from the usual table of order statistics
    [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (17, 5),
     (20, 6), (25, 8), (30, 10), (50, 18)],
)  # fmt: skip
def test_interval_has_the_ranks_of_the_table(n: int, rank: int) -> None:
    samples = [float(i) for i in range(1, n + 1)]
    assert stats.median_interval(samples) == (rank, n + 1 - rank)


def test_summary() -> None:
    result = arm("off", [5, 1, 4, 2, 3, 6])
    assert (result.median, result.ci95) == (3.5, (1, 6))
    assert result.samples == [5, 1, 4, 2, 3, 6]
    assert (result.scenario, result.variant, result.unit) == ("scenario", "off", "ns")


def test_no_samples_are_no_result() -> None:
    with pytest.raises(ValueError, match="no samples"):
        arm("off", [])


def test_interval_covers_the_median_as_often_as_it_says() -> None:
    hits = 0
    for seed in range(1000):
        chance = random.Random(seed)  # noqa: S311
        low, high = stats.median_interval([chance.expovariate(1) for _ in range(15)])
        hits += low <= 0.693147 <= high
    assert hits >= 935


@given(SAMPLES)
def test_interval_holds_the_median(samples: list[float]) -> None:
    low, high = stats.median_interval(samples)
    assert min(samples) <= low <= statistics.median(samples) <= high <= max(samples)


def test_ratio_is_base_over_variant() -> None:
    ratio = stats.ratio(arm("off", around(300, 15, 1)), arm("on", around(100, 15, 2)))
    assert ratio.ratio == pytest.approx(3, rel=0.05)
    assert ratio.ci95[0] < ratio.ratio < ratio.ci95[1]
    assert (ratio.base, ratio.variant, ratio.significant) == ("off", "on", True)


def test_no_difference_is_not_proven() -> None:
    proven = [
        stats.ratio(arm("a", around(100, 15, s)), arm("b", around(100, 15, 999 - s)))
        for s in range(40)
    ]
    assert sum(ratio.significant for ratio in proven) <= 6


def test_too_few_samples_prove_nothing() -> None:
    assert not stats.ratio(arm("a", [300.0] * 3), arm("b", [100.0] * 3)).significant


@pytest.mark.parametrize("n", [4, 5, 20])
def test_a_clear_difference_is_proven_from_four_samples_on(n: int) -> None:
    slow, fast = arm("a", around(300, n, 1)), arm("b", around(100, n, 2))
    assert stats.ratio(slow, fast).significant


def test_equal_samples() -> None:
    ratio = stats.ratio(arm("a", [100.0] * 9), arm("b", [100.0] * 9))
    assert (ratio.ratio, ratio.ci95, ratio.significant) == (1, (1, 1), False)


@settings(max_examples=20, deadline=None)
@given(SAMPLES, SAMPLES, st.integers(0, 100))
def test_ratio_can_be_repeated_and_turned_round(
    a: list[float], b: list[float], seed: int
) -> None:
    one = stats.ratio(arm("a", a), arm("b", b), seed)
    assert one == stats.ratio(arm("a", a), arm("b", b), seed)
    assert one.ci95[0] <= one.ci95[1]
    back = stats.ratio(arm("b", b), arm("a", a), seed)
    assert one.ratio * back.ratio == pytest.approx(1)


def test_scenarios_do_not_mix() -> None:
    other = stats.summarise("other", "on", "ns", 64, [1.0])
    with pytest.raises(ValueError, match="do not compare"):
        stats.ratio(arm("off", [1.0]), other)
