# SPDX-License-Identifier: GPL-2.0-only
"""Clearing: every backend, every short length at every alignment, some long."""

from __future__ import annotations

import pytest
from corelib import Guarded, Op, backend, backend_names, core, ffi, in_child, serving
from hypothesis import given, settings
from hypothesis import strategies as st

CLEARS = (Op.CLEAR, Op.CLEAR_STREAMING)
BACKENDS = [(name, op) for op in CLEARS for name in backend_names(op)]


def clear(name: str, op: Op, memory: Guarded, offset: int, length: int) -> None:
    """Clear, check every byte of the memory, and put the canaries back."""
    chosen = backend(name, op)
    work = chosen.clear if op == Op.CLEAR else chosen.clear_streaming
    work(memory.at(offset), length)
    core().bmm_drain()
    memory.check(offset, bytes(length))
    memory.view[offset : offset + length] = memory.before[offset : offset + length]


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize(("name", "op"), BACKENDS)
def test_every_length_at_every_alignment(name: str, op: Op, end: bool) -> None:  # noqa: FBT001
    def work() -> None:
        memory = Guarded(1)
        for length in [*range(200), 255, 256, 257, 320, 1000]:
            for distance in range(65):
                offset = memory.place(length, distance, end=end)
                clear(name, op, memory, offset, length)

    in_child(work)


@pytest.mark.parametrize(("name", "op"), BACKENDS)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60000), st.integers(0, 100))
def test_long_lengths(name: str, op: Op, length: int, distance: int) -> None:
    def work() -> None:
        memory = Guarded(16)
        for end in (True, False):
            offset = memory.place(length, distance, end=end)
            clear(name, op, memory, offset, length)

    in_child(work)


@pytest.mark.parametrize(("name", "op"), BACKENDS)
def test_public_entry_uses_the_forced_backend(name: str, op: Op) -> None:
    lib, memory = core(), Guarded(1)
    entry = lib.bmm_clear if op == Op.CLEAR else lib.bmm_clear_streaming
    assert lib.bmm_backend_select(op, name.encode(), len(name)) == 0
    assert serving(op) == backend(name, op)
    entry(memory.at(33), 1000)
    memory.check(33, bytes(1000))
    assert lib.bmm_backend_select(op, b"", 0) == 0
    memory.fill()
    entry(memory.at(64), 640)
    memory.check(64, bytes(640))


@pytest.mark.parametrize("op", CLEARS)
def test_no_bytes_need_no_memory(op: Op) -> None:
    lib, memory = core(), Guarded(1)
    entry = lib.bmm_clear if op == Op.CLEAR else lib.bmm_clear_streaming
    entry(ffi.NULL, 0)
    entry(memory.at(memory.size), 0)
    memory.check(0, b"")
