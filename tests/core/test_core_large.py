# SPDX-License-Identifier: GPL-2.0-only
"""Lengths beyond 4 GiB: real ones, over the same 2 MiB of memory again and again."""

from __future__ import annotations

import mmap
import os
import random
from array import array
from typing import TYPE_CHECKING

import pytest
from corelib import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_SHARED,
    PROT_NONE,
    PROT_RW,
    Op,
    backend,
    backend_names,
    core,
    ffi,
    image,
    libc,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SPAN = 2 << 20
MORE = 64 << 10  # all that a length cut to 32 bits would leave
LENGTH = (4 << 30) + MORE
CLEARS = [(n, op) for op in (Op.CLEAR, Op.CLEAR_STREAMING) for n in backend_names(op)]


class Alias:
    """Memory that repeats every 2 MiB for 4 GiB and a little, then a guard."""

    def __init__(self) -> None:
        """Map one file many times."""
        self.file = os.memfd_create("alias")
        os.truncate(self.file, SPAN)
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        self.room = LENGTH + SPAN
        self.base = libc.mmap(ffi.NULL, self.room, PROT_NONE, flags, -1, 0)
        for at in range(0, LENGTH, SPAN):
            here = ffi.cast("char *", self.base) + at
            length = min(SPAN, LENGTH - at)
            flags = MAP_SHARED | MAP_FIXED
            assert libc.mmap(here, length, PROT_RW, flags, self.file, 0) == here
        self.memory = mmap.mmap(self.file, SPAN)

    def close(self) -> None:
        """Unmap everything."""
        self.memory.close()
        libc.munmap(self.base, self.room)
        os.close(self.file)


@pytest.fixture(scope="module")
def alias() -> Iterator[Alias]:
    made = Alias()
    yield made
    made.close()


@pytest.mark.parametrize(("name", "op"), CLEARS)
def test_clear(alias: Alias, name: str, op: Op) -> None:
    lib = core()
    alias.memory[:] = b"\xa5" * SPAN
    assert lib.bmm_backend_select(op, name.encode(), len(name)) == 0
    (lib.bmm_clear if op == Op.CLEAR else lib.bmm_clear_streaming)(alias.base, LENGTH)
    assert lib.bmm_backend_select(op, b"", 0) == 0
    assert alias.memory[:] == bytes(SPAN)


@pytest.mark.parametrize("name", backend_names(Op.COPY))
def test_copy(alias: Alias, name: str) -> None:
    source, data = Alias(), random.Random(3).randbytes(SPAN)  # noqa: S311
    source.memory[:] = data
    alias.memory[:] = bytes(SPAN)
    chosen = backend(name, Op.COPY)
    chosen.copy(alias.base, source.base, LENGTH)
    chosen.drain()
    source.close()
    assert alias.memory[:] == data


@pytest.mark.parametrize("name", backend_names(Op.STAMP))
def test_stamp(alias: Alias, name: str) -> None:
    """The last records are the ones that stay: their steps count from the first."""
    chosen, count = backend(name, Op.STAMP), LENGTH // 64
    chosen.stamp(alias.base, image([7] * 8, [1] + [0] * 7), count)
    chosen.drain()
    per_span, last = SPAN // 64, MORE // 64
    stays = [count - last + i for i in range(last)]
    stays += [count - per_span + i for i in range(per_span - last)]
    wanted = array("Q", [7]) * (per_span * 8)
    wanted[::8] = array("Q", [7 + n for n in stays])
    assert alias.memory[:] == wanted.tobytes()
