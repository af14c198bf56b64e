# SPDX-License-Identifier: GPL-2.0-only
"""Copies, clears, moves and fills: every byte of memory between two guards."""

import subprocess
from typing import Any

import pytest
from corelib import (
    NATIVE,
    Guarded,
    Op,
    backend,
    backend_names,
    core,
    ffi,
    meson,
    selected,
)

DATA = b"abcdefgh" * 125
COPIES = {
    Op.COPY: ("bmm_copy", "bmm_move"),
    Op.COPY_STREAMING: ("bmm_copy_streaming", "bmm_move_streaming"),
}
CLEARS = {Op.CLEAR: ("bmm_clear",), Op.CLEAR_STREAMING: ("bmm_clear_streaming",)}
ENTRIES = [(op, name) for op, names in (COPIES | CLEARS).items() for name in names]


def call(op: Op, name: str, dst: Any, src: Any, length: int) -> bytes:
    """Call a public function, and return what it has to write."""
    if op in CLEARS:
        getattr(core(), name)(dst, length)
        return bytes(length)
    getattr(core(), name)(dst, src, length)
    core().bmm_drain()
    return DATA[:length]


def test_every_extent_is_written_and_nothing_else() -> None:
    meson(NATIVE, target="bmm-guarded")
    program = [str(NATIVE / "bmm-guarded")]
    done = subprocess.run(program, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    *found, total = done.stdout.splitlines()
    wanted = [*backend_names(), "moves", "fills"]
    assert [name for name in wanted if f"{name}: 0 wrong" not in found] == []
    assert int(total.split()[0]) > 500000


@pytest.mark.parametrize(("op", "entry"), ENTRIES)
def test_public_entry_uses_the_forced_backend(op: Op, entry: str) -> None:
    lib, memory = core(), Guarded(1)
    for name in backend_names(op):
        assert lib.bmm_backend_select(op, name.encode(), len(name)) == 0
        assert selected(op) == backend(name, op)
        memory.check(33, call(op, entry, memory.at(33), DATA, 1000))
        memory.fill()
    assert lib.bmm_backend_select(op, b"", 0) == 0


@pytest.mark.parametrize(("op", "entry"), ENTRIES)
def test_no_bytes_need_no_memory(op: Op, entry: str) -> None:
    memory = Guarded(1)
    call(op, entry, memory.at(memory.size), memory.at(memory.size), 0)
    call(op, entry, ffi.NULL, ffi.NULL, 0)
    memory.check(0, b"")
