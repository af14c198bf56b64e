# SPDX-License-Identifier: GPL-2.0-only
"""Statistics: known values, and what holds for any samples."""

import math
import random
from itertools import permutations
from pathlib import Path

import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from bulkmm.results import stats
from bulkmm.results.model import ALPHA, Document, Ratio, Result
from bulkmm.shell.errors import BulkmmError

SAMPLES = st.lists(st.floats(1, 1e9), min_size=1, max_size=60)


def arm(variant: str, samples: list[float]) -> Result:
    return stats.summarise_arm("scenario", variant, "ns", 64, samples)


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


@pytest.mark.parametrize("n", range(6, 60))
def test_interval_is_that_of_scipy(n: int) -> None:
    interval = scipy.stats.quantile_test(range(n)).confidence_interval(0.95)
    assert stats.median_interval(range(n)) == (interval.low, interval.high)


@pytest.mark.parametrize("n", [4, 5, 15, 20])
def test_a_clear_difference_is_proven_from_four_samples_on(n: int) -> None:
    ratio = stats.compute_ratio(
        arm("off", around(300, n, 1)), arm("on", around(100, n, 2))
    )
    assert ratio.ratio == pytest.approx(3, rel=0.05)
    assert ratio.ci95[0] < ratio.ratio < ratio.ci95[1]
    assert (ratio.base, ratio.variant, ratio.significant) == ("off", "on", True)


def test_below_six_a_ratio_has_the_range_of_all_pairs() -> None:
    ratio = stats.compute_ratio(arm("a", [300, 400]), arm("b", [100, 200]))
    assert (ratio.ci95, ratio.spread, ratio.n) == ((1.5, 4), "range", 2)
    alone = stats.compute_ratio(arm("a", [300.0]), arm("b", [100.0]))
    assert (alone.ratio, alone.spread) == (3, "")


@settings(max_examples=20)
@given(SAMPLES, SAMPLES)
def test_a_ratio_can_be_turned_round(first: list[float], second: list[float]) -> None:
    forward, back = (
        stats.compute_ratio(*pair)
        for pair in permutations((arm("a", first), arm("b", second)))
    )
    assert forward.ci95[0] <= forward.ratio <= forward.ci95[1]
    assert forward.ratio * back.ratio == pytest.approx(1)
    assert forward.ci95[0] * back.ci95[1] == pytest.approx(1)


def of_processes(variant: str, raw: list[list[int]]) -> Result:
    return stats.of_processes("scenario", variant, 64, raw)


