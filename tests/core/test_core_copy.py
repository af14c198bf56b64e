# SPDX-License-Identifier: GPL-2.0-only
"""Streaming copy: every short length at every alignment, and some long ones."""

from __future__ import annotations

import random

import pytest
from corelib import Guarded, Op, backend, backend_names, core, ffi, in_child, serving
from hypothesis import given, settings
from hypothesis import strategies as st

BACKENDS = backend_names(Op.COPY)


def copy(name: str, to: Guarded, offset: int, data: bytes, source: Guarded) -> None:
    """Copy from the end of the source, so that reading on is a fault."""
    start = source.place(len(data), end=True)
    source.view[start : start + len(data)] = data
    chosen = backend(name, Op.COPY)
    chosen.copy(to.at(offset), source.at(start), len(data))
    chosen.drain()
    to.check(offset, data)
    to.view[offset : offset + len(data)] = to.before[offset : offset + len(data)]


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("name", BACKENDS)
def test_every_length_at_every_alignment(name: str, end: bool) -> None:  # noqa: FBT001
    def work() -> None:
        to, source = Guarded(1), Guarded(1)
        data = random.Random(1).randbytes(300)  # noqa: S311
        for length in range(301):
            for distance in range(8):
                offset = to.place(length, distance, end=end)
                copy(name, to, offset, data[:length], source)

    in_child(work)


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60000), st.integers(0, 64), st.randoms(use_true_random=False))
def test_long_lengths(
    name: str, length: int, distance: int, chance: random.Random
) -> None:
    data = chance.randbytes(length)

    def work() -> None:
        to, source = Guarded(16), Guarded(16)
        copy(name, to, to.place(length, distance, end=True), data, source)
        copy(name, to, to.place(length, distance, end=False), data, source)

    in_child(work)


@pytest.mark.parametrize("name", BACKENDS)
def test_source_at_every_alignment(name: str) -> None:
    memory, chosen = Guarded(1), backend(name, Op.COPY)
    data = random.Random(2).randbytes(400)  # noqa: S311
    for shift in range(16):
        for length in (4, 8, 16, 32, 48, 64, 80, 96, 200):
            source = data[shift : shift + length]
            pinned = Guarded(1)
            pinned.view[shift : shift + length] = source
            chosen.copy(memory.at(128), pinned.at(shift), length)
            chosen.drain()
            memory.check(128, source)
            memory.fill()
            pinned.close()


def test_no_bytes_need_no_memory() -> None:
    memory = Guarded(1)
    core().bmm_copy_streaming(memory.at(memory.size), memory.at(memory.size), 0)
    core().bmm_drain()
    core().bmm_copy_streaming(ffi.NULL, ffi.NULL, 0)
    memory.check(0, b"")


@pytest.mark.parametrize("name", BACKENDS)
def test_public_entry_uses_the_forced_backend(name: str) -> None:
    lib, memory = core(), Guarded(1)
    assert lib.bmm_backend_select(Op.COPY, name.encode(), len(name)) == 0
    assert serving(Op.COPY) == backend(name, Op.COPY)
    lib.bmm_copy_streaming(memory.at(64), b"abcdefgh" * 9, 72)
    lib.bmm_drain()
    memory.check(64, b"abcdefgh" * 9)
    assert lib.bmm_backend_select(Op.COPY, b"", 0) == 0
