# SPDX-License-Identifier: GPL-2.0-only
"""Copying: every backend, every short length at every alignment, some long."""

from __future__ import annotations

import random
from typing import Any

import pytest
from corelib import Guarded, Op, backend, backend_names, core, ffi, in_child, serving
from hypothesis import given, settings
from hypothesis import strategies as st

COPIES = (Op.COPY, Op.COPY_STREAMING)
BACKENDS = [(name, op) for op in COPIES for name in backend_names(op)]


def copier(name: str, op: Op) -> Any:
    chosen = backend(name, op)
    return chosen.copy if op == Op.COPY else chosen.copy_streaming


def copy(how: Any, to: Guarded, offset: int, data: bytes, source: Guarded) -> None:
    """Copy from the end of the source, so that reading on is a fault."""
    start = source.place(len(data), end=True)
    source.view[start : start + len(data)] = data
    how(to.at(offset), source.at(start), len(data))
    core().bmm_drain()
    to.check(offset, data)
    to.view[offset : offset + len(data)] = to.before[offset : offset + len(data)]


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize(("name", "op"), BACKENDS)
def test_every_length_at_every_alignment(name: str, op: Op, end: bool) -> None:  # noqa: FBT001
    def work() -> None:
        to, source = Guarded(1), Guarded(1)
        data = random.Random(1).randbytes(300)  # noqa: S311
        for length in range(301):
            for distance in range(8):
                offset = to.place(length, distance, end=end)
                copy(copier(name, op), to, offset, data[:length], source)

    in_child(work)


@pytest.mark.parametrize(("name", "op"), BACKENDS)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60000), st.integers(0, 64), st.randoms(use_true_random=False))
def test_long_lengths(
    name: str, op: Op, length: int, distance: int, chance: random.Random
) -> None:
    data = chance.randbytes(length)

    def work() -> None:
        to, source = Guarded(16), Guarded(16)
        for end in (True, False):
            offset = to.place(length, distance, end=end)
            copy(copier(name, op), to, offset, data, source)

    in_child(work)


@pytest.mark.parametrize(("name", "op"), BACKENDS)
def test_source_at_every_alignment(name: str, op: Op) -> None:
    memory, how = Guarded(1), copier(name, op)
    data = random.Random(2).randbytes(400)  # noqa: S311
    for shift in range(16):
        for length in (4, 8, 16, 32, 48, 64, 80, 96, 200):
            source = data[shift : shift + length]
            pinned = Guarded(1)
            pinned.view[shift : shift + length] = source
            how(memory.at(128), pinned.at(shift), length)
            core().bmm_drain()
            memory.check(128, source)
            memory.fill()
            pinned.close()


@pytest.mark.parametrize("op", COPIES)
def test_no_bytes_need_no_memory(op: Op) -> None:
    memory, lib = Guarded(1), core()
    entry = lib.bmm_copy if op == Op.COPY else lib.bmm_copy_streaming
    entry(memory.at(memory.size), memory.at(memory.size), 0)
    entry(ffi.NULL, ffi.NULL, 0)
    memory.check(0, b"")


@pytest.mark.parametrize(("name", "op"), BACKENDS)
def test_public_entry_uses_the_forced_backend(name: str, op: Op) -> None:
    lib, memory = core(), Guarded(1)
    entry = lib.bmm_copy if op == Op.COPY else lib.bmm_copy_streaming
    assert lib.bmm_backend_select(op, name.encode(), len(name)) == 0
    assert serving(op) == backend(name, op)
    entry(memory.at(64), b"abcdefgh" * 9, 72)
    lib.bmm_drain()
    memory.check(64, b"abcdefgh" * 9)
    assert lib.bmm_backend_select(op, b"", 0) == 0
