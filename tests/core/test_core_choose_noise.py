# SPDX-License-Identifier: GPL-2.0-only
"""The chooser where times are noisy, or candidates as good as each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from choosesim import GIB, MIB, REAL, Run, gauss, steady, then, uniform

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence


def lost_over(seeds: int, rates: Sequence[float], **how: Any) -> list[float]:
    return sorted(steady(*rates, seed=s, **how).work().lost for s in range(seeds))


@pytest.mark.parametrize("noise", [uniform(0.1), uniform(0.3), gauss(0.1), gauss(0.2)])
@pytest.mark.parametrize("op", [2 * MIB, GIB])
def test_noisy(noise: Callable[[random.Random], float], op: int) -> None:
    """The best is found wherever it is better by more than the noise."""
    for rates in (REAL, (12.0, 22.0, 50.0, 70.0)):
        lost = lost_over(30, rates, noise=noise, op=op)
        assert sum(lost) / len(lost) <= 1.2
        assert lost[-1] <= 4


@pytest.mark.parametrize(
    ("noise", "mean"), [(uniform(0.1), 2), (uniform(0.3), 3.5), (gauss(0.2), 3.5)]
)
def test_noise_that_hides_the_differences(
    noise: Callable[[random.Random], float], mean: float
) -> None:
    """One of the better ones is found: the slowest would lose 17 %."""
    lost = lost_over(30, (60, 62, 64, 66, 68, 70), noise=noise, op=2 * MIB)
    assert sum(lost) / len(lost) <= mean
    assert lost[-1] <= 10


@pytest.mark.parametrize("candidates", range(2, 7))
def test_tied(candidates: int) -> None:
    run = steady(*[50.0] * candidates, op=2 * MIB).work()
    assert run.work(4 * GIB).switches == 0


@pytest.mark.parametrize(("share", "switches"), [(0.1, 5), (0.2, 10), (0.3, 15)])
def test_tied_and_noisy(share: float, switches: int) -> None:
    """Switches in 2048 chunks, when each is as good as any other."""
    for seed in range(8):
        run = steady(50, 50, 50, op=2 * MIB, noise=uniform(share), seed=seed)
        run.work()
        assert run.work(4 * GIB).switches <= switches


def test_better_by_less_than_the_margin_is_no_reason_to_switch() -> None:
    run = Run(then(GIB, (50, 40), (50, 51.5)), op=2 * MIB).work()
    assert run.work(8 * GIB).switches == 0
    assert run.lost <= 3
