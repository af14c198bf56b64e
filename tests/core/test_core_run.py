# SPDX-License-Identifier: GPL-2.0-only
"""Runs and blocks: against their definitions, and that blocks tile a range."""

from __future__ import annotations

from typing import Any

from corelib import core, ffi
from hypothesis import given, settings
from hypothesis import strategies as st

WORD = 2**64
NUMBER = st.integers(0, WORD - 1) | st.sampled_from([0, 1, 511, 512, WORD - 9])
STEP = st.sampled_from([1, 64, 4096]) | NUMBER
ORDERS = st.sets(st.integers(0, 63)) | st.just({9}) | st.just({4, 9, 18})


def model(items: list[int], step: int) -> int:
    """Return the length of the first run by its definition."""
    wanted = ((items[0] + i * step) % WORD for i in range(len(items)))
    pairs = zip(items, wanted, strict=True) if items else ()
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(items))


def array(items: list[int]) -> Any:
    """Return an array of exactly the items."""
    return ffi.new("unsigned long[]", items) if items else ffi.NULL


@settings(max_examples=500, deadline=None)
@given(NUMBER, STEP, st.integers(0, 100), st.lists(NUMBER, max_size=20))
def test_run_length(first: int, step: int, run: int, rest: list[int]) -> None:
    items = [(first + i * step) % WORD for i in range(run)] + rest
    wanted = model(items, step)
    assert wanted >= min(run, len(items))
    assert core().bmm_run_length_step(array(items), len(items), step) == wanted


@settings(max_examples=300, deadline=None)
@given(NUMBER, st.integers(1, 100), st.integers(0, 99), NUMBER)
def test_one_item_out_of_step(first: int, run: int, at: int, odd: int) -> None:
    items = [(first + i) % WORD for i in range(run)]
    items[at % run] = odd
    length = core().bmm_run_length_step(array(items), len(items), 1)
    assert length == model(items, 1)


@settings(max_examples=200, deadline=None)
@given(NUMBER, st.integers(0, 40), st.lists(NUMBER, max_size=5))
def test_a_getter_is_asked_once_for_each(first: int, run: int, rest: list[int]) -> None:
    items = [(first + i) % WORD for i in range(run)] + rest
    asked: list[int] = []

    @ffi.callback("unsigned long(const void *, size_t)")
    def get(_ctx: Any, i: int) -> int:
        asked.append(i)
        return items[i]

    length = core().bmm_run_length_get(get, ffi.NULL, len(items))
    assert length == model(items, 1)
    assert asked == list(range(min(length + 1, len(items))))


def mask(orders: set[int]) -> int:
    """Return the orders as the core takes them."""
    return sum(1 << o for o in orders)


def fits(order: int, vpn: int, pfn: int, pages: int) -> bool:
    """Return whether a block of this order can start here, by definition."""
    size = 1 << order
    return vpn % size == 0 and pfn % size == 0 and pages >= size


ALIGNED = st.builds(
    lambda number, low: number >> low << low, NUMBER, st.integers(0, 63)
)


@settings(max_examples=1000, deadline=None)
@given(ALIGNED, ALIGNED, NUMBER, ORDERS)
def test_block_order_is_the_largest_that_fits(
    vpn: int, pfn: int, pages: int, orders: set[int]
) -> None:
    got = core().bmm_block_order(vpn, pfn, pages, mask(orders))
    wanted = max((o for o in orders if fits(o, vpn, pfn, pages)), default=0)
    assert got == wanted


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 2**20),
    st.integers(0, 2**20),
    st.integers(1, 5000),
    st.sampled_from([{9}, {4, 9}, {4, 9, 18}, set(), {1, 2, 3}]),
)
def test_blocks_tile_a_range(vpn: int, pfn: int, pages: int, orders: set[int]) -> None:
    end = vpn + pages
    while vpn < end:
        order = core().bmm_block_order(vpn, pfn, end - vpn, mask(orders))
        assert order in orders | {0}
        vpn, pfn = vpn + (1 << order), pfn + (1 << order)
    assert vpn == end


def test_nothing_left_is_order_0() -> None:
    assert core().bmm_block_order(0, 0, 0, 2**64 - 1) == 0
    assert core().bmm_block_order(0, 0, 2**64 - 1, 2**64 - 1) == 63
