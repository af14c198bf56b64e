# SPDX-License-Identifier: GPL-2.0-only
"""The operations, by every backend: every byte, every length, and what is refused."""

from typing import Any

import pytest
from corelib import (
    EINVAL,
    backend_names,
    build_core,
    ffi,
    record_bytes,
    run_test_program,
)
from hypothesis import given, settings
from hypothesis import strategies as st

WORD = st.integers(0, 2**64 - 1)


def make_image(words: list[int], steps: list[int]) -> Any:
    """Return an image of these words, which step so from record to record."""
    new_image = ffi.new("struct bmm_image *")
    first = record_bytes(words)
    then = record_bytes([w + s for w, s in zip(words, steps, strict=True)])
    assert not build_core().bmm_image_init(new_image, first, then, len(first))
    return new_image


def test_every_extent_is_written_and_nothing_else() -> None:
    *lines, total = run_test_program("guarded")
    wanted = [*backend_names(), "moves", "fills"]
    assert [name for name in wanted if f"{name}: 0 wrong" not in lines] == []
    assert int(total.split()[0]) > 500000


def test_no_backend_cuts_a_length() -> None:
    assert run_test_program("large") == [f"{name}: 0 wrong" for name in backend_names()]


def test_no_bytes_need_no_memory() -> None:
    lib, null = build_core(), ffi.NULL
    assert lib.bmm_stamp(null, make_image([1] * 8, [0] * 8), 0) == 0
    for copy in (lib.bmm_copy, lib.bmm_copy_streaming):
        copy(null, null, 0)
    for move in (lib.bmm_move, lib.bmm_move_streaming):
        move(null, null, 0)
    for clear in (lib.bmm_clear, lib.bmm_clear_streaming):
        clear(null, 0)


@pytest.mark.parametrize("size", [0, 8, 24, 31, 33, 36, 63, 65, 129, 136, 2**40])
def test_image_of_a_bad_size_is_refused(size: int) -> None:
    new_image = ffi.new("struct bmm_image *")
    ffi.buffer(new_image)[:] = b"\xa5" * ffi.sizeof(new_image[0])
    assert build_core().bmm_image_init(new_image, bytes(136), ffi.NULL, size) == EINVAL
    assert ffi.buffer(new_image)[:] == b"\xa5" * ffi.sizeof(new_image[0])


@pytest.mark.parametrize(
    ("size", "offset"),
    [(size, 0) for size in (0, 24, 60, 136, 2**32 - 8)]
    + [(64, offset) for offset in range(1, 8)],
)
def test_stamp_refuses_a_bad_image_and_a_misaligned_place(
    size: int, offset: int
) -> None:
    memory, new_image = ffi.new("char[256]"), make_image([1] * 8, [0] * 8)
    new_image.size = size
    assert build_core().bmm_stamp(memory + offset, new_image, 1) == EINVAL
    assert not any(ffi.unpack(memory, 256))


@settings(max_examples=100)
@given(st.lists(st.tuples(WORD, WORD), min_size=4, max_size=16), WORD)
def test_image_at_moves_on_by_any_number(record: list[tuple[int, int]], n: int) -> None:
    words, steps = (list(part) for part in zip(*record, strict=True))
    new_image = make_image(words, steps)
    build_core().bmm_image_at(new_image, new_image, n)
    moved = record_bytes([w + n * s for w, s in record])
    assert ffi.buffer(new_image.word)[: len(moved)] == moved
