# SPDX-License-Identifier: GPL-2.0-only
"""Sizes that a limit does not allow are refused before anything is done."""

import mmap
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import fakekernel
import pytest
import rootlib
from populatelib import (
    COMMAND,
    MIB,
    count_resident,
    count_used,
    fake_two_nodes,
    run_populate,
)
from programs import run_program

from bulkmm.control.system_files import SystemFiles
from bulkmm.populate import limits, target


def test_a_file_system_without_room_is_refused_first(tmp_path: Path) -> None:
    with rootlib.mount_memory("tmpfs", "size=16m", tmp_path / "m") as place:
        file = place / "memory"
        stderr = run_populate(file, "--size", "24M", code=3).stderr
        assert "24 MiB more needed, its file system has 16 MiB to spare" in stderr
        assert not file.exists()
        run_populate(file, "--size", "8M")
        run_populate(file, "--size", "24M", code=3)
        assert file.stat().st_size == count_resident(file) == 8 * MIB


def test_a_mount_of_another_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(
        b"29 1 0:26 / /mnt/\xe9\r\xc2\xa0 rw shared:1 - ext4 none rw\n"
        b"30 1 0:27 / /mnt/\xc2\xa0 rw,noexec - tmpfs none rw,size=1k\n"
    )
    monkeypatch.setattr(target, "MOUNTS", mounts)
    assert target.find_mount(os.makedev(0, 27)) == ("tmpfs", "rw,noexec,rw,size=1k")
    assert target.find_mount(os.makedev(0, 28)) == ("an unknown file system", "")


def find_tightest(
    root: SystemFiles, page: int, node: int | None = None
) -> limits.Limit:
    return limits.find_tightest(root, limits.Need("file", 0, page, node))


LITTLE = {"limit_in_bytes": str(96 * MIB)}


def test_a_limit_of_memory_is_refused_first(tmp_path: Path) -> None:
    with (
        rootlib.mount_memory("tmpfs", "size=1g", tmp_path / "m") as place,
        rootlib.make_cgroup("memory", **LITTLE) as inside,
    ):
        file = place / "memory"
        for words in ([file], ["--memfd"]):
            more = ["--", "true"] * (words == ["--memfd"])
            stderr = run_populate(
                *words, "--size", "256M", *more, code=3, inside=inside
            ).stderr
            assert "256 MiB more needed, /sys/fs/cgroup/memory/bulkmm-test" in stderr
            assert "/memory.limit_in_bytes leaves" in stderr
        assert not file.exists()
        run_populate(file, "--size", "16M", inside=inside)
        run_populate(file, "--size", "256M", inside=inside, code=3)
        assert file.stat().st_size == count_resident(file) == 16 * MIB


@pytest.mark.parametrize("before", [0, 16 * MIB])
def test_what_is_killed_leaves_no_memory_taken(tmp_path: Path, before: int) -> None:
    """In a cgroup that cannot be seen: the next run has as much as the first."""
    with (
        rootlib.mount_memory("tmpfs", "size=1g", tmp_path / "m") as place,
        rootlib.make_cgroup("memory", **LITTLE) as inside,
    ):
        file = place / "memory"
        if before:
            run_populate(file, "--size", f"{before >> 20}M")
        killed = [*inside, *rootlib.HIDDEN, *COMMAND, file, "--size", "256M"]
        for _ in range(2):
            assert run_program(killed, timeout=60).returncode == -signal.SIGKILL
            assert [path.stat().st_size for path in place.iterdir()] == (
                [before] if before else []
            )
            assert count_used(place) == before


def test_another_program_is_not_killed_in_its_place(tmp_path: Path) -> None:
    """Although it is larger: pages of a file that grows are no program's."""
    script = (
        f"import time; m = bytearray({48 * MIB}); print(1, flush=True); time.sleep(60)"
    )
    with (
        rootlib.mount_memory("tmpfs", "size=1g", tmp_path / "m") as place,
        rootlib.make_cgroup("memory", **LITTLE) as inside,
    ):
        neighbour = subprocess.Popen(
            [*inside, sys.executable, "-c", script], stdout=subprocess.PIPE
        )
        with neighbour:
            assert neighbour.stdout
            assert neighbour.stdout.readline() == b"1\n"
            command = [
                *inside,
                *rootlib.HIDDEN,
                *COMMAND,
                place / "f",
                "--size",
                "256M",
            ]
            assert run_program(command, timeout=60).returncode == -signal.SIGKILL
            assert neighbour.poll() is None
            neighbour.kill()


@pytest.mark.parametrize("name", ["limit_in_bytes", "rsvd.limit_in_bytes"])
def test_a_limit_of_huge_pages_is_named(tmp_path: Path, name: str) -> None:
    with (
        rootlib.huge_pages(128),
        rootlib.mount_memory("hugetlbfs", "pagesize=2M", tmp_path / "huge") as place,
        rootlib.huge_cgroup(name, 32 * MIB, tmp_path / "groups") as inside,
    ):
        words = (place / "memory", "--size", "64M")
        stderr = run_populate(*words, code=3, inside=inside).stderr
        assert f"/hugetlb.2MB.{name} leaves 32 MiB" in stderr
        hidden = [*inside, "unshare", "-m", "sh", "-c"]
        hidden += [f'umount {tmp_path / "groups"} && exec "$@"', "sh"]
        stderr = run_populate(*words, code=3, inside=hidden).stderr
        if name == "limit_in_bytes":  # is met when pages are made
            assert "the cgroup allows no more" in stderr
            assert "33554432 bytes are done" in stderr
        else:
            assert re.search(r"its pool has \d+ pages of 2 MiB to spare\n", stderr)
        assert not (place / "memory").exists()


