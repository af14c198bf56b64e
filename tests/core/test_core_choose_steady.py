# SPDX-License-Identifier: GPL-2.0-only
"""The chooser on steady machines: what it loses against the best, at most."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from choosesim import GIB, KIB, MIB, REAL, lib, steady
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

MACHINES = [
    (12, 70),
    (35, 70),
    (69, 70),
    (12, 22, 70),
    REAL,
    (12, 22, 35, 66, 70),
    (12, 14, 22, 35, 60, 70),
    (60, 62, 64, 66, 68, 70),
    (12, 12, 12, 12, 12, 70),  # all but one are six times slower
    (7, 7, 7, 7, 7, 70),  # ten times
]
SIZES = [64 * KIB, 2 * MIB, 32 * MIB, GIB]


@pytest.mark.parametrize("op", SIZES)
@pytest.mark.parametrize("rates", MACHINES)
def test_steady(rates: Sequence[float], op: int) -> None:
    for order in (rates, rates[::-1]):
        run = steady(*order, op=op).work()
        assert run.lost <= 2
        assert run.chooser.best() == order.index(70)
        more = 4 * GIB if op > MIB else GIB
        assert run.work(more).lost <= 1.6  # re-trials alone
        if op >= 32 * MIB:
            assert run.work(16 * GIB).lost <= 0.8


def test_steady_in_every_order() -> None:
    for rates in permutations(REAL):
        assert steady(*rates).work().lost <= 0.8


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(10, 70), min_size=1, max_size=6), st.sampled_from(SIZES[1:]))
def test_steady_at_any_rates(rates: list[float], op: int) -> None:
    assert steady(*rates, op=op).work().lost <= 2


@pytest.mark.parametrize("op", [64 * MIB, 256 * MIB, GIB])
@pytest.mark.parametrize("rates", [(17, 14, 22), (20, 21, 14), (14, 27)])
def test_faster_only_in_long_chunks(rates: Sequence[float], op: int) -> None:
    """As REP STOSB is: in a few turns it is found, and then it stays."""
    slow = rates.index(14)
    run = steady(*rates, op=op, lengthy=(slow, 44)).work(5 * GIB)
    assert run.chooser.best() == slow
    run.work(8 * GIB)
    assert run.lost <= 2
    assert run.chooser.best() == slow
    assert steady(*rates, op=2 * MIB, lengthy=(slow, 44)).work(5 * GIB).lost <= 0.5


@pytest.mark.parametrize("op", [32 * MIB, 64 * MIB, 256 * MIB, GIB, 4 * GIB])
@pytest.mark.parametrize("rates", [(15, 18.9), (19, 15, 15), (12, 15, 20)])
def test_found_at_once_where_it_is_announced(rates: Sequence[float], op: int) -> None:
    """A cache of 32 MiB: whole operations of this size count, no part of one."""
    slow = rates.index(15)
    how: dict[str, Any] = {"lengthy": (slow, 44), "known": 1 << slow, "long": 32 * MIB}
    run = steady(*rates, op=op, **how).work(max(op, GIB))
    assert run.chooser.best() == slow
    assert run.work(4 * GIB).lost <= 1
    assert run.chooser.best() == slow


@pytest.mark.parametrize("op", [*SIZES, 64 * MIB, 4 * GIB])
@pytest.mark.parametrize("rates", [*MACHINES, (51, 51.5, 70), (70, 51)])
def test_announced_in_vain(rates: Sequence[float], op: int) -> None:
    for k in range(len(rates)):
        run = steady(*rates, op=op, known=1 << k)
        for _ in range(2):
            assert run.work(max(op, GIB)).lost <= 3
            assert run.chooser.best() == rates.index(70)
        if op >= 32 * MIB:
            assert run.work(16 * GIB).lost <= 0.8


def test_who_is_far_slower_gets_no_long_chunk() -> None:
    run = steady(15, 70, known=1).work(4 * GIB)
    assert max(size for k, size in run.log if k == 0) <= 8 * MIB


def test_reset_tries_again() -> None:
    run = steady(15, 18.9, op=32 * MIB, lengthy=(0, 44), known=1).work()
    for _ in range(2):
        run.log.clear()
        run.work(16 * GIB)
        lib().bmm_choose_reset(run.chooser.at)
    run.log.clear()
    run.work()
    assert max(size for k, size in run.log if k == 0) == 32 * MIB


@pytest.mark.parametrize("rates", [REAL, (18, 20, 70), (30, 70)])
def test_a_caller_that_does_less_than_it_is_offered(rates: Sequence[float]) -> None:
    run = steady(*rates, op=4 * GIB, most=2 * MIB).work(4 * GIB)
    assert run.work(4 * GIB).lost <= 0.5


def test_retrials_are_rare() -> None:
    run = steady(*REAL, op=64 * KIB).work()
    run.log.clear()
    run.work()
    assert 10 <= sum(k != 3 for k, _ in run.log) <= 16  # of 16384 chunks
