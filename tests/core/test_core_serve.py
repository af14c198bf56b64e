# SPDX-License-Identifier: GPL-2.0-only
"""Public operations while backends are picked, and after: the same bytes."""

from __future__ import annotations

import random
import subprocess
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from corelib import (
    EINVAL,
    MAP_ANONYMOUS,
    MAP_PRIVATE,
    NATIVE,
    PAGE,
    PROT_RW,
    Guarded,
    Op,
    backend_names,
    candidates,
    core,
    ffi,
    image,
    libc,
    meson,
    name_of,
    records_bytes,
    serving,
)
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB, MIB = 1 << 10, 1 << 20
LENGTHS = [4096, 65536, 300_001, 9 * MIB + 8, 9 * MIB + 13]
PAGES = 10 * MIB // PAGE
SAMPLE = 2 * MIB


@pytest.fixture(autouse=True)
def again() -> Iterator[None]:
    """Begin and end with nothing measured and nothing forced."""
    for op in Op:
        assert core().bmm_backend_select(op, b"fastest", 7) == 0
    yield
    for op in Op:
        assert core().bmm_backend_select(op, ffi.NULL, 0) == 0


def listed(op: Op, length: int) -> str:
    buf = ffi.new("char[500]")
    core().bmm_backend_list(op, length, buf, 500)
    return ffi.string(buf).decode()


