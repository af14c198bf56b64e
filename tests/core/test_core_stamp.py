# SPDX-License-Identifier: GPL-2.0-only
"""Stamping: every backend against the model, up to the guards on both sides."""

import pytest
from corelib import (
    EINVAL,
    Guarded,
    Op,
    backend,
    backend_names,
    core,
    ffi,
    image,
    in_child,
    record_bytes,
    records_bytes,
    selected,
)
from hypothesis import given, settings
from hypothesis import strategies as st

BACKENDS = backend_names(Op.STAMP)
WORD = st.integers(0, 2**64 - 1)
ODD_WORDS = st.sampled_from([0, 1, 2**32, 2**63, 2**64 - 1])


@st.composite
def records(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Return words and their steps; often 64 bytes, often not stepping."""
    n = draw(st.one_of(st.just(8), st.integers(4, 16)))
    words = draw(st.lists(WORD | ODD_WORDS, min_size=n, max_size=n))
    step = st.one_of(st.just(0), WORD | ODD_WORDS)
    steps = draw(st.one_of(st.just([0] * n), st.lists(step, min_size=n, max_size=n)))
    return words, steps


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=150)
@given(records(), st.integers(0, 70), st.integers(0, 20), st.booleans())
def test_writes_what_the_model_says_and_nothing_else(
    name: str,
    record: tuple[list[int], list[int]],
    count: int,
    distance: int,
    end: bool,  # noqa: FBT001
) -> None:
    wanted = records_bytes(*record, count)

    def work() -> None:
        chosen, memory = backend(name, Op.STAMP), Guarded()
        offset = memory.place(len(wanted), distance * 8, end=end)
        chosen.stamp(memory.at(offset), image(*record), count)
        core().bmm_drain()
        memory.check(offset, wanted)

    in_child(work)


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=100)
@given(records(), st.integers(0, 300))
def test_agrees_with_the_generic_reference(
    name: str, record: tuple[list[int], list[int]], count: int
) -> None:
    made, length = image(*record), len(record[0]) * 8 * count
    ours, reference = Guarded(16), Guarded(16)
    for memory, which in ((ours, name), (reference, "generic")):
        offset = memory.place(length, end=True)
        backend(which, Op.STAMP).stamp(memory.at(offset), made, count)
        core().bmm_drain()
    assert ours.view[:] == reference.view[:]
    ours.close()
    reference.close()


@pytest.mark.parametrize("name", BACKENDS)
def test_public_entry_uses_the_forced_backend(name: str) -> None:
    lib, memory = core(), Guarded()
    assert lib.bmm_backend_select(Op.STAMP, name.encode(), len(name)) == 0
    assert selected(Op.STAMP) == backend(name, Op.STAMP)
    words = list(range(1, 9))
    assert lib.bmm_stamp(memory.at(64), image(words, [0] * 8), 3) == 0
    lib.bmm_drain()
    memory.check(64, record_bytes(words) * 3)
    assert lib.bmm_backend_select(Op.STAMP, b"", 0) == 0


def test_the_guard_works() -> None:
    def beyond() -> None:
        memory = Guarded(1)
        one = image([7] * 8, [0] * 8)
        backend("generic", Op.STAMP).stamp(memory.at(memory.size - 64), one, 2)

    with pytest.raises(AssertionError, match="signal 11"):
        in_child(beyond)


def test_the_canaries_work() -> None:
    memory = Guarded(1)
    backend("generic", Op.STAMP).stamp(memory.at(64), image([7] * 8, [0] * 8), 2)
    with pytest.raises(AssertionError, match="byte 64 of 64"):
        memory.check(64, record_bytes([7] * 8))


@pytest.mark.parametrize("size", [0, 8, 24, 31, 33, 36, 63, 65, 129, 136, 2**40])
def test_image_of_a_bad_size_is_refused(size: int) -> None:
    made = ffi.new("struct bmm_image *")
    ffi.buffer(made)[:] = b"\xa5" * ffi.sizeof(made[0])
    assert core().bmm_image_init(made, bytes(136), ffi.NULL, size) == EINVAL
    assert ffi.buffer(made)[:] == b"\xa5" * ffi.sizeof(made[0])


@pytest.mark.parametrize("size", [0, 24, 60, 136, 2**32 - 8])
def test_stamp_refuses_an_image_that_was_not_made(size: int) -> None:
    memory, made = Guarded(), image([1] * 8, [0] * 8)
    made.size = size
    assert core().bmm_stamp(memory.at(0), made, 1) == EINVAL
    memory.check(0, b"")


@pytest.mark.parametrize("offset", [1, 2, 3, 4, 5, 6, 7])
def test_stamp_refuses_a_misaligned_destination(offset: int) -> None:
    memory = Guarded()
    assert core().bmm_stamp(memory.at(offset), image([1] * 8, [0] * 8), 1) == EINVAL
    memory.check(0, b"")


def test_no_record_is_no_operation() -> None:
    memory = Guarded()
    assert core().bmm_stamp(memory.at(0), image([1] * 8, [0] * 8), 0) == 0
    memory.check(0, b"")


@settings(max_examples=100)
@given(records(), st.integers(0, 2**64 - 1))
def test_image_at_moves_on_by_any_number(
    record: tuple[list[int], list[int]], n: int
) -> None:
    words, steps = record
    made = image(words, steps)
    core().bmm_image_at(made, made, n)
    moved = [w + n * s for w, s in zip(words, steps, strict=True)]
    assert ffi.buffer(made.word)[: len(words) * 8] == record_bytes(moved)
