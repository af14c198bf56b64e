# SPDX-License-Identifier: GPL-2.0-only
"""When a caller with small operations may do without the chooser."""

from __future__ import annotations

import random
from typing import Any

import pytest
from choosesim import KIB, MIB, REAL, Chooser, Run, ffi, steady, then, uniform

SMALL = 64 * KIB


def worked(chunks: int = 64) -> Run:
    """Return a run that is past its calibration."""
    return steady(*REAL, op=SMALL).work(chunks * SMALL)


def until(run: Run, *, settled: bool) -> None:
    """Work until it is, or is no longer."""
    for _ in range(5000):
        if run.chooser.settled() == settled:
            return
        run.piece(SMALL)
    raise AssertionError(f"never settled = {settled}")


def test_not_while_it_calibrates() -> None:
    chooser = Chooser(2)
    seen = []
    for _ in range(20):
        seen.append(chooser.settled())
        k = chooser.next()
        chooser.feed(k, MIB, 15000 + 100 * k)
    assert not any(seen[:9])
    assert seen[19]


def test_not_if_never_initialised() -> None:
    run = worked()
    assert run.chooser.settled()
    memory = run.chooser.memory
    ffi.buffer(memory)[:] = bytes(len(memory))
    assert not run.chooser.settled()


@pytest.mark.parametrize("noise", [None, uniform(0.2)])
def test_settled_means_that_the_best_is_next(noise: object) -> None:
    """And most of the time it is; what is not, is a re-trial."""
    how: Any = {"noise": noise} if noise else {}
    run = steady(*REAL, op=SMALL, **how).work(64 * SMALL)
    settled = 0
    for _ in range(4000):
        before, best = run.chooser.settled(), run.chooser.best()
        run.piece(SMALL)
        assert not before or run.log[-1][0] == best
        settled += before
    assert 3900 <= settled < 4000


def test_not_when_a_rival_is_due_or_on_trial() -> None:
    run = worked()
    until(run, settled=False)
    run.piece(SMALL)
    assert run.log[-1][0] != run.chooser.best()  # it was due
    until(run, settled=True)
    until(run, settled=False)
    k = run.chooser.next()
    assert k != run.chooser.best()
    assert not run.chooser.settled()  # on trial, and its sample is to come
    run.chooser.feed(k, SMALL, 10**6)
    assert run.chooser.settled()


def test_not_when_the_winner_became_slower() -> None:
    run = worked()
    until(run, settled=True)
    for _ in range(2):
        run.chooser.feed(3, SMALL, SMALL)
    assert not run.chooser.settled()


@pytest.mark.parametrize("seed", range(5))
def test_one_operation_in_sixteen_is_enough(seed: int) -> None:
    """For drift: the new best is found within a few dozen of them."""
    rates = then(2000 * SMALL, REAL, (12, 22, 35, 20))
    run = Run(rates, op=SMALL, noise=uniform(0.1), seed=seed)
    chance = random.Random(seed)  # noqa: S311 - no secret
    asked = 0
    for _ in range(4000):
        if run.chooser.settled() and chance.randrange(16):
            run.done += SMALL
            continue
        run.piece(SMALL)
        asked += 1
    assert asked < 600
    assert run.chooser.best() == 2
