# SPDX-License-Identifier: GPL-2.0-only
"""The table of backends: names, candidates, and refusing what is unknown."""

import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from itertools import product
from pathlib import Path

import pytest
from cffi import FFI
from corelib import (
    EINVAL,
    ROOT,
    STREAMING,
    Op,
    backend_names,
    build_core,
    build_target,
    ffi,
    find_backend,
    list_candidates,
    read_selection,
    selected_backend,
)
from programs import run_program

X86 = platform.machine() == "x86_64"
needs_x86 = pytest.mark.skipif(not X86, reason="needs x86-64")
UNKNOWN = ["nt", "mov", "movnt", "movntiq", "MOVNTI", " movnti", "plain\n", "x" * 500]
UNKNOWN += ["fastes", "fastest ", "fastesT", "fastestt"]
# known, but without the operation
UNABLE = [
    (Op.CLEAR, "movnti"),
    (Op.COPY, "movnti"),
    (Op.STAMP, "movnti-t0"),
    (Op.CLEAR_STREAMING, "plain"),
    (Op.COPY_STREAMING, "rep-b"),
    (Op.STAMP, "plain"),
]
# what a backend needs of /proc/cpuinfo
NEEDS = {
    "movdir64b": "movdir64b",
    "clzero": "clzero",
    "rep-b": "erms",
    "rep-b-t0": "erms",
    "avx512": "avx512f",
    "avx512-t0": "avx512f",
    "avx512-pages": "avx512f",
    "avx512-down": "avx512f",
    "movnti": "fpu",
}


@pytest.fixture(autouse=True)
def again() -> Iterator[None]:
    """Leave nothing forced and nothing measured."""
    yield
    for op in Op:
        assert build_core().bmm_backend_select(op, b"fastest", 7) == 0


@needs_x86
def test_a_backend_is_there_if_the_cpu_has_what_it_needs() -> None:
    text = Path("/proc/cpuinfo").read_text().partition("flags")[2]
    flags = text.partition("\n")[0].split()
    names = backend_names()
    for name, flag in NEEDS.items():
        assert (name in names) == (flag in flags), name
    assert ("rep-q" in names) != ("rep-b" in names)
    wanted = "avx2" in flags and "avx512f" not in flags
    assert ("avx2" in names) == wanted


@pytest.mark.parametrize("op", Op)
def test_what_streams_never_picks_what_does_not(op: Op) -> None:
    assert ("generic" in list_candidates(op)) == (op not in STREAMING)
    assert backend_names(op)[-1] == "generic"
    assert set(list_candidates(op)) | {"generic"} == set(backend_names(op))
    assert len(set(backend_names())) == len(backend_names())


@needs_x86
def test_a_copy_between_different_offsets_has_candidates_that_suit_it() -> None:
    unsuited = {"rep-b", "rep-q", "movnti", "movnti-t0", "movnti-nta"}
    for op in (Op.COPY, Op.COPY_STREAMING):
        level = [name for name in list_candidates(op) if name not in unsuited]
        assert list_candidates(op, skewed=True) == level


@pytest.mark.parametrize(("op", "name"), [*product(Op, UNKNOWN), *UNABLE])
def test_such_a_name_is_refused_and_changes_nothing(op: Op, name: str) -> None:
    lib = build_core()
    assert lib.bmm_backend_select(op, b"generic", 7) == 0
    assert lib.bmm_backend_find(op, name.encode(), len(name)) == ffi.NULL
    assert lib.bmm_backend_select(op, name.encode(), len(name)) == EINVAL
    assert selected_backend(op) == find_backend("generic", op)


@pytest.mark.parametrize("op", Op)
def test_a_name_forces_its_operation_at_every_size_and_no_other(op: Op) -> None:
    for name in backend_names(op):
        assert build_core().bmm_backend_select(op, name.encode(), len(name)) == 0
        assert set(read_selection(op)) == {name}
        above = build_core().bmm_streams_above[op]
        text = ",".join(read_selection(op)).encode()
        assert build_core().bmm_backend_select(op, text, len(text)) == 0
        assert build_core().bmm_streams_above[op] == above
        for other_op in set(Op) - {op}:
            assert selected_backend(other_op) == ffi.NULL


