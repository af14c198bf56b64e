# SPDX-License-Identifier: GPL-2.0-only
"""`bulkmm populate` with several files: each its own size and node, all or none."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

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

from bulkmm.populate import limits, room, target
from bulkmm.populate.limits import Limit, Need
from bulkmm.populate.request import Request, parse_requests
from bulkmm.shell.errors import BulkmmError, UsageError


def test_each_has_its_own_size_and_node(shm: Path) -> None:
    words = f"{shm}/a,size=72M,node=0", f"{shm}/b", f"{shm}/c,,d,size=8M"
    report = json.loads(run_populate(*words, "--size", "4M", "--json").stdout)
    sizes = {shm / "a": 72 * MIB, shm / "b": 4 * MIB, shm / "c,d": 8 * MIB}
    assert {path: count_resident(path) for path in shm.iterdir()} == sizes
    record = report["populate"]
    assert record["bytes"] == 84 * MIB
    assert record["file"] is None
    assert [file["node"] for file in record["files"]] == [0, None, None]
    assert {Path(file["file"]): file["bytes"] for file in record["files"]} == sizes
    line = run_populate(shm / "a", shm / "b").stdout
    assert line.startswith(
        "2 files: all of it was allocated already; looking at 76 MiB"
    )


def test_one_that_exists_grows_and_keeps_its_content(shm: Path) -> None:
    (shm / "old").write_bytes(b"kept" * 1024)
    run_populate(f"{shm}/new,size=2M", f"{shm}/old,size=4M")
    assert count_resident(shm / "old") == 4 * MIB
    assert (shm / "old").read_bytes().startswith(b"keptkept")
    assert count_resident(shm / "new") == 2 * MIB


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("PLACE/f,nodes=1", "did you mean node?"),
        ("PLACE/f,1", "a comma of a file's name is doubled"),
        ("PLACE/f,size=1M,size=2M", "size is given twice"),
        ("PLACE/f,node=1024,size=1M", "PLACE/f,node=1024,size=1M: node 1024: give 0"),
        ("PLACE/f,node=-1,size=1M", "node -1: give 0 to 1023"),
        ("PLACE/f,size=3", "PLACE/f,size=3: bad size 3"),
        ("PLACE/f", "PLACE/f does not exist: --size says"),
        ("PLACE/old,size=1M", "PLACE/old and PLACE/old are the same file"),
        ("PLACE/link,size=1M", "PLACE/old and PLACE/link are the same file"),
        ("PLACE/none/f,size=1M", "PLACE/none/f: No such file"),
        ("PLACE/f,node=999,size=1M", "PLACE/f: there is no memory node 999"),
    ],
)
def test_what_is_refused_leaves_all_as_they_were(
    shm: Path, word: str, message: str
) -> None:
    (shm / "old").touch()
    (shm / "link").symlink_to("old")
    stderr = run_populate(
        f"{shm}/old,size=1M",
        f"{shm}/n,size=1M",
        word.replace("PLACE", str(shm)),
        code=3 if "/none/" in word else 2,
    ).stderr
    assert message.replace("PLACE", str(shm)) in stderr
    assert {path.name for path in shm.iterdir()} == {"old", "link"}
    assert (shm / "old").stat().st_size == 0


def test_a_new_file_that_is_given_twice_is_refused(shm: Path) -> None:
    (shm / "d").symlink_to(shm)
    words = shm / "f", shm / "d" / "f", "--size", "1M"
    assert "are the same file" in run_populate(*words, code=2).stderr
    assert [path.name for path in shm.iterdir()] == ["d"]


def test_the_room_of_a_file_system_is_shared(tmp_path: Path) -> None:
    with rootlib.mount_memory("tmpfs", "size=16m", tmp_path / "m") as place:
        run_populate(place / "old", "--size", "2M")
        words = f"{place}/a,size=8M", f"{place}/old,size=4M", f"{place}/b,size=8M"
        stderr = run_populate(*words, code=3).stderr
        assert f"{place}/b: 8 MiB more needed, its file system has 4 MiB" in stderr
        assert "to spare beside the files before it" in stderr
        assert [path.name for path in place.iterdir()] == ["old"]
        assert count_used(place) == count_resident(place / "old") == 2 * MIB
        run_populate(*words[:2], f"{place}/b,size=4M")
        assert count_used(place) == 16 * MIB


def test_a_cgroup_limits_all_of_them(tmp_path: Path) -> None:
    with (
        rootlib.mount_memory("tmpfs", "size=1g", tmp_path / "m") as place,
        rootlib.make_cgroup("memory", limit_in_bytes=str(128 * MIB)) as inside,
    ):
        words = place / "a", place / "b", "--size", "80M"
        stderr = run_populate(*words, code=3, inside=inside).stderr
        assert f"{place}/b: 80 MiB more needed" in stderr
        assert "/memory.limit_in_bytes leaves" in stderr
        assert list(place.iterdir()) == []


def test_the_page_that_fails_is_of_a_file(tmp_path: Path) -> None:
    """Of the second one, whose pages a limit refuses that nobody can see before."""
    with (
        rootlib.huge_pages(128),
        rootlib.mount_memory("hugetlbfs", "pagesize=2M", tmp_path / "huge") as place,
        rootlib.huge_cgroup("limit_in_bytes", 32 * MIB, tmp_path / "groups") as inside,
    ):
        words = f"{place}/a,size=8M", f"{place}/b,size=40M"
        stderr = run_populate(*words, code=3, inside=inside).stderr
        assert f"{place}/b: 40 MiB more needed" in stderr
        assert "leaves 24 MiB beside the files before it" in stderr
        hidden = [*inside, "unshare", "-m", "sh", "-c"]
        hidden += [f'umount {tmp_path / "groups"} && exec "$@"', "sh"]
        stderr = run_populate(*words, code=3, inside=hidden).stderr
        assert f"bulkmm: {place}/b: 2097152 bytes at 0x" in stderr
        assert "the cgroup allows no more" in stderr
        assert list(place.iterdir()) == []


def test_a_pool_without_pages_for_the_second(tmp_path: Path) -> None:
    with (
        rootlib.huge_pages(20),
        rootlib.mount_memory("hugetlbfs", "pagesize=2M", tmp_path / "huge") as place,
    ):
        words = f"{place}/a,size=32M", f"{place}/b,size=16M"
        stderr = run_populate(*words, code=3).stderr
        assert f"{place}/b: cannot be mapped" in stderr
        assert "its pool has 4 pages of 2 MiB to spare; more by bulkmm pool" in stderr
        assert list(place.iterdir()) == []
        run_populate(words[0], f"{place}/b,size=8M")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_none_has_a_name_before_all_are_there(
    tmp_path: Path, how: signal.Signals
) -> None:
    with rootlib.mount_memory("tmpfs", "size=4g", tmp_path / "m") as place:
        words = f"{place}/small,size=2M", f"{place}/large,size=3G"
        child = subprocess.Popen(
            [*COMMAND, *words, "--threads", "1"], stderr=subprocess.PIPE, text=True
        )
        while count_used(place) < 64 * MIB:
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


def test_names_are_taken_back_if_one_cannot_be_given(shm: Path) -> None:
    """And what has grown gets its old size."""
    (shm / "old").write_bytes(b"kept")
    names = "a", "old", "b", "c"
    requests = [Request(shm / name, MIB, None) for name in names]
    with (
        pytest.raises(BulkmmError, match=r"/b: File exists"),
        target.open_files(requests),
    ):
        (shm / "b").write_text("another")
    assert {path.name for path in shm.iterdir()} == {"old", "b"}
    assert (shm / "old").read_bytes() == b"kept"
    assert (shm / "b").read_text() == "another"


def interrupt_before(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    """Send the signal of Ctrl-C before each call of a function, once more."""
    usual = getattr(module, name)

    def call(*words: Any, **more: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return usual(*words, **more)

    monkeypatch.setattr(module, name, call)


def test_a_second_signal_does_not_leave_what_has_grown(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = shm / "a", shm / "b"
    for path in paths:
        path.write_bytes(b"kept")

    def interrupted() -> None:
        with target.open_files([Request(path, MIB, 0) for path in paths]):
            interrupt_before(monkeypatch, os, "ftruncate")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.read_bytes() for path in paths] == [b"kept", b"kept"]


def test_a_second_signal_does_not_leave_a_name(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the first, right behind the call that gives a name."""
    link = os.link

    def interrupted(*words: Any, **more: Any) -> None:
        link(*words, **more)
        if (shm / "b").exists():
            interrupt_before(monkeypatch, Path, "unlink")
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", interrupted)
    requests = [Request(shm / name, MIB, None) for name in ("a", "b")]
    with pytest.raises(KeyboardInterrupt), target.open_files(requests):
        pass
    assert not list(shm.iterdir())


