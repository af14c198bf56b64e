# SPDX-License-Identifier: GPL-2.0-only
"""The calls of the chooser, one by one."""

from __future__ import annotations

import pytest
from choosesim import GIB, KIB, MIB, MOST, REAL, Chooser, Run, ffi, lib, steady
from corelib import EINVAL
from hypothesis import given
from hypothesis import strategies as st


def test_calibration_begins_with_the_fastest_guess_and_asks_all() -> None:
    run = steady(*REAL).work()
    assert run.log[:4] == [(k, 256 * KIB) for k in (3, 2, 1, 0)]
    longest = max(size for _, size in run.log)
    assert 48 * MIB <= longest <= 160 * MIB


def test_long_operation_calibrates_in_longer_chunks() -> None:
    for left, chunk in ((GIB, 1), (3 * GIB, 3), (2**40, 8), (2**63, 8)):
        chooser = Chooser(3)
        assert chooser.chunk(2, left) == 256 * KIB
        chooser.feed(2, MIB, 15000)
        assert chooser.chunk(2, left) == chunk * MIB
        assert chooser.chunk(1, left) == 256 * KIB


@given(st.integers(0, 7), st.integers(0, 2**64 - 1), st.integers(0, 300))
def test_chunk_is_some_of_what_is_left(candidate: int, left: int, chunks: int) -> None:
    chooser = Chooser(6)
    for _ in range(chunks):
        k = chooser.next()
        chooser.feed(k, MIB, 15000 + 9000 * k)
    size = chooser.chunk(candidate, left)
    assert size == left or (0 < size < left and size % (256 * KIB) == 0)
    assert left - size == 0 or left - size > size / 5


def test_the_last_is_best_until_something_is_known() -> None:
    chooser = Chooser(5)
    assert chooser.best() == 4
    chooser.feed(1, MIB, 10**6)
    assert chooser.best() == 1
    chooser.feed(4, MIB, 10**6 - 1)
    assert chooser.best() == 4


def test_a_single_candidate() -> None:
    run = steady(40.0).work(4 * GIB)
    assert run.lost == 0
    assert {k for k, _ in run.log} == {0}


def test_caller_that_never_feeds() -> None:
    chooser = Chooser(4)
    asked = [chooser.next() for _ in range(10000)]
    assert sum(k != 3 for k in asked[:256]) <= 27
    assert sum(k != 3 for k in asked[400:]) <= 20


def test_caller_that_loses_half_of_its_samples() -> None:
    chooser = Chooser(4)
    asked = [chooser.next() for _ in range(5)]
    for i in range(5000):
        asked.append(k := chooser.next())
        if i % 2:
            chooser.feed(k, MIB, round(MIB / REAL[::-1][k]))
    assert chooser.best() == 0
    assert sum(k != 0 for k in asked[500:]) <= 30


@pytest.mark.parametrize(
    ("size", "ns"), [(MIB, 0), (MIB, 255), (0, 100), (4095, 10**6), (2**50, 1000)]
)
def test_impossible_samples_are_ignored(size: int, ns: int) -> None:
    chooser = Chooser(2)
    before = chooser.state
    chooser.feed(0, size, ns)
    chooser.feed(2, MIB, 15000)
    assert chooser.state == before


def test_cost_is_the_median_in_ns_per_mib() -> None:
    chooser = Chooser(2)
    for size, ns in ((MIB, 50000), (4 * MIB, 80000), (64 * KIB, 10**9)):
        chooser.feed(1, size, ns)
    assert chooser.cost(0) == 0
    assert chooser.cost(1) == 50000
    assert chooser.cost(2) == 0
    for _ in range(9):
        chooser.feed(1, 4096, 2**64 - 1)
    assert chooser.cost(1) == 2**32 - 2


def test_reset_is_a_new_beginning() -> None:
    run = steady(*REAL).work(2 * GIB)
    lib().bmm_choose_reset(run.chooser.at)
    again = Run(lambda _: REAL[::-1])
    again.chooser = run.chooser
    assert again.work().log == steady(*REAL[::-1]).work().log
    assert again.chooser.best() == 0


@pytest.mark.parametrize("candidates", [0, MOST + 1, 256, 2**32 - 1])
def test_number_out_of_range(candidates: int) -> None:
    chooser = Chooser(2)
    before = chooser.state
    assert lib().bmm_chooser_init(chooser.at, candidates) == EINVAL
    assert chooser.state == before


def test_zeroed_memory_answers_zero() -> None:
    chooser = Chooser(1)
    ffi.buffer(chooser.memory)[:] = bytes(len(chooser.memory))
    chooser.feed(0, MIB, 15000)
    assert (chooser.next(), chooser.best(), chooser.cost(0)) == (0, 0, 0)
    assert chooser.chunk(0, 2**40) == 2**40
    assert not any(chooser.state)