def ratio_of(base: list[list[int]], variant: list[list[int]], noise: int = 1) -> Ratio:
    """Return the ratio of two arms beside a control that moves so much, in percent."""
    arms = {"a": of_processes("a", base), "b": of_processes("b", variant)}
    again = [[ns * (100 + noise) // 100 for ns in times] for times in base]
    arms["a-again"] = of_processes("a-again", again)
    (ratio,) = stats.judge_ratios(
        stats.compare_arms(arms, [("a", "b")], ("a", "a-again"))
    )
    return ratio


def test_the_process_is_the_unit() -> None:
    result = of_processes("a", [[3, 1, 2], [30, 10, 20]])
    assert (result.samples, result.median, result.spread) == ([2, 20], 11, "range")
    assert result.raw == [[3, 1, 2], [30, 10, 20]]
    many = of_processes("a", [[ns, ns] for ns in range(6)])
    assert (many.ci95, many.spread) == ((0, 5), "95 %")
    assert result.cv == pytest.approx(12.7279 / 11, abs=1e-4)
    assert of_processes("a", [[5]]).cv is None


def test_a_ratio_is_paired_by_round() -> None:
    """What drifts from round to round hits both arms and does not show."""
    drift = [[100, 1000, 10000], [7000, 500, 90], [40, 4000, 400]]
    half = [[ns // 2 for ns in times] for times in drift]
    ratio = ratio_of(drift, half)
    assert (ratio.ratio, ratio.ci95, ratio.n) == (2, (2, 2), 3)
    unpaired = stats.compute_ratio(of_processes("a", drift), of_processes("b", half))
    assert unpaired.ci95[0] < 1 < unpaired.ci95[1]


def test_fewer_than_six_processes_prove_nothing() -> None:
    assert not ratio_of([[100]] * 5, [[50]] * 5).significant


def test_a_control_that_moves_by_more_is_said() -> None:
    assert ratio_of([[100]] * 5, [[95]] * 5, noise=20).unstable
    assert not ratio_of([[100]] * 5, [[50]] * 5, noise=20).unstable
    # nobody would notice
    assert not ratio_of([[100]] * 5, [[100]] * 5, noise=1).unstable


def test_from_six_processes_on_an_exact_test_and_an_interval() -> None:
    slow = [[100 + i] for i in range(6)]
    assert ratio_of(slow, [[90 + i] for i in range(6)], noise=50).significant
    mixed = [[90 + 4 * i] for i in range(6)]
    ratio = ratio_of(slow, mixed)
    assert (ratio.significant, ratio.spread) == (False, "95 %")
    assert ratio.ci95[0] < 1 < ratio.ci95[1]


@pytest.mark.parametrize("n", [5, 6, 20])
def test_what_is_found_can_be_written_and_read(tmp_path: Path, n: int) -> None:
    """Whatever library decided it, and whatever types of its own that has."""
    arms = {name: of_processes(name, [[ns]] * n) for name, ns in (("a", 9), ("b", 5))}
    ratios = stats.judge_ratios(stats.compare_arms(arms, [("a", "b")], ("a", "a")))
    ratios.append(stats.compute_ratio(arms["a"], arms["b"]))
    machine = {"accelerator": "native"}
    document = Document(machine, list(arms.values()), ratios)
    document.write(tmp_path / "r.json")
    assert Document.read(tmp_path / "r.json").to_json() == document.to_json()


def test_a_clear_effect_is_proven_among_many() -> None:
    """However many ratios stand beside it: they are judged together."""
    arms = {
        f"{k}": of_processes(f"{k}", [[round(ns)] for ns in around(1e6, 6, k)])
        for k in range(100)
    }
    arms |= {
        name: of_processes(name, [[middle + i] for i in range(6)])
        for name, middle in (("base", 1_000_000), ("faster", 500_000))
    }
    ratios = stats.judge_ratios(
        stats.compare_arms(arms, [("base", name) for name in arms if name != "base"])
    )
    assert ratios[-1].significant
    assert sum(ratio.significant for ratio in ratios) == 1


def test_more_processes_than_signs_can_be_listed() -> None:
    noise = [x - 100 for x in around(100, 20, 1)]
    p_noise, p_effect = stats.p_of_signs([noise, [x + 5 for x in noise]])
    assert p_effect < ALPHA / 50
    assert p_noise > ALPHA


def clustered(name: str, n: int, seed: int, middle: float = 1e6) -> Result:
    """Return an arm of processes, each of which has its own luck."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311

    def calls() -> list[int]:
        luck = chance.gauss(0, 0.05)
        return [round(middle * math.exp(chance.gauss(luck, 0.01))) for _ in range(8)]

    return of_processes(name, [calls() for _ in range(n)])


@pytest.mark.parametrize("n", [6, 9])
@pytest.mark.parametrize("way", ["paired", "apart"])
def test_a_ratio_covers_what_clustered_samples_are_of(n: int, way: str) -> None:
    runs, hits = 200, 0
    for seed in range(runs):
        base, variant = clustered("a", n, seed), clustered("b", n, seed, 5e5)
        (paired, _), *_ = stats.compare_arms({"a": base, "b": variant}, [("a", "b")])
        ratio = paired if way == "paired" else stats.compute_ratio(base, variant)
        assert ratio.spread == "95 %"
        hits += ratio.ci95[0] <= 2 <= ratio.ci95[1]
    assert hits >= 0.93 * runs


def test_a_scipy_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy, "__version__", "1.10.1")
    with pytest.raises(BulkmmError, match=r"scipy 1\.10\.1 is too old"):
        stats.p_of_signs([[1.0] * 6])
