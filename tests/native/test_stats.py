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
    from bulkmm.results import Ratio, Result

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


def test_below_six_a_ratio_has_the_range_of_all_pairs() -> None:
    ratio = stats.ratio(arm("a", [300, 400]), arm("b", [100, 200]))
    assert (ratio.ci95, ratio.spread, ratio.n) == ((1.5, 4), "range", 2)
    alone = stats.ratio(arm("a", [300.0]), arm("b", [100.0]))
    assert (alone.ratio, alone.spread) == (3, "")


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


def of_processes(variant: str, raw: list[list[int]]) -> Result:
    return stats.of_processes("scenario", variant, 64, raw)


def one(base: list[list[int]], variant: list[list[int]], noise: int = 1) -> Ratio:
    """Return the ratio of two arms beside a control that moves so much, in percent."""
    arms = {"a": of_processes("a", base), "b": of_processes("b", variant)}
    again = [[ns * (100 + noise) // 100 for ns in times] for times in base]
    arms["a-again"] = of_processes("a-again", again)
    (found,) = stats.paired(arms, [("a", "b")], ("a", "a-again"))
    return found


def test_the_process_is_the_unit() -> None:
    result = of_processes("a", [[3, 1, 2], [30, 10, 20]])
    assert (result.samples, result.median, result.spread) == ([2, 20], 11, "range")
    assert result.raw == [[3, 1, 2], [30, 10, 20]]
    assert result.cv == pytest.approx(12.7279 / 11, abs=1e-4)
    assert of_processes("a", [[5]]).cv is None


def test_a_ratio_is_paired_by_round() -> None:
    """What drifts from round to round hits both arms and does not show."""
    drift = [[100, 1000, 10000], [7000, 500, 90], [40, 4000, 400]]
    half = [[ns // 2 for ns in times] for times in drift]
    ratio = one(drift, half)
    assert (ratio.ratio, ratio.ci95, ratio.n) == (2, (2, 2), 3)
    assert (ratio.spread, ratio.significant) == ("range", True)
    unpaired = stats.ratio(of_processes("a", drift), of_processes("b", half))
    assert unpaired.ci95[0] < 1 < unpaired.ci95[1]


def test_rounds_that_do_not_pair_count_by_their_median() -> None:
    assert one([[300, 100, 200]] * 3, [[100]] * 3).ratio == 2


@pytest.mark.parametrize(
    ("variant", "noise", "proven"),
    [
        ([90, 91, 92, 93, 94], 1, True),
        ([90, 91, 92, 93, 101], 1, False),  # one process says otherwise
        ([90, 91, 92, 93, 94], 8, False),  # the control moves by more than the least
        ([90, 91], 1, False),  # too few for anything
    ],
)
def test_below_six_processes_all_must_agree_beyond_the_control(
    variant: list[int], noise: int, *, proven: bool
) -> None:
    found = one([[100]] * len(variant), [[ns] for ns in variant], noise)
    assert found.significant is proven


def test_without_a_control_few_processes_prove_nothing() -> None:
    arms = {"a": of_processes("a", [[100]] * 5), "b": of_processes("b", [[50]] * 5)}
    assert not stats.paired(arms, [("a", "b")])[0].significant


def test_a_control_that_moves_by_more_is_said() -> None:
    assert one([[100]] * 5, [[95]] * 5, noise=20).unstable
    assert not one([[100]] * 5, [[50]] * 5, noise=20).unstable
    assert not one([[100]] * 5, [[100]] * 5, noise=1).unstable  # nobody would notice


def test_from_six_processes_on_an_exact_test_and_an_interval() -> None:
    slow = [[100 + i] for i in range(6)]
    assert one(slow, [[90 + i] for i in range(6)], noise=50).significant
    mixed = [[90 + 4 * i] for i in range(6)]
    found = one(slow, mixed)
    assert (found.significant, found.spread) == (False, "95 %")
    assert found.ci95[0] < 1 < found.ci95[1]


def test_many_ratios_are_corrected() -> None:
    arms = {"a": of_processes("a", [[1000 + i] for i in range(6)])}
    arms |= {
        f"{k}": of_processes(f"{k}", [[900 + i * k] for i in range(6)])
        for k in range(1, 7)
    }
    pairs = [("a", f"{k}") for k in range(1, 7)]
    assert all(r.significant for r in stats.paired(arms, pairs[:5]))
    assert not any(r.significant for r in stats.paired(arms, pairs))


def test_chance_is_seldom_proven() -> None:
    """Noise of one kind in all arms: with five processes below one in a hundred."""
    found = 0
    for seed in range(300):
        chance = random.Random(seed)  # noqa: S311
        arms = {
            name: of_processes(
                name, [[round(chance.gauss(1e6, 2e4))] for _ in range(5)]
            )
            for name in ("a", "a-again", "b")
        }
        (ratio,) = stats.paired(arms, [("a", "b")], ("a", "a-again"))
        found += ratio.significant
    assert found <= 3
