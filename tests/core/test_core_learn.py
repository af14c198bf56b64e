# SPDX-License-Identifier: GPL-2.0-only
"""Learning a layout: it reproduces the whole array, or refuses."""

import mmap
from dataclasses import dataclass, replace
from typing import Any

import pytest
from corelib import (
    EINVAL,
    EUNLIKE,
    HEADS,
    UNITS,
    Op,
    backend_names,
    build_core,
    ffi,
    find_backend,
    record_bytes,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

BACKENDS = backend_names(Op.STAMP)
NORESERVE = 0x4000  # Python's mmap has a name for it from 3.13 on
GAP = 0xC3
WORD = st.integers(0, 2**64 - 1)
STEP = st.one_of(st.just(0), st.sampled_from([1, 64, 4096, 2**32, 2**64 - 64]), WORD)


@dataclass(frozen=True)
class Layout:
    """Units as a kernel might write them."""

    words: int  # of a record
    heads: int
    tails: int
    gap: int  # bytes after a unit
    first: tuple[tuple[int, ...], ...]  # of each head and of the first tail
    unit_step: tuple[tuple[int, ...], ...]

    @property
    def records(self) -> int:
        """Return the records of a unit."""
        return self.heads + self.tails

    @property
    def stride(self) -> int:
        """Return the bytes from unit to unit."""
        return self.records * self.words * 8 + self.gap

    def unit(self, u: int) -> bytes:
        """Return the records of unit u."""
        words = []
        for r in range(self.records):
            index = min(r, self.heads)
            pairs = zip(self.first[index], self.unit_step[index], strict=True)
            words += [word + u * step for word, step in pairs]
        return record_bytes(words)

    def array(self, units: int) -> bytes:
        """Return units with their gaps."""
        gap = bytes([GAP]) * self.gap
        return b"".join(self.unit(u) + gap for u in range(units))


@st.composite
def draw_layouts(
    draw: st.DrawFn, tails: st.SearchStrategy[int], most_heads: int = HEADS
) -> Layout:
    """Return a layout of up to eight heads."""
    words = draw(st.sampled_from([8, 8, 4, 7, 12, 16]))
    heads = draw(st.integers(0, most_heads))

    def draw_words(value: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(st.lists(value, min_size=words, max_size=words)))

    return Layout(
        words=words,
        heads=heads,
        tails=draw(tails),
        gap=draw(st.sampled_from([0, 0, 8, 64, 200])),
        first=tuple(draw_words(WORD) for _ in range(heads + 1)),
        unit_step=tuple(draw_words(STEP) for _ in range(heads + 1)),
    )


def learn_array(layout: Layout, array: bytes, units: int) -> tuple[int, Any, Any]:
    """Return what bmm_learn() says, what it found, and the memory it read.

    What lies between units does not matter: it differs.
    """
    memory = ffi.new("uint64_t[]", max(len(array) // 8, 1))
    view = ffi.buffer(memory)
    view[: len(array)] = array
    for end in range(layout.stride, units * layout.stride + 1, layout.stride):
        view[end - layout.gap : end] = bytes([end % 251]) * layout.gap
    before = view[:]
    model = ffi.new("struct bmm_layout *")
    shape = (layout.words * 8, layout.records, layout.stride)
    geometry = ffi.new("struct bmm_geometry *", shape)
    code = build_core().bmm_learn(model, memory, geometry, units)
    assert view[:] == before  # it only reads
    return code, model, memory


def stamp_array(layout: Layout, model: Any, name: str, first: int, units: int) -> bytes:
    """Return the array that is stamped from a unit on, gaps as they were."""
    memory = ffi.new("uint64_t[]", layout.stride * (first + units) // 8)
    view = ffi.buffer(memory)
    view[:] = bytes([GAP]) * len(view)
    stamper = find_backend(name, Op.STAMP)
    build_core().bmm_layout_stamp(model, stamper, memory, first, units)
    build_core().bmm_drain()
    return view[:]


# a unit of one record has no head: nothing would show what follows it
PREDICTABLE = st.one_of(
    draw_layouts(st.integers(2, 40)), draw_layouts(st.just(1), most_heads=0)
)


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=100)
@given(PREDICTABLE, st.integers(UNITS, 5), st.integers(0, 7), st.data())
def test_predicts_every_unit(
    name: str, layout: Layout, learned: int, more: int, data: st.DataObject
) -> None:
    total = learned + more
    code, model, _ = learn_array(layout, layout.array(learned), learned)
    assert code == 0
    assert model.heads <= layout.heads
    first = data.draw(st.integers(0, total))
    content = stamp_array(layout, model, name, first, total - first)
    untouched = bytes([GAP]) * (first * layout.stride)
    assert content == untouched + layout.array(total)[len(untouched) :]


@settings(max_examples=300)
@given(draw_layouts(st.integers(1, 20)), st.integers(UNITS, 5), st.data())
def test_a_flipped_bit_is_refused_or_reproduced(
    layout: Layout, units: int, data: st.DataObject
) -> None:
    intact = layout.array(units)
    assume(learn_array(layout, intact, units)[0] == 0)
    unit = data.draw(st.integers(0, units - 1))
    inside = data.draw(st.integers(0, layout.records * layout.words * 8 - 1))
    broken = bytearray(intact)
    broken[unit * layout.stride + inside] ^= 1 << data.draw(st.integers(0, 7))

    code, model, _ = learn_array(layout, bytes(broken), units)
    if not code:
        assert unit < UNITS - 1  # a later unit can only be compared
        assert stamp_array(layout, model, "generic", 0, units) == broken
        return
    assert code == EUNLIKE
    assert model.differs < units * layout.records
    if UNITS - 1 <= unit < units - 1:  # not that which shows the tail
        hit = unit * layout.records + inside // (layout.words * 8)
        assert model.differs == hit


def plain_layout(heads: int = 0, tails: int = 4, gap: int = 0) -> Layout:
    """Return a layout in which all heads differ."""
    nothing = (0,) * 8
    return Layout(
        words=8,
        heads=heads,
        tails=tails,
        gap=gap,
        first=tuple(((r + 1) ** 3, *range(7)) for r in range(heads + 1)),
        unit_step=(nothing,) * (heads + 1),
    )


def test_more_heads_than_there_is_room_for_are_refused() -> None:
    for heads in range(12):
        layout = plain_layout(heads)
        code, model, _ = learn_array(layout, layout.array(UNITS), UNITS)
        assert code == (0 if heads <= HEADS else EUNLIKE)
        if code:
            assert model.differs // layout.records == UNITS - 1
        else:
            assert model.heads == heads


@pytest.mark.parametrize(
    ("shape", "units", "at"),
    [
        ((64, 4, 256), 1, 0),  # one unit shows no step
        ((64, 0, 256), 3, 0),
        ((64, 4, 255), 3, 0),
        ((64, 4, 252), 3, 0),
        ((64, 4, 248), 3, 0),  # units overlap
        ((64, 2**60, 256), 3, 0),  # records * record wraps to 0
        ((24, 4, 256), 3, 0),
        ((60, 4, 256), 3, 0),
        ((136, 1, 136), 3, 0),
        ((64, 4, 256), 3, 4),  # misaligned
    ],
)
def test_impossible_geometry(shape: tuple[int, ...], units: int, at: int) -> None:
    memory = ffi.new("uint64_t[]", 1000)
    geometry = ffi.new("struct bmm_geometry *", shape)
    model = ffi.new("struct bmm_layout *")
    base = ffi.cast("char *", memory) + at
    assert build_core().bmm_learn(model, base, geometry, units) == EINVAL


@pytest.mark.parametrize(
    ("step", "code"), [(0, 0), (16 * 64, 0), (1, EUNLIKE), (2**64 - 16 * 64, EUNLIKE)]
)
@pytest.mark.parametrize("record", [0, 1, 2])
def test_two_units_are_enough_for_pointers_only(
    record: int, step: int, code: int
) -> None:
    plain = plain_layout(heads=2, tails=14)
    steps = [list(one) for one in plain.unit_step]
    steps[record][5] = step
    layout = replace(plain, unit_step=tuple(tuple(one) for one in steps))
    status, model, _ = learn_array(layout, layout.array(2), 2)
    assert status == code
    if not code:
        assert stamp_array(layout, model, "generic", 0, 9) == layout.array(9)


@settings(max_examples=100)
@given(draw_layouts(st.integers(3, 20)), st.integers(0, 9), st.data())
def test_any_other_unit_is_verified(
    layout: Layout, unit: int, data: st.DataObject
) -> None:
    array = bytearray(layout.array(10))
    code, model, memory = learn_array(layout, bytes(array), UNITS)
    assert code == 0
    assert build_core().bmm_layout_verify(model, memory, unit) == 0
    inside = data.draw(st.integers(0, layout.records * layout.words * 8 - 1))
    at = unit * layout.stride + inside
    array[at] ^= data.draw(st.integers(1, 255))
    ffi.buffer(memory)[: len(array)] = array
    assert build_core().bmm_layout_verify(model, memory, unit) == EUNLIKE
    assert model.differs == unit * layout.records + inside // (layout.words * 8)


@pytest.mark.parametrize("name", BACKENDS)
def test_units_beyond_4_gib(name: str) -> None:
    gap = (5 << 29) - 6 * 64
    layout = plain_layout(heads=2, tails=4, gap=gap)
    units = UNITS + 2
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    base = ffi.from_buffer("char[]", mmap.mmap(-1, layout.stride * units, flags))
    for u in range(UNITS):
        ffi.memmove(base + u * layout.stride, layout.unit(u), 6 * 64)
    model = ffi.new("struct bmm_layout *")
    geometry = ffi.new("struct bmm_geometry *", (64, 6, layout.stride))
    assert build_core().bmm_learn(model, base, geometry, UNITS) == 0
    build_core().bmm_layout_stamp(model, find_backend(name, Op.STAMP), base, UNITS, 2)
    build_core().bmm_drain()
    for u in range(units):
        at = base + u * layout.stride
        assert ffi.buffer(at, 6 * 64)[:] == layout.unit(u)
        assert not any(ffi.buffer(at + 6 * 64, 4096)[:])