@pytest.mark.parametrize("limited", [False, True])
def test_what_is_reserved_for_the_file_is_its_own(
    tmp_path: Path, *, limited: bool
) -> None:
    """By a mapping of another, or a run that was killed."""
    with ExitStack() as stack:
        stack.enter_context(rootlib.huge_pages(64))
        options = "pagesize=2M" if limited else "pagesize=2M,size=64M"
        place = stack.enter_context(
            rootlib.mount_memory("hugetlbfs", options, tmp_path / "huge")
        )
        rsvd = ("rsvd.limit_in_bytes", 64 * MIB, tmp_path / "groups")
        inside = stack.enter_context(rootlib.huge_cgroup(*rsvd)) if limited else []
        file = place / "memory"
        run_populate(file, "--size", "16M", inside=inside)
        killed = (
            "import os, sys; from pathlib import Path; "
            "from bulkmm.populate import request, target; "
            "wanted = request.Request(Path(sys.argv[1]), 64 << 20, None); "
            "files = target.open_files([wanted]); "
            "mapping = files.__enter__()[0].map_shared(); os.kill(os.getpid(), 9)"
        )
        argv = [*inside, sys.executable, "-c", killed, file]
        assert run_program(argv).returncode == -signal.SIGKILL
        assert (file.stat().st_size, count_resident(file)) == (64 * MIB, 16 * MIB)
        run_populate(file, "--size", "64M", inside=inside)
        assert count_resident(file) == 64 * MIB
        file.unlink()


def test_limits_of_version_2(tmp_path: Path) -> None:
    """Of a container's own view, and of a cgroup two levels below the mount."""
    fake = fakekernel.Fake(tmp_path)
    fake.write("/proc/meminfo", "MemTotal: 9000000 kB\nSwapFree: 2048 kB")
    fake.write("/proc/self/cgroup", "0::/a/b/c")
    mount = "31 23 0:28 /a /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw"
    fake.write("/proc/self/mountinfo", mount)
    home = "/sys/fs/my groups"
    fake.write(f"{home}/b/c/memory.max", "max")
    fake.write(f"{home}/b/memory.max", str(60 * MIB))
    fake.write(f"{home}/b/memory.current", str(50 * MIB))
    fake.write(
        f"{home}/b/memory.stat",
        f"shmem {MIB}\ninactive_file {2 * MIB}\nslab_reclaimable {MIB}",
    )
    fake.write(f"{home}/b/memory.swap.max", str(MIB))
    fake.write(f"{home}/b/memory.swap.current", "0")
    fake.write(f"{home}/hugetlb.1GB.rsvd.max", str(3 << 30))
    fake.write(f"{home}/hugetlb.1GB.rsvd.current", str(1 << 30))
    root = SystemFiles(tmp_path)
    memory = limits.Limit(f"{home}/b/memory.max", 14 * MIB)
    assert find_tightest(root, 4096) == memory
    fake.write(f"{home}/b/memory.swap.max", "0")
    fake.write(f"{home}/b/memory.swap.current", str(9 * MIB))
    memory = limits.Limit(f"{home}/b/memory.max", 13 * MIB)
    assert find_tightest(root, 4096) == memory
    huge = limits.Limit(f"{home}/hugetlb.1GB.rsvd.max", 2 << 30, reservations=True)
    assert find_tightest(root, 1 << 30) == huge
    machine = limits.Limit("the machine", 9002048 << 10)
    for top in ("/a", "/"):
        fake.write("/proc/self/mountinfo", mount.replace(" /a ", f" {top} "))
        fake.write("/proc/self/cgroup", "0::/../elsewhere")
        assert find_tightest(root, 4096) == machine
    fake.remove("/proc/self/cgroup")
    assert find_tightest(root, 4096) == machine


@pytest.mark.parametrize("page", [4096, 1 << 14, 1 << 16])
def test_what_programs_hold_is_not_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Whatever the size of a base page."""
    monkeypatch.setattr(mmap, "PAGESIZE", page)
    fake = fakekernel.Fake(tmp_path)
    lines = ["MemTotal: 102400 kB", "SwapFree: 2048 kB", "Active(anon): 40960 kB"]
    fake.write("/proc/meminfo", "\n".join([*lines, "Active(file): 20480 kB"]))
    machine = limits.Limit("the machine", 62 * MIB)
    assert find_tightest(SystemFiles(tmp_path), page) == machine


def test_what_pools_hold_is_left_to_neither_machine_nor_node(tmp_path: Path) -> None:
    root = fake_two_nodes(tmp_path, {0: (10, 10, 0), 1: (30, 0, 0)}, swap_kib=2048)
    assert find_tightest(root, 4096) == limits.Limit("the machine", 122 * MIB)
    assert find_tightest(root, 4096, 0) == limits.Limit("node 0", 82 * MIB, 0)
    assert find_tightest(root, 4096, 1) == limits.Limit("node 1", 42 * MIB, 1)


def test_a_limit_of_file_sizes_names_the_file(shm: Path) -> None:
    inside = ["sh", "-c", 'ulimit -f 1024; exec "$@"', "sh"]
    stderr = run_populate(shm / "f", "--size", "8M", code=3, inside=inside).stderr
    assert stderr == f"bulkmm: {shm}/f: cannot be made 8 MiB long: File too large\n"
    run_populate(shm / "f", "--size", "512K")
    run_populate(shm / "f", "--size", "8M", code=3, inside=inside)
    assert count_resident(shm / "f") == (shm / "f").stat().st_size == 512 << 10