@pytest.mark.parametrize("cpu", ["this", "old"])
def test_what_is_decided_is_frozen(cpu: str) -> None:
    """No clock, no system call, no shared write; the check can fail."""
    meson(NATIVE, target="bmm-frozen")
    program = str(NATIVE / "bmm-frozen")
    done = subprocess.run([program, cpu], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert subprocess.run([program, "break"], check=False).returncode < 0


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op", [Op.CLEAR, Op.CLEAR_STREAMING])
def test_clears_while_measured(op: Op, length: int) -> None:
    memory = Guarded(PAGES)
    entry = core().bmm_clear if op == Op.CLEAR else core().bmm_clear_streaming
    for turn in range(9 * len(candidates(op))):
        offset = memory.place(length, turn % 3, end=bool(turn % 2))
        entry(memory.at(offset), length)
        if turn % 5 == 0 or length < MIB:
            memory.check(offset, bytes(length))
        memory.view[offset : offset + length] = memory.before[offset : offset + length]
    memory.check(0, b"")
    memory.close()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op", [Op.COPY, Op.COPY_STREAMING])
def test_copies_while_measured(op: Op, length: int) -> None:
    memory, source = Guarded(PAGES), Guarded(PAGES)
    entry = core().bmm_copy if op == Op.COPY else core().bmm_copy_streaming
    data = random.Random(length).randbytes(source.size)  # noqa: S311
    source.view[:] = data
    for turn in range(9 * len(candidates(op))):
        offset = memory.place(length, 8 * (turn % 3), end=bool(turn % 2))
        start = turn % 4
        entry(memory.at(offset), source.at(start), length)
        core().bmm_drain()
        if turn % 5 == 0 or length < MIB:
            memory.check(offset, data[start : start + length])
        memory.view[offset : offset + length] = memory.before[offset : offset + length]
    memory.check(0, b"")
    memory.close()
    source.close()


@pytest.mark.parametrize("words", [4, 7, 8, 16])
def test_stamps_go_on_stepping_from_part_to_part(words: int) -> None:
    memory, rng = Guarded(PAGES), random.Random(words)  # noqa: S311
    count = memory.size // (8 * words) - 1
    for turn in range(4):
        first = [rng.getrandbits(64) for _ in range(words)]
        steps = [rng.choice((0, 1, rng.getrandbits(64))) for _ in range(words)]
        offset = memory.place(8 * words * count, 8 * (turn % 2), end=bool(turn % 3))
        assert core().bmm_stamp(memory.at(offset), image(first, steps), count) == 0
        core().bmm_drain()
        memory.check(offset, records_bytes(first, steps, count))
        memory.fill()
    memory.close()


@pytest.mark.parametrize("length", [4096, 65536, MIB])
@pytest.mark.parametrize("op", [Op.CLEAR, Op.CLEAR_STREAMING])
def test_the_list_shows_what_was_measured_and_what_serves(op: Op, length: int) -> None:
    entry = core().bmm_clear if op == Op.CLEAR else core().bmm_clear_streaming
    assert listed(op, length).count("=") == 0
    memory = Guarded(PAGES)
    for _ in range(9 * len(candidates(op)) * SAMPLE // length):
        entry(memory.at(0), length)
    memory.close()
    words = listed(op, length).split()
    names = [word.strip("[]").partition("=")[0] for word in words]
    assert names == backend_names(op)
    measured = {n for n, w in zip(names, words, strict=True) if "=" in w}
    assert measured == set(candidates(op))
    assert [n for n, w in zip(names, words, strict=True) if w[0] == "["] == [
        name_of(serving(op, length))
    ]
    core().bmm_backend_select(op, b"fastest", 7)
    assert listed(op, length).count("=") == 0


def test_what_fits_no_cache_is_left_to_what_knows_the_length() -> None:
    """Of an operation longer than the last-level cache no plain loop is measured."""
    length = core().bmm_host_llc() + PAGE
    if length == PAGE:
        pytest.skip("the size of the last-level cache is not known")
    memory = Guarded(length // PAGE)
    for _ in range(9 * len(candidates(Op.CLEAR))):
        core().bmm_clear(memory.at(0), length)
    memory.close()
    words = listed(Op.CLEAR, length).split()
    measured = {word.strip("[]").partition("=")[0] for word in words if "=" in word}
    assert measured == {
        "generic",
        *(n for n in candidates(Op.CLEAR) if n[:4] == "rep-"),
    }


@pytest.mark.parametrize("name", [b"fastes", b"fastest ", b"fastesT", b"fastestt"])
def test_only_fastest_measures_again(name: bytes) -> None:
    assert core().bmm_backend_select(Op.COPY, b"generic", 7) == 0
    assert core().bmm_backend_select(Op.COPY, name, len(name)) == EINVAL
    assert name_of(serving(Op.COPY)) == "generic"


def test_a_forced_one_is_not_measured() -> None:
    core().bmm_backend_select(Op.CLEAR, b"generic", 7)
    memory = Guarded(PAGES)
    for _ in range(100):
        core().bmm_clear(memory.at(0), MIB)
    assert "=" not in listed(Op.CLEAR, MIB)
    memory.close()


def test_page_faults_are_not_measured_but_for_some() -> None:
    """Memory that each call faults in: one sample of eight, and an end."""
    turn, pick = ffi.new("struct bmm_turn *"), ffi.new("struct bmm_pick *")
    lib, calls = core(), 0
    while not pick.decided and calls < 8 * 9 * len(candidates(Op.CLEAR)):
        fresh = libc.mmap(ffi.NULL, PAGE, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        lib.bmm_turn_begin(turn, pick, Op.CLEAR)
        ffi.memmove(fresh, b"x", 1)
        lib.bmm_turn_end(turn, SAMPLE)
        libc.munmap(fresh, PAGE)
        calls += 1
        assert pick.disturbed == calls
    assert pick.decided


FILLS = [*range(1, 17), 20, 24, 32, 40, 60, 64, 128]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FILLS), st.integers(0, 3000), st.integers(0, 130), st.booleans())
def test_fill_repeats_a_pattern(size: int, length: int, at: int, end: bool) -> None:  # noqa: FBT001
    memory = Guarded(1)
    pattern = bytes((7 * i + size) % 256 for i in range(size))
    offset = memory.place(length, at, end=end)
    assert core().bmm_fill(memory.at(offset), pattern, size, length) == 0
    core().bmm_drain()
    memory.check(offset, (pattern * (length // size + 1))[:length])
    memory.close()


@pytest.mark.parametrize("size", [0, 17, 19, 33, 66, 127, 129, 2**63])
def test_fill_refuses_a_pattern_that_no_record_holds(size: int) -> None:
    memory = Guarded(1)
    assert core().bmm_fill(memory.at(0), bytes(200), size, 4096) == EINVAL
    memory.check(0, b"")


def test_the_clock_goes_forward() -> None:
    ticks = [core().bmm_host_clock() for _ in range(1000)]
    assert all(a <= b for a, b in pairwise(ticks))
    assert ticks[-1] > ticks[0]
