# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: files and memfds filled, refused, and left as they were."""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import fakekernel
import pytest
import rootlib
from programs import on_terminal, run_program

from bulkmm.control.system_files import SystemFiles
from bulkmm.populate import limits, target
from bulkmm.shell.ending import LIBC
from bulkmm.shell.errors import BulkmmError

COMMAND = [sys.executable, "-m", "bulkmm.cli", "populate"]
MIB = 1 << 20


def run_populate(
    *words: object, code: int = 0, inside: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    result = run_program([*inside, *COMMAND, *words], timeout=60)
    assert result.returncode == code, result.stdout + result.stderr
    if code:
        assert result.stderr.count("\n") == 1, result.stderr
    return result


def count_resident(path: Path) -> int:
    """Return the bytes that a file has in memory."""
    return path.stat().st_blocks * 512


@pytest.fixture
def shm() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        yield Path(place)


def test_a_file_is_made_grows_and_keeps_what_it_has(shm: Path) -> None:
    file = shm / "memory"
    run_populate(file, "--size", "8M")
    assert count_resident(file) == 8 * MIB
    with file.open("r+b") as stream:
        stream.write(b"kept")
    report = json.loads(run_populate(file, "--size", "80M", "--json").stdout)
    assert report["populate"]["bytes"] == count_resident(file) == 80 * MIB
    assert report["populate"]["threads"] >= 1
    assert file.read_bytes().startswith(b"kept\0")
    for size in (2 * MIB, 80 * MIB):
        os.truncate(file, size)
    assert count_resident(file) == 2 * MIB
    run_populate(file, "--threads", 1, "--node", 0)
    assert count_resident(file) == 80 * MIB


def test_a_memfd_is_its_commands(shm: Path) -> None:
    script = 'stat -Lc "%s %b" {} > ' + str(shm / "said")
    run_populate("--memfd", "--size", "64M", "--", "sh", "-c", script)
    assert (shm / "said").read_text().split() == [str(64 * MIB), str(64 * MIB // 512)]


def test_the_command_of_a_memfd_does_not_ignore_what_python_does() -> None:
    words = "grep", "SigIgn", "/proc/self/status"
    output = run_populate("--memfd", "--size", "1M", "--", *words).stdout
    ignored = int(output.split("\n")[1].removeprefix("SigIgn:"), 16)
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored >> (signum - 1) & 1


def test_hugetlbfs_and_a_memfd_of_huge_pages(tmp_path: Path) -> None:
    with (
        rootlib.huge_pages(40),
        rootlib.mount_memory("hugetlbfs", "pagesize=2M", tmp_path / "huge") as place,
    ):
        file = place / "memory"
        run_populate(file, "--size", "64M")
        assert count_resident(file) == 64 * MIB
        free = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        assert int(free.read_text()) == 8
        run_populate("--memfd", "--huge", "2M", "--size", "16M", "--", "true")
        stderr = run_populate(file, "--size", "128M", code=3).stderr
        assert "its pool has 8 pages of 2 MiB to spare; more by bulkmm pool" in stderr
        assert file.stat().st_size == 64 * MIB
        stderr = run_populate(place / "other", "--size", "128M", code=3).stderr
        assert "its pool has 8 pages" in stderr
        assert not (place / "other").exists()
        assert (
            "whole pages of 2097152"
            in run_populate(file, "--size", "65537K", code=2).stderr
        )


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
    assert target._find_mount(os.makedev(0, 27)) == ("tmpfs", "rw,noexec,rw,size=1k")
    assert target._find_mount(os.makedev(0, 28)) == ("an unknown file system", "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "one FILE"),
        (("a", "b"), 2, "one FILE"),
        (("PLACE/none",), 2, "--size says how large"),
        (("PLACE/none", "--size", "0M"), 2, "whole pages"),
        (("PLACE/none", "--size", "3x"), 2, "bad size 3x"),
        (("PLACE/none", "--size", "65T"), 2, "above the 64T"),
        (("PLACE/none/none", "--size", "1M"), 3, "No such file"),
        (("PLACE", "--size", "1M"), 3, "directory"),
        (("/dev/null",), 2, "not a DAX device"),
        (("PLACE/none", "--size", "1M", "--threads", "0"), 2, "give 1 to"),
        (("PLACE/none", "--size", "1M", "--node", "-1"), 2, "give 0 to 1023"),
        (("PLACE/none", "--size", "1M", "--node", "999"), 3, "memory node is not"),
        (("PLACE/none", "--size", "1M", "--huge", "2M"), 2, "applies to --memfd"),
        (("--memfd", "--size", "1M"), 2, "needs a command"),
        (("--memfd", "--", "true"), 2, "how much"),
        (("--memfd", "--size", "4M", "--huge", "3M", "--", "true"), 2, "a page size"),
        (("--memfd", "--size", "1M", "--huge", "2M", "--", "true"), 2, "whole pages"),
        (("--memfd", "--size", "1M", "--", "PLACE/none"), 3, "No such file"),
    ],
)
def test_what_is_refused(
    shm: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    result = run_populate(
        *(word.replace("PLACE", str(shm)) for word in words), code=code
    )
    assert message in result.stderr
    assert list(shm.iterdir()) == []


def test_a_disk_is_refused(tmp_path: Path) -> None:
    if tmp_path.stat().st_dev == Path("/dev/shm").stat().st_dev:  # noqa: S108
        pytest.skip("the test's directory is in memory")
    stderr = run_populate(tmp_path / "file", "--size", "1M", code=2).stderr
    assert "would not stay in memory" in stderr
    assert not (tmp_path / "file").exists()


def test_a_library_that_is_not_there(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULKMM_LIBRARY", str(shm / "none.so"))
    assert (
        "BULKMM_LIBRARY names none"
        in run_populate(shm / "f", "--size", "1M", code=3).stderr
    )
    monkeypatch.setenv("BULKMM_LIBRARY", "libc.so.6")
    assert "bmm_populate" in run_populate(shm / "f", "--size", "1M", code=3).stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_file_has_no_name_before_all_of_it_is_there(
    tmp_path: Path, how: signal.Signals
) -> None:
    with rootlib.mount_memory("tmpfs", "size=4g", tmp_path / "m") as place:
        child = subprocess.Popen(
            [*COMMAND, str(place / "memory"), "--size", "3G", "--threads", "1"],
            stderr=subprocess.PIPE,
            text=True,
        )
        while not count_used(place):
            assert child.poll() is None
            time.sleep(0.005)
        assert not list(place.iterdir())
        child.send_signal(how)
        _, stderr = child.communicate(timeout=30)
        if how == signal.SIGKILL:
            assert child.returncode == -how
        else:
            assert (child.returncode, stderr) == (130, "bulkmm: interrupted\n")
        assert not list(place.iterdir())
        assert count_used(place) == 0


def count_used(place: Path) -> int:
    """Return the bytes that a file system has given out."""
    room = os.statvfs(place)
    return (room.f_blocks - room.f_bfree) * room.f_frsize


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
            "from bulkmm.populate import target; "
            "file = target.open_file(Path(sys.argv[1]), 64 << 20, None); "
            "mapping = file.__enter__().map_shared(); os.kill(os.getpid(), 9)"
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
    assert limits.find_tightest(root, 4096) == memory
    fake.write(f"{home}/b/memory.swap.max", "0")
    fake.write(f"{home}/b/memory.swap.current", str(9 * MIB))
    memory = limits.Limit(f"{home}/b/memory.max", 13 * MIB)
    assert limits.find_tightest(root, 4096) == memory
    huge = limits.Limit(f"{home}/hugetlb.1GB.rsvd.max", 2 << 30)
    assert limits.find_tightest(root, 1 << 30) == huge
    machine = limits.Limit("the machine", 9002048 << 10)
    for top in ("/a", "/"):
        fake.write("/proc/self/mountinfo", mount.replace(" /a ", f" {top} "))
        fake.write("/proc/self/cgroup", "0::/../elsewhere")
        assert limits.find_tightest(root, 4096) == machine
    fake.remove("/proc/self/cgroup")
    assert limits.find_tightest(root, 4096) == machine


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
    assert limits.find_tightest(SystemFiles(tmp_path), page) == machine


def test_what_pools_hold_is_left_to_neither_machine_nor_node(tmp_path: Path) -> None:
    fake = fakekernel.Fake(tmp_path)
    fakekernel.make_pool(fake, {0: (10, 10, 0), 1: (30, 0, 0)})
    fake.write("/proc/meminfo", "MemTotal: 204800 kB\nSwapFree: 2048 kB")
    for node in (0, 1):
        home = f"/sys/devices/system/node/node{node}"
        fake.write(f"{home}/meminfo", f"Node {node} MemTotal: 102400 kB")
    root = SystemFiles(tmp_path)
    assert limits.find_tightest(root, 4096) == limits.Limit("the machine", 122 * MIB)
    assert limits.find_tightest(root, 4096, 0) == limits.Limit("node 0", 82 * MIB)
    assert limits.find_tightest(root, 4096, 1) == limits.Limit("node 1", 42 * MIB)


@pytest.mark.parametrize("size", [None, 3 * MIB])
def test_what_others_append_meanwhile_stays(shm: Path, size: int | None) -> None:
    path = shm / "f"
    path.write_bytes(bytes(MIB))

    def interrupted() -> None:
        with target.open_file(path, size, None), path.open("ab") as stream:
            stream.write(b"more")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes()[-4:] == b"more"


@pytest.mark.parametrize("node", [None, 0])
def test_what_others_append_before_it_grows_stays(
    shm: Path, monkeypatch: pytest.MonkeyPatch, node: int | None
) -> None:
    """And beyond the new size: to allocate what is missing takes seconds."""
    path, need_limit = shm / "f", target._need_limit
    path.write_bytes(bytes(MIB))

    def appended(*words: Any, **more: bool) -> None:
        need_limit(*words, **more)
        os.truncate(path, 4 * MIB)
        with path.open("ab") as stream:
            stream.write(b"more")

    monkeypatch.setattr(target, "_need_limit", appended)
    with target.open_file(path, 3 * MIB, node) as file:
        assert file.size == 3 * MIB
    assert path.read_bytes()[-4:] == b"more"


def test_what_others_append_before_it_grows_stays_if_it_is_interrupted(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, need_limit = shm / "f", target._need_limit
    path.write_bytes(bytes(MIB))

    def appended(*words: Any, **more: bool) -> None:
        need_limit(*words, **more)
        with path.open("ab") as stream:
            stream.write(b"more")

    def interrupted() -> None:
        with target.open_file(path, 3 * MIB, None):
            raise KeyboardInterrupt

    monkeypatch.setattr(target, "_need_limit", appended)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes()[MIB:] == b"more"


def test_what_another_run_has_filled_is_not_cut_off(shm: Path) -> None:
    """One waits for the other, and for no other lock of the file."""
    path, runs = shm / "f", list[subprocess.Popen[str]]()
    path.write_bytes(bytes(MIB))

    def interrupted() -> None:
        with target.open_file(path, 3 * MIB, None):
            runs.append(subprocess.Popen([*COMMAND, path, "--size", "3M"], text=True))
            with suppress(subprocess.TimeoutExpired):
                runs[0].wait(3)
            raise KeyboardInterrupt

    with path.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert runs[0].wait(60) == 0
    assert count_resident(path) == path.stat().st_size == 3 * MIB


@pytest.mark.parametrize("size", [None, 64 << 40])
def test_what_others_allocate_stays_where_nothing_has_grown(
    shm: Path, size: int | None
) -> None:
    """To set the size that a file has frees it, and waits for who allocates it."""
    path, length, keep_size = shm / "f", 4 * MIB, 1
    path.write_bytes(bytes(MIB))

    def interrupted() -> None:
        with target.open_file(path, size, None):
            raise KeyboardInterrupt

    with path.open("r+b") as stream:
        numbers = ctypes.c_int64(0), ctypes.c_int64(length)
        assert not LIBC.fallocate(stream.fileno(), keep_size, *numbers)
    with pytest.raises((BulkmmError, KeyboardInterrupt)):
        interrupted()
    assert count_resident(path) == length


def test_a_limit_of_file_sizes_names_the_file(shm: Path) -> None:
    inside = ["sh", "-c", 'ulimit -f 1024; exec "$@"', "sh"]
    stderr = run_populate(shm / "f", "--size", "8M", code=3, inside=inside).stderr
    assert stderr == f"bulkmm: {shm}/f: cannot be made 8 MiB long: File too large\n"
    run_populate(shm / "f", "--size", "512K")
    run_populate(shm / "f", "--size", "8M", code=3, inside=inside)
    assert count_resident(shm / "f") == (shm / "f").stat().st_size == 512 << 10


def test_a_file_of_another_in_a_directory_for_all(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which the kernel refuses to root, too, if it is told to (as Debian tells it)."""
    path, opened = shm / "f", os.open
    path.touch()

    def protected(place: Path, how: int, *mode: int) -> int:
        if how & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", str(place))
        return opened(place, how, *mode)

    monkeypatch.setattr(target.os, "open", protected)
    with (
        pytest.raises(BulkmmError, match="denied: another user's, in"),
        target.open_file(path, MIB, None),
    ):
        pass


def test_a_name_that_another_took_meanwhile_is_kept(shm: Path) -> None:
    with (
        pytest.raises(BulkmmError, match="File exists"),
        target.open_file(shm / "f", MIB, None),
    ):
        (shm / "f").write_text("another")
    assert (shm / "f").read_text() == "another"


def test_a_terminal_has_a_bar(shm: Path) -> None:
    """And only a terminal: above, standard error is empty or a line."""
    words = [*COMMAND, shm / "memory", "--size", "600M", "--threads", "1"]
    code, output = on_terminal(words, stdout=subprocess.DEVNULL)
    assert code == 0
    assert b"MiB" in output
    assert b"/s" in output