def test_without_unnamed_files_all_are_removed(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "_has_unnamed", lambda _place: False)
    requests = [Request(shm / name, MIB, None) for name in ("a", "b")]

    def interrupted() -> None:
        with target.open_files(requests):
            assert {path.name for path in shm.iterdir()} == {"a", "b"}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(shm.iterdir())


def test_two_runs_lock_the_files_in_the_same_order(shm: Path) -> None:
    """Or each would hold what the other waits for."""
    for name in ("a", "b"):
        (shm / name).write_bytes(bytes(MIB))
    words = [str(shm / "a"), str(shm / "b")]
    for _ in range(5):
        runs = [
            subprocess.Popen([*COMMAND, *order], stdout=subprocess.DEVNULL)
            for order in (words, words[::-1])
        ]
        assert [run.wait(60) for run in runs] == [0, 0]
    requests = parse_requests(words, None, None)
    assert target._order_requests(requests) == target._order_requests(requests[::-1])


def test_limits_of_a_node_and_of_reservations_count_their_own(tmp_path: Path) -> None:
    root = fake_two_nodes(tmp_path, {0: (0, 0, 0), 1: (0, 0, 0)}, swap_kib=0)
    earlier_needs = [Need("a", 60 * MIB, 4096, 0), Need("b", 96 * MIB, 2 * MIB)]
    tables = 60 * MIB // limits.TABLES
    need = Need("c", 60 * MIB, 4096, 1)
    tightest = limits.find_tightest(root, need, earlier_needs)
    assert tightest == Limit("node 1", 100 * MIB, 1)
    need = Need("c", 60 * MIB, 4096, 0)
    tightest = limits.find_tightest(root, need, earlier_needs)
    assert tightest == Limit("node 0", 40 * MIB - tables, 0)
    reserved = [Need("a", 8 * MIB, 2 * MIB, None, reserved=True)]
    assert Limit("r", 9, reservations=True).leave_room(reserved).room == 9
    assert Limit("u", 9 * MIB).leave_room(reserved).room == MIB


