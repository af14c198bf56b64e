# SPDX-License-Identifier: GPL-2.0-only
"""The table of backends: names, defaults, and refusing what is unknown."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from corelib import EINVAL, Op, backend, backend_names, core, ffi, serving

X86 = platform.machine() == "x86_64"
needs_x86 = pytest.mark.skipif(not X86, reason="needs x86-64")
UNKNOWN = ["nt", "mov", "movnt", "movntiq", "MOVNTI", " movnti", "plain\n", "x" * 500]


def cpu_flags() -> set[str]:
    """Return what the kernel says the CPU has."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split())
    return set()


def without(names: list[str]) -> list[str]:
    """Return the names, less those of backends this CPU has not."""
    flags = cpu_flags()
    needs = {"rep-b": "erms", "clzero": "clzero"}
    return [n for n in names if needs.get(n, "fpu") in flags]


def test_generic_is_first_and_has_everything() -> None:
    names = backend_names()
    assert len(set(names)) == len(names)
    for op in Op:
        assert backend_names(op)[0] == "generic"
        assert set(backend_names(op)) <= set(names)


@needs_x86
def test_what_this_cpu_has() -> None:
    wanted = {
        Op.STAMP: ["generic", "plain", "movnti8", "movnti"],
        Op.COPY: ["generic", "rep-q", "rep-b", "movnti"],
        Op.CLEAR: ["generic", "rep-q", "plain", "rep-b"],
        Op.CLEAR_STREAMING: [
            *("generic", "rep-q", "plain", "rep-b", "movnti", "clzero")
        ],
    }
    for op, names in wanted.items():
        assert backend_names(op) == without(names)


@pytest.mark.parametrize("op", Op)
def test_the_last_one_that_can_is_the_default(op: Op) -> None:
    lib = core()
    assert lib.bmm_backend_default(op) == backend(backend_names(op)[-1], op)
    assert serving(op) == lib.bmm_backend_default(op)


@needs_x86
def test_the_default_keeps_a_cleared_extent_cached_where_that_is_asked() -> None:
    lib, cached = core(), 1
    for name in backend_names(Op.CLEAR):
        assert backend(name, Op.CLEAR).flags & cached
    for op in (Op.STAMP, Op.COPY, Op.CLEAR_STREAMING):
        assert not lib.bmm_backend_default(op).flags & cached


@pytest.mark.parametrize("op", Op)
@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_name_is_refused_and_changes_nothing(op: Op, name: str) -> None:
    lib = core()
    assert lib.bmm_backend_select(op, b"generic", 7) == 0
    assert lib.bmm_backend_find(op, name.encode(), len(name)) == ffi.NULL
    assert lib.bmm_backend_select(op, name.encode(), len(name)) == EINVAL
    assert serving(op) == backend("generic", op)
    assert lib.bmm_backend_select(op, b"", 0) == 0


@needs_x86
@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("clzero", Op.STAMP),
        ("clzero", Op.COPY),
        ("clzero", Op.CLEAR),
        ("movnti", Op.CLEAR),
        ("rep-q", Op.STAMP),
    ],
)
def test_a_backend_without_the_operation_is_refused(name: str, op: Op) -> None:
    lib = core()
    assert lib.bmm_backend_find(op, name.encode(), len(name)) == ffi.NULL
    assert lib.bmm_backend_select(op, name.encode(), len(name)) == EINVAL
    assert serving(op) == lib.bmm_backend_default(op)


@pytest.mark.parametrize("op", Op)
def test_each_operation_has_a_choice_of_its_own(op: Op) -> None:
    lib = core()
    assert lib.bmm_backend_select(op, b"generic", 7) == 0
    for other in Op:
        forced = serving(other) != lib.bmm_backend_default(other)
        assert forced == (other == op and len(backend_names(op)) > 1)
    assert lib.bmm_backend_select(op, b"", 0) == 0


def test_no_such_operation() -> None:
    lib = core()
    generic = backend("generic", Op.COPY)
    for op in (len(Op), 99):
        assert not lib.bmm_backend_can(generic, op)
        assert lib.bmm_backend_find(op, b"generic", 7) == ffi.NULL
        assert lib.bmm_backend_select(op, b"generic", 7) == EINVAL


def test_name_need_not_be_terminated() -> None:
    find = core().bmm_backend_find
    assert find(Op.COPY, b"generic\n", 7) == backend("generic", Op.COPY)
    assert find(Op.COPY, b"", 0) == ffi.NULL
