# SPDX-License-Identifier: GPL-2.0-only
"""Picking: who is measured, when it ends, and how often it is right."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from corelib import core, ffi
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CANDIDATES, ROUNDS = 16, 9
KIB, MIB = 1 << 10, 1 << 20
SAMPLE = 2 * MIB
CALLS = SAMPLE // (4 * KIB)
WORD = st.integers(0, 2**32 - 1)


class Pick:
    """A pick among so many, in memory that held something else."""

    def __init__(self, candidates: int, skip: int = 0) -> None:
        """Start it."""
        self.at = ffi.new("struct bmm_pick *")
        ffi.buffer(self.at)[:] = b"\xa5" * ffi.sizeof(self.at[0])
        core().bmm_pick_start(self.at, candidates, skip)

    def feed(self, ns: int, size: int = SAMPLE) -> bool:
        """Bring the sample that is wanted; return if it decided."""
        return bool(core().bmm_pick_feed(self.at, self.at.turn, size, ns))

    @property
    def wanted(self) -> int:
        """Return who is to be measured."""
        return int(self.at.turn % CANDIDATES)

    @property
    def best(self) -> int:
        """Return who serves."""
        return int(core().bmm_pick_best(self.at))


def decide(
    costs: Sequence[float], noise: Callable[[], float] = lambda: 1.0
) -> tuple[Pick, list[int]]:
    """Measure candidates of such costs; return the pick and who was asked."""
    pick, asked = Pick(len(costs)), []
    while not pick.at.decided:
        asked.append(pick.wanted)
        pick.feed(round(costs[pick.wanted] * 100000 * noise()))
        assert len(asked) <= ROUNDS * len(costs)
    return pick, asked


def test_one_candidate_is_not_measured() -> None:
    pick = Pick(1)
    assert (pick.at.decided, pick.best) == (1, 0)


@pytest.mark.parametrize("best", range(4))
def test_the_fastest_is_kept(best: int) -> None:
    costs = [1.0 if k == best else 1.01 + k / 200 for k in range(4)]
    pick, asked = decide(costs)
    assert pick.best == best
    assert asked[:8] == [0, 1, 2, 3] * 2  # in turns
    assert len(asked) == ROUNDS * 4  # so close that nobody drops out


def test_who_is_slow_drops_out_after_two_samples() -> None:
    pick, asked = decide([1.0, 1.3, 1.02, 20.0])
    assert pick.best == 0
    assert asked.count(1) == asked.count(3) == 2
    assert asked.count(2) == ROUNDS


def test_the_limit_narrows_round_by_round() -> None:
    """25 % behind the leader after two samples, then 12, 6, 3 % and no less."""
    _, asked = decide([1.0, 1.24, 1.12, 1.06, 1.03])
    assert [asked.count(k) for k in range(5)] == [ROUNDS, 3, 4, 5, ROUNDS]


@pytest.mark.parametrize("skip", [0b10, 0b1010, 0b1110, 0b1000])
def test_who_is_skipped_is_never_asked(skip: int) -> None:
    pick, asked = Pick(4, skip), set()
    while not pick.at.decided:
        asked.add(pick.wanted)
        pick.feed(1000000 - 10 * pick.wanted)
    assert asked == {k for k in range(4) if not skip >> k & 1}
    assert pick.best == max(asked)


def test_who_is_alone_is_decided_on_at_once() -> None:
    _, asked = decide([1.0, 2.0, 3.0])
    assert len(asked) == 2 * 3


def test_one_lucky_sample_does_not_decide() -> None:
    pick = Pick(2)
    while not pick.at.decided:
        lucky = pick.at.turn == 1  # the first of the second one
        pick.feed(99_000 if lucky else (100_000, 105_000)[pick.wanted])
    assert pick.best == 0


def test_one_slow_sample_does_no_harm() -> None:
    pick = Pick(2)
    while not pick.at.decided:
        pick.feed(9_000_000 if pick.at.turn == 0 else (100, 120)[pick.wanted])
    assert pick.best == 0


def test_of_equals_the_first_guess_stays() -> None:
    assert decide([1.0] * 5)[0].best == 0


def test_short_operations_are_summed() -> None:
    pick = Pick(2)
    for call in range(1, CALLS + 1):
        assert pick.at.turn == 0
        pick.feed(1000 + call, 4 * KIB)
    assert pick.at.turn == 1
    took = sum(1000 + call for call in range(1, CALLS + 1))
    assert pick.at.cost[0].least == took * MIB // SAMPLE
    assert (pick.at.bytes, pick.at.ns) == (0, 0)


def test_a_sample_of_another_turn_is_ignored() -> None:
    pick, lib = Pick(3), core()
    pick.feed(1000)
    before = bytes(ffi.buffer(pick.at))
    for turn in (0, 2, CANDIDATES, 2**32 - 1):
        assert not lib.bmm_pick_feed(pick.at, turn, SAMPLE, 1)
    assert bytes(ffi.buffer(pick.at)) == before


def test_what_is_decided_stays() -> None:
    pick, _ = decide([1.0, 2.0])
    before = bytes(ffi.buffer(pick.at))
    for _ in range(100):
        assert not pick.feed(1)
    assert bytes(ffi.buffer(pick.at)) == before


def test_exactly_one_call_decides() -> None:
    pick = Pick(3)
    decided = [pick.feed(1000 + pick.wanted) for _ in range(100)]
    assert decided.count(True) == 1


@pytest.mark.parametrize(
    ("size", "ns", "mb"),
    [(SAMPLE, 52429, 40000), (10**9, 10**9, 1000), (4 << 30, 2**63, 0)],
)
def test_rates(size: int, ns: int, mb: int) -> None:
    pick = Pick(2)
    assert core().bmm_pick_rate(pick.at, 0) == 0
    pick.feed(ns, size)
    assert core().bmm_pick_rate(pick.at, 0) == pytest.approx(mb, rel=0.001)


@settings(max_examples=200)
@given(st.integers(1, CANDIDATES), st.lists(st.tuples(WORD, WORD), max_size=400))
def test_any_times_end_and_stay_in_range(
    candidates: int, samples: list[tuple[int, int]]
) -> None:
    pick = Pick(candidates)
    for size, ns in samples:
        pick.feed(ns * ns, max(size, 1))  # often a part of a sample
        assert pick.wanted < candidates
        assert pick.best < candidates
    for _ in range(ROUNDS * candidates):
        pick.feed(1000)
    assert pick.at.decided


def noisy(r: random.Random) -> float:
    """Return 2 % of noise, and every twentieth time a stall."""
    return r.uniform(0.98, 1.02) * (r.uniform(1.5, 4) if r.random() < 0.05 else 1)


@pytest.mark.parametrize("behind", [1.02, 1.05, 1.3])
@pytest.mark.parametrize("candidates", [2, 4, 8])
def test_it_is_right_on_a_noisy_machine(candidates: int, behind: float) -> None:
    """Fewer than one run in 200 ends more than 2 % off the best."""
    r, wrong, runs = random.Random(candidates), 0, 2000  # noqa: S311
    for _ in range(runs):
        costs = [behind + k / 50 for k in range(candidates - 1)]
        costs.insert(r.randrange(candidates), 1.0)
        pick, _ = decide(costs, lambda: noisy(r))
        wrong += costs[pick.best] > 1.02
    assert wrong < runs / 200


def test_a_time_of_nothing_is_a_time() -> None:
    assert decide([0.0, 1.0])[0].best == 0


def test_the_cost_of_measuring() -> None:
    """The work that is lost to slower candidates, in operations."""
    for costs in ([1.0, 1.7], [1.0, 1.02, 1.2, 2.6], [1, 1.1, 1.1, 1.1, 1.1, 1.1]):
        _, asked = decide(costs)
        assert sum(costs[k] - 1 for k in asked) <= 4