def test_a_node_outside_of_the_cpuset(tmp_path: Path) -> None:
    fake = fakekernel.Fake(tmp_path)
    for node in (0, 1):
        home = f"/sys/devices/system/node/node{node}"
        fake.write(f"{home}/meminfo", f"Node {node} MemTotal: {102400 * node} kB")
    fake.write("/proc/self/status", "Mems_allowed_list:\t0")
    with pytest.raises(BulkmmError, match=r"^f: memory node 1 is not in .* cpuset"):
        room.check_node("f", 1, tmp_path)
    with pytest.raises(UsageError, match=r"^f: there is no memory node 0: .* has 1$"):
        room.check_node("f", 0, tmp_path)


def test_no_more_files_than_the_library_takes() -> None:
    with pytest.raises(UsageError, match="give 1024 at most"):
        parse_requests(["f"] * 1025, None, None)


def test_many_files(shm: Path) -> None:
    words = [shm / f"f{number}" for number in range(300)]
    run_populate(*words, "--size", "4K")
    assert len(list(shm.iterdir())) == 300


SHARED = """
import mmap, sys
nbytes, huge = int(sys.argv[1]), int(sys.argv[2])
flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | huge
memory = mmap.mmap(-1, nbytes, flags=flags)
memory[:4] = b"kept"
names = "/anon_hugepage", "/dev/zero"
lines = [line for line in open("/proc/self/maps") if any(n in line for n in names)]
print(lines[0].split()[0], flush=True)
sys.stdin.read()
print(memory[:5])
"""
MAP_HUGETLB = 0x40000


@pytest.mark.parametrize("huge", [0, MAP_HUGETLB])
def test_shared_memory_of_a_running_program(huge: int) -> None:
    """As of PostgreSQL: its file has no name and no mount, but is in map_files."""
    rootlib.needs_root()
    with rootlib.huge_pages(8) if huge else nullcontext():
        child = subprocess.Popen(
            [sys.executable, "-c", SHARED, str(16 * MIB), str(huge)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with child:
            assert child.stdout
            place = Path(f"/proc/{child.pid}/map_files", child.stdout.readline()[:-1])
            assert count_resident(place) < 16 * MIB
            run_populate(place)
            assert count_resident(place) == 16 * MIB
            stderr = run_populate(place, "--size", "32M", code=2).stderr
            assert "only its program can make it larger" in stderr
            output, _ = child.communicate()
            assert output == "b'kept\\x00'\n"
