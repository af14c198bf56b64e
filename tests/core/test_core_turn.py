# SPDX-License-Identifier: GPL-2.0-only
"""Operations in turns: who is asked, in what parts, and that nothing shows."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from corelib import (
    EINVAL,
    MAP_ANONYMOUS,
    MAP_PRIVATE,
    PAGE,
    PROT_RW,
    Guarded,
    Op,
    backend_names,
    core,
    ffi,
    image,
    libc,
    records_bytes,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB, MIB = 1 << 10, 1 << 20
PAGES = 3 * MIB // PAGE


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """Let every test begin with nothing measured and nothing forced."""
    for op in Op:
        assert core().bmm_backend_select(op, b"fastest", 7) == 0
    yield
    for op in Op:
        core().bmm_backend_select(op, ffi.NULL, 0)


def name_of(found: Any) -> str:
    return ffi.string(found.name).decode()


def turns(
    op: Op, whole: int, *, node: int = -1, most: int = 1 << 62
) -> list[tuple[str, int]]:
    """Do an operation in turns, but for the work; return who got how much."""
    lib, turn = core(), ffi.new("struct bmm_turn *")
    taken, left = [], whole
    while left:
        n = lib.bmm_turn_begin(turn, op, whole, left, node)
        assert 0 < n <= left
        taken.append((name_of(turn.backend), min(n, most)))
        lib.bmm_turn_end(turn, min(n, most))
        left -= min(n, most)
    return taken


@pytest.mark.parametrize("length", [8 * KIB, 2 * MIB, 64 * MIB, 5 << 30])
@pytest.mark.parametrize("op", Op)
def test_every_candidate_is_measured_and_no_other(op: Op, length: int) -> None:
    asked: set[str] = set()
    for _ in range(300):
        asked |= {name for name, _ in turns(op, length)}
    assert asked == set(backend_names(op))


@pytest.mark.parametrize("op", Op)
def test_the_forced_one_does_all_at_once_unmeasured(op: Op) -> None:
    learnt(op, 2 * MIB)  # what was measured does not matter
    turn = ffi.new("struct bmm_turn *")
    for name in backend_names(op):
        assert core().bmm_backend_select(op, name.encode(), len(name)) == 0
        for length in (64, 2 * MIB, 5 << 30):
            assert turns(op, length) == [(name, length)]
            core().bmm_turn_begin(turn, op, length, length, -1)
            assert turn.chooser == ffi.NULL


@pytest.mark.parametrize("op", Op)
def test_what_is_short_goes_to_the_default_unmeasured(op: Op) -> None:
    turn = ffi.new("struct bmm_turn *")
    for _ in range(50):
        assert core().bmm_turn_begin(turn, op, PAGE - 1, PAGE - 1, -1) == PAGE - 1
        assert turn.backend == core().bmm_backend_default(op)
        assert turn.chooser == ffi.NULL
        core().bmm_turn_end(turn, PAGE - 1)


def test_each_node_and_each_class_is_measured_on_its_own() -> None:
    turn = ffi.new("struct bmm_turn *")
    places = [(MIB * 2**i, node) for i in (0, 2, 4, 6) for node in range(8)]
    choosers = set()
    for length, node in places:
        core().bmm_turn_begin(turn, Op.COPY, length, length, node)
        choosers.add(int(ffi.cast("uintptr_t", turn.chooser)))
    assert len(choosers) == len(places)


def test_no_small_rest_and_no_huge_first_part() -> None:
    parts = [n for _, n in turns(Op.STAMP, 64 * MIB)]
    assert sum(parts) == 64 * MIB
    assert max(parts[: len(backend_names(Op.STAMP))]) <= 256 * KIB
    assert min(parts) >= 200 * KIB


def test_a_caller_may_do_less() -> None:
    assert sum(n for _, n in turns(Op.CLEAR, 8 * MIB, most=100 * KIB)) == 8 * MIB


def learnt(op: Op, length: int) -> None:
    """Do such operations until the fastest is known, and then some."""
    for _ in range(400):
        turns(op, length, most=length)


@pytest.mark.parametrize("length", [PAGE, 64 * KIB, 2 * MIB])
def test_the_list_shows_who_serves(length: int) -> None:
    learnt(Op.CLEAR_STREAMING, length)
    wanted = name_of(serving(Op.CLEAR_STREAMING, length))
    names = backend_names(Op.CLEAR_STREAMING)
    shown = " ".join(f"[{n}]" if n == wanted else n for n in names)
    buf = ffi.new("char[]", b"#" * 200)
    size = core().bmm_backend_list(Op.CLEAR_STREAMING, length, buf, 200)
    assert (ffi.string(buf).decode(), size) == (shown, len(shown))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 500])
def test_the_list_is_cut_and_terminated(size: int) -> None:
    whole = ffi.new("char[500]")
    length = core().bmm_backend_list(Op.COPY, MIB, whole, 500)
    buf = ffi.new("char[]", b"#" * 600)
    assert core().bmm_backend_list(Op.COPY, MIB, buf, size) == length
    if size:
        assert ffi.string(buf) == ffi.string(whole)[: size - 1]
    assert ffi.unpack(buf, 600)[size:] == b"#" * (600 - size)
    assert core().bmm_backend_list(Op.COPY, MIB, ffi.NULL, 0) == length


def test_no_such_operation() -> None:
    buf = ffi.new("char[]", b"#" * 20)
    for op in (len(Op), 99):
        assert core().bmm_backend_list(op, MIB, buf, 20) == 0
        assert ffi.string(buf) == b""
        assert core().bmm_backend_select(op, b"fastest", 7) == EINVAL


def test_fastest_forgets_what_was_forced() -> None:
    for name in (b"", b"fastest"):
        assert core().bmm_backend_select(Op.COPY, b"generic", 7) == 0
        assert core().bmm_backend_select(Op.COPY, name, len(name)) == 0
        assert serving(Op.COPY) == core().bmm_backend_default(Op.COPY)
    for name in (b"fastes", b"fastest ", b"fastesT"):
        assert core().bmm_backend_select(Op.COPY, name, len(name)) == EINVAL


# What users see of all this: the same bytes, whoever writes which part.
LENGTHS = [4096, 65536, 3 * MIB - 64, 2 * MIB + 8, MIB + 13]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op", [Op.CLEAR, Op.CLEAR_STREAMING])
def test_clear_in_turns(op: Op, length: int) -> None:
    memory = Guarded(PAGES)
    entry = core().bmm_clear if op == Op.CLEAR else core().bmm_clear_streaming
    for turn in range(40):
        offset = memory.place(length, turn % 3, end=bool(turn % 2))
        entry(memory.at(offset), length)
        memory.check(offset, bytes(length))
        memory.fill()
    memory.close()


@pytest.mark.parametrize("length", LENGTHS)
def test_copy_in_turns(length: int) -> None:
    memory, source = Guarded(PAGES), Guarded(PAGES)
    data = random.Random(length).randbytes(source.size)  # noqa: S311
    source.view[:] = data
    for turn in range(40):
        offset = memory.place(length, 8 * (turn % 3), end=bool(turn % 2))
        start = turn % 4
        start = min(start, source.size - length)
        core().bmm_copy_streaming(memory.at(offset), source.at(start), length)
        core().bmm_drain()
        memory.check(offset, data[start : start + length])
        memory.fill()
    memory.close()
    source.close()


@pytest.mark.parametrize("words", [4, 7, 8, 16])
def test_stamp_in_turns_goes_on_stepping(words: int) -> None:
    memory, rng = Guarded(PAGES), random.Random(words)  # noqa: S311
    count = memory.size // (8 * words) - 1
    for turn in range(12):
        first = [rng.getrandbits(64) for _ in range(words)]
        steps = [rng.choice((0, 1, rng.getrandbits(64))) for _ in range(words)]
        offset = memory.place(8 * words * count, 8 * (turn % 2), end=bool(turn % 3))
        assert core().bmm_stamp(memory.at(offset), image(first, steps), count) == 0
        core().bmm_drain()
        memory.check(offset, records_bytes(first, steps, count))
        memory.fill()
    memory.close()


def test_the_clock_goes_forward() -> None:
    ticks = [core().bmm_host_clock() for _ in range(1000)]
    assert all(a <= b for a, b in pairwise(ticks))
    assert ticks[-1] > ticks[0]


def test_the_node_of_memory_is_asked_for_where_it_is_worth_it() -> None:
    memory = Guarded(1)
    memory.fill()
    assert core().bmm_host_node(memory.at(0), MIB) == -1
    assert core().bmm_host_node(memory.at(0), 64 * MIB) >= 0
    nowhere = ffi.cast("void *", 8)
    assert core().bmm_host_node(nowhere, 64 * MIB) == -1
    memory.close()


def test_asking_touches_no_memory() -> None:
    flags = MAP_PRIVATE | MAP_ANONYMOUS
    fresh = libc.mmap(ffi.NULL, PAGE, PROT_RW, flags, -1, 0)
    assert core().bmm_host_node(fresh, 64 * MIB) == -1
    with open("/proc/self/pagemap", "rb") as pagemap:  # noqa: PTH123 - to seek
        pagemap.seek(int(ffi.cast("uintptr_t", fresh)) // PAGE * 8)
        assert not int.from_bytes(pagemap.read(8), "little") >> 63
    libc.munmap(fresh, PAGE)
