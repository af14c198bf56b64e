# SPDX-License-Identifier: GPL-2.0-only
"""bmm_populate() by its cases, as it is and under sanitizers, and its errors."""

import json
from pathlib import Path
from typing import Any

import pytest
import rootlib
from corelib import NATIVE, SANITIZE, THREADS, build_target
from programs import run_program

MIB = 1 << 20
PAGE = 4096
FEW = 2  # faults of a program's own
SKIP = 77
# No thread can be had, so the leak checker has none either.
QUIET = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1"}
ENOMEM, EFAULT = 12, 14
POOL, BACKING, MEMORY, LIMIT = 7, 8, 10, 18  # of enum bmm_cause


def list_cases() -> list[str]:
    build_target(NATIVE, target="bmm-cases")
    result = run_program([NATIVE / "bmm-cases"], check=True)
    return result.stdout.split()


def populate_outside(
    kind: str, size: int, before: list[str] | None = None, after: str = ""
) -> dict[str, Any]:
    """Populate what the test has prepared, after this; return the report."""
    command = [*(before or []), str(NATIVE / "bmm-cases"), kind, str(size)]
    command += [after] * bool(after)
    result = run_program(command, timeout=60)
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.parametrize("build", [NATIVE, SANITIZE, THREADS], ids=lambda at: at.name)
@pytest.mark.parametrize("case", list_cases())
def test_a_case(build: Path, case: str) -> None:
    build_target(build, target="bmm-cases")
    result = run_program(["setarch", "-R", build / "bmm-cases", case], env=QUIET)
    if result.returncode == SKIP:
        pytest.skip(f"this machine cannot: {result.stdout.strip() or case}")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == ""
    assert "stack" not in result.stderr  # of threads: too small for a sanitizer


@pytest.mark.parametrize("case", ["kinds", "ready_pieces", "ready_in_order"])
@pytest.mark.parametrize("kib", [32, 120, 140, 150, 156, 160, 1024])
def test_a_c_library_that_takes_more_of_each_stack(kib: int, case: str) -> None:
    """Where too little is left, no thread works; the caller does."""
    tunable = f"glibc.rtld.optional_static_tls={kib << 10}"
    environment = {"GLIBC_TUNABLES": tunable}
    result = run_program([NATIVE / "bmm-cases", case], env=environment)
    threads_wanted = ["all_of(p, len, &options).threads > 1"]
    wrong = [line.partition(": line ")[2] for line in result.stdout.splitlines()]
    assert result.returncode in {0, 1}, (result.returncode, result.stderr)
    assert [line.partition(": ")[2] for line in wrong] in ([], threads_wanted)


@pytest.mark.parametrize("kernel", ["", "before-6.11"])
@pytest.mark.parametrize("kind", ["hugetlb", "memfd", "file"])
def test_a_pool_that_is_too_small_says_how_far_it_came(
    tmp_path: Path, kind: str, kernel: str
) -> None:
    with (
        rootlib.huge_pages(40),
        rootlib.mount_memory("hugetlbfs", "pagesize=2M", tmp_path / "m") as place,
    ):
        report = populate_outside(
            f"{place}/file" if kind == "file" else kind, 128 * MIB, after=kernel
        )
    assert (report["error"], report["cause"]) == (EFAULT, POOL)
    assert report["done"] == 80 * MIB
    assert report["failed_len"] == 2 * MIB
    assert report["reached"] == report["failed"] <= 80 * MIB


@pytest.mark.parametrize("after", ["forked", "written"])
def test_huge_pages_that_are_copied_are_work_for_several(after: str) -> None:
    """After a fork they are resident, and yet each of them is copied."""
    with rootlib.huge_pages(2 * 48):
        report = populate_outside("hugetlb", 96 * MIB, after=after)
    assert (report["error"], report["threads"] > 1) == (0, after == "forked")
    assert report["faults"] <= FEW


