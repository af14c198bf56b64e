# SPDX-License-Identifier: GPL-2.0-only
"""The chooser where a candidate stalls, once or always."""

from __future__ import annotations

import pytest
from choosesim import GIB, KIB, MIB, REAL, steady


@pytest.mark.parametrize("op", [2 * MIB, GIB])
@pytest.mark.parametrize("slow", range(3))
def test_stalling_candidate_is_asked_once(slow: int, op: int) -> None:
    """It costs a chunk of 256 KiB, the next one after three GiB, then every 8."""
    run = steady(*REAL, op=op, stall=lambda k, _: 100 if k == slow else 1)
    run.work(3 * GIB)
    assert [size for k, size in run.log if k == slow] == [256 * KIB]
    once = 256 * KIB * (100 / REAL[slow] - 1 / 70)
    assert run.took - once <= run.ideal * 1.03
    run.work(16 * GIB)
    assert 1 < sum(k == slow for k, _ in run.log) <= 3


@pytest.mark.parametrize("op", [2 * MIB, GIB])
def test_best_stalls_on_its_first_chunk(op: int) -> None:
    """The second takes its place for 7 GiB; that is the price of the above."""
    run = steady(*REAL, op=op, stall=lambda k, i: 100 if (k, i) == (3, 0) else 1)
    run.work(7 * GIB)
    assert run.lost <= 105
    assert run.chooser.best() == 3
    assert run.work().lost <= 1.5


@pytest.mark.parametrize("chunk", [12, 20, 50])
def test_winner_stalls_once_and_keeps_its_place(chunk: int) -> None:
    run = steady(
        *REAL, op=2 * MIB, stall=lambda k, i: 100 if (k, i) == (3, chunk) else 1
    )
    run.work()
    once = 2 * MIB * 99 / 70
    assert run.took - once <= run.ideal * 1.03
    assert run.chooser.best() == 3
    assert run.chunks[3] > 490


def test_winner_that_stalls_from_now_on_costs_a_few_chunks() -> None:
    run = steady(*REAL, op=2 * MIB, stall=lambda k, i: 100 if k == 3 < i - 36 else 1)
    run.work()
    assert run.chooser.best() == 2
    assert 40 <= run.chunks[3] <= 43
    assert run.work(2 * GIB).chunks[3] <= 43
