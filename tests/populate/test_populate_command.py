# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: files and memfds filled, refused, and left as they were."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import rootlib
from programs import completed, on_terminal

from bulkmm.populate import target

COMMAND = [sys.executable, "-m", "bulkmm.cli", "populate"]
MIB = 1 << 20


def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = completed([*COMMAND, *words], timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    if code:
        assert done.stderr.count("\n") == 1, done.stderr
    return done


def held(path: Path) -> int:
    """Return the bytes that a file has in memory."""
    return path.stat().st_blocks * 512


@pytest.fixture
def shm() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        yield Path(place)


def test_a_file_is_made_grows_and_keeps_what_it_has(shm: Path) -> None:
    file = shm / "memory"
    run(file, "--size", "8M")
    assert held(file) == 8 * MIB
    with file.open("r+b") as stream:
        stream.write(b"kept")
    said = json.loads(run(file, "--size", "80M", "--json").stdout)
    assert said["populate"]["bytes"] == held(file) == 80 * MIB
    assert said["populate"]["threads"] >= 1
    assert file.read_bytes().startswith(b"kept\0")
    for size in (2 * MIB, 80 * MIB):
        os.truncate(file, size)
    assert held(file) == 2 * MIB
    run(file, "--threads", 1, "--node", 0)
    assert held(file) == 80 * MIB


def test_a_memfd_is_its_commands(shm: Path) -> None:
    script = 'stat -Lc "%s %b" {} > ' + str(shm / "said")
    run("--memfd", "--size", "64M", "--", "sh", "-c", script)
    assert (shm / "said").read_text().split() == [str(64 * MIB), str(64 * MIB // 512)]


def test_hugetlbfs_and_a_memfd_of_huge_pages(tmp_path: Path) -> None:
    with (
        rootlib.huge_pages(40),
        rootlib.mounted("hugetlbfs", "pagesize=2M", tmp_path / "huge") as place,
    ):
        file = place / "memory"
        run(file, "--size", "64M")
        assert held(file) == 64 * MIB
        free = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        assert int(free.read_text()) == 8
        run("--memfd", "--huge", "2M", "--size", "16M", "--", "true")
        said = run(file, "--size", "128M", code=3).stderr
        assert "its pool has 8 pages of 2 MiB to spare" in said
        assert file.stat().st_size == 64 * MIB
        said = run(place / "other", "--size", "128M", code=3).stderr
        assert "its pool has 8 pages" in said
        assert not (place / "other").exists()
        assert "whole pages of 2097152" in run(file, "--size", "65537K", code=2).stderr


def test_a_file_system_without_room_is_refused_first(tmp_path: Path) -> None:
    with rootlib.mounted("tmpfs", "size=16m", tmp_path / "m") as place:
        file = place / "memory"
        said = run(file, "--size", "24M", code=3).stderr
        assert "24 MiB more needed, its file system has 16 MiB to spare" in said
        assert not file.exists()
        run(file, "--size", "8M")
        run(file, "--size", "24M", code=3)
        assert file.stat().st_size == held(file) == 8 * MIB


def test_a_mount_of_another_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(
        b"29 1 0:26 / /mnt/\xe9\r\xc2\xa0 rw shared:1 - ext4 none rw\n"
        b"30 1 0:27 / /mnt/\xc2\xa0 rw,noexec - tmpfs none rw,size=1k\n"
    )
    monkeypatch.setattr(target, "MOUNTS", mounts)
    assert target._mount(os.makedev(0, 27)) == ("tmpfs", "rw,noexec,rw,size=1k")
    assert target._mount(os.makedev(0, 28)) == ("an unknown file system", "")


@pytest.mark.parametrize(
    ("words", "code", "says"),
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
    shm: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    done = run(*(word.replace("PLACE", str(shm)) for word in words), code=code)
    assert says in done.stderr
    assert list(shm.iterdir()) == []


def test_a_disk_is_refused(tmp_path: Path) -> None:
    if tmp_path.stat().st_dev == Path("/dev/shm").stat().st_dev:  # noqa: S108
        pytest.skip("the test's directory is in memory")
    said = run(tmp_path / "file", "--size", "1M", code=2).stderr
    assert "would not stay in memory" in said
    assert not (tmp_path / "file").exists()


def test_a_library_that_is_not_there(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULKMM_LIBRARY", str(shm / "none.so"))
    assert "BULKMM_LIBRARY names none" in run(shm / "f", "--size", "1M", code=3).stderr
    monkeypatch.setenv("BULKMM_LIBRARY", "libc.so.6")
    assert "bmm_populate" in run(shm / "f", "--size", "1M", code=3).stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_takes_the_file_along(
    shm: Path, how: signal.Signals
) -> None:
    file = shm / "memory"
    child = subprocess.Popen(
        [*COMMAND, str(file), "--size", "3G", "--threads", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (file.exists() and held(file)):
        assert child.poll() is None
        time.sleep(0.005)
    child.send_signal(how)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert said == "bulkmm: interrupted\n"
    assert not file.exists()


def test_a_terminal_has_a_bar(shm: Path) -> None:
    """And only a terminal: above, standard error is empty or a line."""
    words = [*COMMAND, shm / "memory", "--size", "600M", "--threads", "1"]
    code, said = on_terminal(words, stdout=subprocess.DEVNULL)
    assert code == 0
    assert b"MiB" in said
    assert b"/s" in said