@pytest.mark.parametrize("op", Op)
def test_a_selection_can_be_given_back(op: Op) -> None:
    """One name for each class of calls; a wrong number or name changes nothing."""
    classes = 8 if op in (Op.COPY, Op.COPY_STREAMING) else 4
    initial = read_selection(op)
    assert len(initial) == classes
    names = [*backend_names(op), *backend_names(op), *backend_names(op)][:classes]
    text = ",".join(names).encode()
    assert build_core().bmm_backend_select(op, text, len(text)) == 0
    assert read_selection(op) == names
    for wrong in (text + b",generic", text[:-2], b"generic,generic", b",", b"generic,"):
        assert build_core().bmm_backend_select(op, wrong, len(wrong)) == EINVAL
    assert read_selection(op) == names


def test_no_such_operation() -> None:
    lib, buf = build_core(), ffi.new("char[]", b"#" * 20)
    for op in (len(Op), 99):
        assert not lib.bmm_backend_can(find_backend("generic", Op.COPY), op)
        assert lib.bmm_backend_find(op, b"generic", 7) == ffi.NULL
        assert lib.bmm_backend_select(op, b"generic", 7) == EINVAL
        assert lib.bmm_backend_select(op, b"fastest", 7) == EINVAL
        assert lib.bmm_backend_list(op, 1 << 20, buf, 20) == 0
        assert ffi.string(buf) == b""


def test_name_need_not_be_terminated() -> None:
    find = build_core().bmm_backend_find
    assert find(Op.COPY, b"generic\n", 7) == find_backend("generic", Op.COPY)
    assert find(Op.COPY, b"", 0) == ffi.NULL


@pytest.mark.parametrize("size", [0, 1, 2, 7, 500])
def test_the_list_is_cut_and_terminated(size: int) -> None:
    whole = ffi.new("char[500]")
    length = build_core().bmm_backend_list(Op.COPY, 1 << 20, whole, 500)
    assert ffi.string(whole).endswith(b" generic")
    buf = ffi.new("char[]", b"#" * 600)
    assert build_core().bmm_backend_list(Op.COPY, 1 << 20, buf, size) == length
    if size:
        assert ffi.string(buf) == ffi.string(whole)[: size - 1]
    assert ffi.unpack(buf, 600)[size:] == b"#" * (600 - size)
    assert build_core().bmm_backend_list(Op.COPY, 1 << 20, ffi.NULL, 0) == length


def test_the_version_is_the_projects() -> None:
    version = ffi.string(build_core().bmm_version()).decode()
    assert version == metadata.version("bulkmm")
    major, minor, patch = map(int, version.split("."))
    number = major * 10000 + minor * 100 + patch
    assert build_core().bmm_version_number() == number


# A backend of its own, as contributing.md says: one file, and one line.
NEW_FILE = """
#include "../bmm.h"

static void clear(void *dst, size_t len)
{
	for (char *p = dst; len; len--)
		*(volatile char *)p++ = 0;
}

const struct bmm_backend bmm_bytewise[] = {
	{ .name = "bytewise", .clear = clear },
	{ 0 },
};
"""


@needs_x86
def test_adding_a_backend_takes_one_file_and_one_line(tmp_path: Path) -> None:
    for name in ("core", "lib", "bench", "tests", "scripts", "docs", "module"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("meson.build", "meson_options.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "core/x86/bytewise.c").write_text(NEW_FILE)
    with (tmp_path / "core/x86/backends.def").open("a") as file:
        file.write("BMM_BACKENDS(bytewise)\n")
    build = tmp_path / "build"
    build_target(build, target="libbmmcore.so", source=tmp_path)
    lib = FFI()
    lib.cdef("const void *bmm_backend_find(int, const char *, size_t);")
    library = lib.dlopen(str(build / "libbmmcore.so"))
    assert library.bmm_backend_find(Op.CLEAR, b"bytewise", 8) != lib.NULL
    # The kernel's build reads the same list.
    kbuild = f"src := {ROOT}/module\nCONFIG_X86_64 := y\ninclude $(src)/Kbuild\n"
    kbuild = kbuild.replace(str(ROOT), str(tmp_path)) + "all:\n\t@echo $(bulkmm-y)\n"
    result = run_program(["make", "-sf-", "all"], check=True, input=kbuild)
    assert "../core/x86/bytewise.o" in result.stdout.split()
    assert "user" not in result.stdout
