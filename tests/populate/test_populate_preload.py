# SPDX-License-Identifier: GPL-2.0-only
"""libbulkmm-populate.so: programs under it do as before, in parallel."""

import os
import re
from ctypes.util import find_library
from pathlib import Path

import pytest
from corelib import NATIVE, ROOT
from programs import run_program

PRELOAD = NATIVE / "lib" / "libbulkmm-populate.so"
PROGRAM = NATIVE / "bmm-preloaded"
MALLOCS = NATIVE / "bmm-mallocs"
LOCKED = NATIVE / "libbmm-locked-malloc.so"
# from scripts/setup tests; their numbers differ between releases
PACKAGED = ("jemalloc", "mimalloc", "tcmalloc_minimal")
HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PARTS = ("preloaded", "memory")  # sources of the program
NAMES = {"madvise", "mlock", "mlock2", "mmap", "mmap64"}


def run_preloaded(*words: object, preload: bool = False, **more: str) -> str:
    environment = {**os.environ, **more}
    if preload:
        environment["LD_PRELOAD"] = str(PRELOAD)
    result = run_program([*words], env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "preload" not in result.stderr
    return result.stdout


def test_it_exports_what_the_page_says_and_nothing_else() -> None:
    output = run_preloaded("nm", "-D", "--defined-only", PRELOAD)
    assert {line.split()[2] for line in output.splitlines()} == NAMES
    page = (ROOT / "docs" / "preload.md").read_text()
    rows = re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)
    assert {*rows} == NAMES - {"mmap64"}


def test_every_call_ends_as_without_it() -> None:
    before = run_preloaded(PROGRAM, "results")
    assert before.count("\n") > 50
    assert run_preloaded(PROGRAM, "results", preload=True) == before


def test_what_is_in_the_page_cache_is_mapped_by_the_first_call() -> None:
    """Which takes faults of its own, and is not taken for populated."""
    assert run_preloaded(PROGRAM, "hot", preload=True) == run_preloaded(PROGRAM, "hot")
    assert run_preloaded(PROGRAM, "hot") == "populated: 100 %\n"


@pytest.mark.parametrize("kernel", ["served", "before-6.11"])
def test_large_ranges_are_served_by_it(kernel: str) -> None:
    assert ": 1" not in run_preloaded(PROGRAM, kernel)
    lines = run_preloaded(PROGRAM, kernel, preload=True).splitlines()
    assert lines[:-1] == ["mmap: 1", "madvise: 1", "madvise read: 1"]
    # served for huge pages only
    assert lines[-1] == f"mlock: {int('[never]' not in HUGE.read_text())}"


def test_what_the_kernel_locks_as_quickly_is_left_to_it(tmp_path: Path) -> None:
    """Resident, of small pages, a file: nothing is locked or made before its call."""
    (file := tmp_path / "file").write_bytes(bytes(96 << 20))
    output = run_preloaded(PROGRAM, "left", file, preload=True)
    assert output == run_preloaded(PROGRAM, "left", file)
    kinds = ("huge", "small", "memfd", "file")
    assert output.startswith(
        "".join(f"{kind}: 0 VmLck:\t       0 kB\n" for kind in kinds)
    )
    assert "fresh: 0 made: 0\n" in output


def test_a_program_of_gccs_address_sanitizer_starts_as_the_page_says(
    tmp_path: Path,
) -> None:
    """And is left alone, as its allocator is not the C library's."""
    program = tmp_path / "sanitized"
    sources = [ROOT / "tests" / "populate" / f"{name}.c" for name in PARTS]
    run_preloaded(
        "gcc", "-w", "-D_GNU_SOURCE", "-fsanitize=address", *sources, "-o", program
    )
    runtime = run_preloaded("gcc", "-print-file-name=libasan.so").strip()
    quiet = "detect_leaks=0"
    for first, options in (
        (f"{Path(runtime).resolve()} ", quiet),
        ("", f"{quiet}:verify_asan_link_order=0"),
    ):
        more = {"LD_PRELOAD": f"{first}{PRELOAD}", "ASAN_OPTIONS": options}
        output = run_preloaded("setarch", "-R", program, "served", **more)
        assert "mmap: 0" in output
        assert ": 1" not in output
    alone = {**os.environ, "LD_PRELOAD": str(PRELOAD), "ASAN_OPTIONS": quiet}
    result = run_program([program, "served"], env=alone)
    assert result.returncode == 1
    assert "ASan runtime does not come first" in result.stderr


def test_it_can_be_switched_off_from_outside() -> None:
    off = {"BULKMM_POPULATE_THREADS": "0"}
    assert ": 1" not in run_preloaded(PROGRAM, "served", preload=True, **off)
    one_thread = {"BULKMM_POPULATE_THREADS": "1"}
    assert "mmap: 1" in run_preloaded(PROGRAM, "served", preload=True, **one_thread)


@pytest.mark.parametrize("value", ["abc", "-1", "2x", "99999999999"])
def test_a_number_that_is_none_is_refused_in_one_line(value: str) -> None:
    """And does not switch it off without a word."""
    environment = {"LD_PRELOAD": str(PRELOAD), "BULKMM_POPULATE_THREADS": value}
    result = run_program(["true"], check=True, env=environment)
    (line,) = result.stderr.splitlines()
    assert f"BULKMM_POPULATE_THREADS={value} is not a number of threads" in line


def test_a_thread_is_served_with_little_stack_and_if_cancelled() -> None:
    assert run_preloaded(PROGRAM, "thread", preload=True) == "thread: 0\n"


@pytest.mark.parametrize("handler", ["", "-once", "-deep"])
def test_a_signal_handler_that_interrupts_malloc_may_map(handler: str) -> None:
    """Starting a thread there would wait for malloc()'s lock for ever."""
    assert run_preloaded(PROGRAM, f"interrupted{handler}", preload=True) == "done\n"


def test_errno_stays_where_the_kernel_is_too_old() -> None:
    assert (
        run_preloaded(PROGRAM, "old", preload=True)
        == run_preloaded(PROGRAM, "old")
        == "1 77\n"
    )


def list_allocators() -> list[str]:
    paths = {name: find_library(name) for name in PACKAGED}
    assert all(paths.values()), f"run scripts/setup tests: {paths}"
    return [str(LOCKED), *map(str, paths.values())]


@pytest.mark.parametrize("number", range(1 + len(PACKAGED)))
def test_an_allocator_that_populates_under_its_lock(number: int) -> None:
    """It must not be called by the preload, which would wait for that lock."""
    allocator = list_allocators()[number]
    for order in (allocator, f"{PRELOAD}:{allocator}", f"{allocator}:{PRELOAD}"):
        # without the second, tcmalloc takes its memory from sbrk()
        more = {"LD_PRELOAD": order, "TCMALLOC_SKIP_SBRK": "1"}
        assert run_preloaded(MALLOCS, **more) == "0123"
    assert ": 1" not in run_preloaded(
        PROGRAM, "served", LD_PRELOAD=f"{PRELOAD}:{allocator}"
    )