@pytest.mark.parametrize("kind", ["hugetlb", "reserved"])
def test_a_limit_of_the_cgroup_is_no_empty_pool(tmp_path: Path, kind: str) -> None:
    """Also where what is left of the pool is reserved, for this mapping."""
    with (
        rootlib.huge_pages(64),
        rootlib.huge_cgroup("limit_in_bytes", 32 * MIB, tmp_path / "m") as inside,
    ):
        report = populate_outside(kind, 128 * MIB, inside)
    assert (report["error"], report["cause"]) == (EFAULT, LIMIT)
    assert (report["done"], report["failed_len"]) == (32 * MIB, 2 * MIB)


def test_huge_pages_that_the_program_supplies() -> None:
    """They have the error of a limit, so its cause names both."""
    with rootlib.huge_pages(4):
        report = populate_outside("reserved", 8 * MIB, after="supplied")
    assert (report["error"], report["cause"], report["done"]) == (EFAULT, LIMIT, 0)
    assert "or userfaultfd forbids it" in report["text"]


def test_a_huge_page_among_many_mappings() -> None:
    """What is touched one by one is touched by the smallest of the pages."""
    with rootlib.huge_pages(1):
        report = populate_outside("mixed", 96 * MIB, after="before-5.14")
    assert (report["error"], report["done"]) == (0, 96 * MIB)
    assert report["faults"] <= FEW


@pytest.mark.parametrize("huge", ["", ",huge=always"])
def test_a_file_system_that_is_full(tmp_path: Path, huge: str) -> None:
    with rootlib.mount_memory("tmpfs", f"size=80m{huge}", tmp_path / "m") as place:
        report = populate_outside(f"{place}/file", 128 * MIB)
    assert (report["error"], report["cause"]) == (EFAULT, BACKING)
    assert 80 * MIB - 2 * MIB <= report["done"] <= 80 * MIB
    assert report["reached"] == report["failed"]


def test_a_disk_that_cannot_be_read(tmp_path: Path) -> None:
    """It has the error of a file that is too short, so its cause names both."""
    with rootlib.broken_disk(tmp_path / "image", 128 * MIB, 80 * MIB) as disk:
        report = populate_outside(str(disk), 128 * MIB)
    assert (report["error"], report["cause"]) == (EFAULT, BACKING)
    assert report["done"] == 80 * MIB
    assert "has failed" in report["text"]


def test_a_file_system_of_memory_is_not_asked_again(tmp_path: Path) -> None:
    with rootlib.mount_memory("tmpfs", "size=80m", tmp_path / "m") as place:
        report = populate_outside(f"{place}/file", 64 * MIB, after="read")
    assert report["error"] == 0
    assert report["asked"] <= 64 * MIB // (2 * MIB) * PAGE
    assert report["faults"] <= FEW


def test_a_file_system_without_a_disk_of_its_own(tmp_path: Path) -> None:
    """It still wants to know of the first write to a page that was read."""
    for name in ("lower", "upper", "work"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper"
    options += f",workdir={tmp_path}/work"
    with rootlib.mount_memory("overlay", options, tmp_path / "m") as place:
        report = populate_outside(f"{place}/file", 8 * MIB, after="read")
    assert (report["error"], report["done"]) == (0, 8 * MIB)
    assert report["faults"] <= FEW


def test_a_cgroup_that_is_full() -> None:
    """Where the kernel may not kill for it; else it does, whoever populates."""
    with rootlib.full_cgroup(80 * MIB) as inside:
        report = populate_outside("private", 128 * MIB, inside)
    assert (report["error"], report["cause"]) == (ENOMEM, MEMORY)
    assert 60 * MIB < report["done"] < 80 * MIB
    assert report["reached"] == report["failed"]
    assert report["failed_len"] == PAGE


def test_a_quota_of_cpus_bounds_the_threads() -> None:
    with rootlib.make_cgroup(
        "cpu", cfs_period_us="100000", cfs_quota_us="90000"
    ) as inside:
        report = populate_outside("private", 512 * MIB, inside)
    assert (report["error"], report["threads"]) == (0, 1)


def test_affinity_bounds_the_threads() -> None:
    assert (
        populate_outside("private", 512 * MIB, ["taskset", "-c", "0"])["threads"] == 1
    )
