# SPDX-License-Identifier: GPL-2.0-only
"""The chooser on machines that change while it works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from choosesim import GIB, MIB, REAL, Run, then, uniform

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.parametrize(
    ("after", "small", "large"),
    [
        ((12, 22, 35, 20), 2, 30),  # the winner is slower: the second takes over
        ((70, 22, 35, 12), 8, 130),  # and what is best now was the slowest
        ((6, 11, 17, 35), 1, 1),  # all are slower, and the winner is the same
    ],
)
def test_winner_becomes_slower(
    after: Sequence[float], small: float, large: float
) -> None:
    """At once in small pieces; blind for up to 128 MiB in a large operation."""
    rates = then(GIB // 2, REAL, after)
    assert Run(rates, op=2 * MIB).work().lost <= small
    assert Run(rates, op=GIB).work().lost <= large
    for op in (2 * MIB, GIB):
        run = Run(rates, op=op).work()
        assert run.chooser.best() == after.index(max(after))
        assert run.work().lost <= 1.5


def test_drift_long_after_the_decision() -> None:
    run = Run(then(9 * GIB, REAL, (12, 22, 35, 20)), op=2 * MIB).work(9 * GIB)
    assert run.work().lost <= 1.5
    assert run.chooser.best() == 2


def test_noisy_drift() -> None:
    rates = then(GIB // 2, REAL, (12, 22, 35, 20))
    for seed in range(10):
        run = Run(rates, op=2 * MIB, noise=uniform(0.3), seed=seed).work()
        assert run.lost <= 5


@pytest.mark.parametrize("op", [2 * MIB, GIB])
def test_rival_that_becomes_faster_is_found_when_its_turn_comes(op: int) -> None:
    for slow in range(3):
        now = list(REAL)
        now[slow] = 140.0
        run = Run(then(6 * GIB, REAL, now), op=op).work(6 * GIB)
        run.work(4 * GIB)  # three rivals, one turn in 1024 MiB
        assert run.lost <= 100
        assert run.chooser.best() == slow
        assert run.work().lost <= 1.5


def test_endless_change() -> None:
    """The best changes every 128 MiB: still better than to stay with either."""
    two = ((12.0, 22.0, 70.0, 30.0), (12.0, 22.0, 60.0, 70.0))
    run = Run(lambda done: two[done >> 27 & 1], op=2 * MIB).work(4 * GIB)
    assert run.lost <= 9
