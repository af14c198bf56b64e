# SPDX-License-Identifier: GPL-2.0-only
"""Which chooser of a table: by operation, length and memory node."""

from __future__ import annotations

import pytest
from choosesim import KIB, MIB, lib
from corelib import Op
from hypothesis import given
from hypothesis import strategies as st

NODES, CLASSES = 8, 8
KEYS = len(Op) * CLASSES * NODES
BOUNDS = [16 * KIB * 4**i for i in range(CLASSES - 1)]


def length_class(length: int) -> int:
    """Return it by the model: how many of the bounds are reached."""
    return sum(length >= bound for bound in BOUNDS)


def test_every_chooser_has_its_key() -> None:
    key = lib().bmm_choose_key
    sizes = [0, *BOUNDS]
    keys = {key(o, s, n) for o in Op for s in sizes for n in range(NODES)}
    assert keys == set(range(KEYS))


@pytest.mark.parametrize("bound", BOUNDS)
def test_classes_change_at_powers_of_four(bound: int) -> None:
    key, reached = lib().bmm_choose_key, length_class(bound)
    first = key(Op.STAMP, 0, 0)
    assert key(Op.STAMP, bound - 1, 0) == first + reached - 1
    assert key(Op.STAMP, bound, 0) == first + reached
    assert key(Op.STAMP, bound + 1, 0) == first + reached
    assert BOUNDS[-1] == 64 * MIB


@given(st.sampled_from(Op), st.integers(0, 63), st.floats(1, 2), st.integers(0, 7))
def test_class_of_any_length(op: Op, log: int, mantissa: float, node: int) -> None:
    length = min(int(2**log * mantissa), 2**64 - 1)
    key = lib().bmm_choose_key
    assert key(op, length, node) - key(op, 0, node) == length_class(length)


def test_unknown_and_far_nodes_share() -> None:
    key = lib().bmm_choose_key
    assert key(Op.CLEAR, MIB, -1) == key(Op.CLEAR, MIB, 0) == key(Op.CLEAR, MIB, 8)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(-(2**31), 99))
def test_keys_are_in_range(op: int, length: int, node: int) -> None:
    assert lib().bmm_choose_key(op, length, node) < KEYS
