# SPDX-License-Identifier: GPL-2.0-only
"""The chooser fed with garbage: answers in range, and always the same."""

from __future__ import annotations

import random
from typing import Any

from choosesim import GIB, MIB, MOST, Chooser, lib
from hypothesis import given, settings
from hypothesis import strategies as st

SAMPLE = st.tuples(
    st.one_of(st.integers(0, 9), st.integers(0, 2**32 - 1)),
    st.one_of(st.sampled_from([0, 1, 4095, 4096, MIB]), st.integers(0, 2**64 - 1)),
    st.one_of(st.sampled_from([0, 1, 15000, 2**43]), st.integers(0, 2**64 - 1)),
)
CALL = st.one_of(
    SAMPLE,
    st.just("next"),
    st.just("reset"),
    st.tuples(st.integers(0, 9), st.integers(0, 2**64 - 1)),
)


def apply(chooser: Chooser, call: Any) -> int:
    """Make one call; return what was answered."""
    if call == "next":
        return chooser.next()
    if call == "reset":
        lib().bmm_choose_reset(chooser.at)
    elif len(call) == 2:
        return chooser.chunk(*call)
    else:
        chooser.feed(*call)
    return 0


@settings(max_examples=300, deadline=None)
@given(st.integers(1, MOST), st.lists(CALL, max_size=150))
def test_garbage_gives_answers_in_range_and_always_the_same(
    candidates: int, calls: list[Any]
) -> None:
    first, second = Chooser(candidates, 0), Chooser(candidates, 255)
    for call in calls:
        said = apply(first, call)
        assert said == apply(second, call)
        assert first.best() == second.best() < candidates
        assert first.next() == second.next() < candidates
        assert [first.cost(k) for k in range(10)] == [second.cost(k) for k in range(10)]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, MOST), st.integers(0, 2**32), st.integers(1, 40))
def test_wild_samples_in_order(candidates: int, seed: int, spread: int) -> None:
    chooser = Chooser(candidates)
    chance = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(1500):
        k = chooser.next()
        assert k < candidates
        size = chooser.chunk(k, GIB)
        chooser.feed(k, size, chance.getrandbits(spread))
