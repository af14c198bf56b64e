# SPDX-License-Identifier: GPL-2.0-only
"""`bulkmm populate`: files, memfds, pages, and what it refuses."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import rootlib
from populatelib import COMMAND, MIB, count_resident, run_populate
from programs import on_terminal


def test_a_file_is_made_grows_and_keeps_what_it_has(shm: Path) -> None:
    file = shm / "memory"
    run_populate(file, "--size", "8M")
    assert count_resident(file) == 8 * MIB
    with file.open("r+b") as stream:
        stream.write(b"kept")
    assert "allocated already; looking at 8 MiB took" in run_populate(file).stdout
    report = json.loads(run_populate(file, "--size", "80M", "--json").stdout)
    assert report["populate"]["bytes"] == count_resident(file) == 80 * MIB
    assert report["populate"]["threads"] >= 1
    assert file.read_bytes().startswith(b"kept\0")
    for size in (2 * MIB, 80 * MIB):
        os.truncate(file, size)
    assert count_resident(file) == 2 * MIB
    assert "GB/s" in run_populate(file, "--threads", 1, "--node", 0).stdout
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
        more = "more by bulkmm pool grow --page 2M --size 112M"
        assert f"its pool has 8 pages of 2 MiB to spare; {more}" in stderr
        assert file.stat().st_size == 64 * MIB
        stderr = run_populate(place / "other", "--size", "128M", code=3).stderr
        assert "its pool has 8 pages" in stderr
        assert not (place / "other").exists()
        assert (
            "whole pages of 2097152"
            in run_populate(file, "--size", "65537K", code=2).stderr
        )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "give a FILE"),
        ((",size=1M",), 2, "no file in"),
        (("PLACE/none",), 2, "--size says how large"),
        (("PLACE/none", "--size", "0M"), 2, "whole pages"),
        (("PLACE/none", "--size", "3x"), 2, "bad size 3x"),
        (("PLACE/none", "--size", "65T"), 2, "above the 64T"),
        (("PLACE/none/none", "--size", "1M"), 3, "No such file"),
        (("PLACE", "--size", "1M"), 3, "directory"),
        (("/dev/null",), 2, "not a DAX device"),
        (("PLACE/none", "--size", "1M", "--threads", "0"), 2, "give 1 to"),
        (("PLACE/none", "--size", "1M", "--node", "-1"), 2, "give 0 to 1023"),
        (
            ("PLACE/none", "--size", "1M", "--node", "999"),
            2,
            "no memory node 999",
        ),
        (("PLACE/none", "--size", "1M", "--huge", "2M"), 2, "applies to --memfd"),
        (("--memfd", "--size", "1M"), 2, "needs a command"),
        (("--memfd", "--", "true"), 2, "how much"),
        (("--memfd", "--size", "4M", "--huge", "3M", "--", "true"), 2, "a page size"),
        (("--memfd", "--size", "1M", "--huge", "2M", "--", "true"), 2, "whole pages"),
        (("--memfd", "--size", "1M", "--", "PLACE/none"), 2, "no such command"),
        (("--memfd", "--size", "1M", "--", "{}"), 3, "Exec format error"),
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


def test_a_terminal_has_a_bar(shm: Path) -> None:
    """And only a terminal: above, standard error is empty or a line."""
    words = [*COMMAND, shm / "memory", "--size", "600M", "--threads", "1"]
    code, output = on_terminal(words, stdout=subprocess.DEVNULL)
    assert code == 0
    assert b"MiB" in output
    assert b"/s" in output


def test_pages_elsewhere_in_the_file_are_not_those_asked_for(shm: Path) -> None:
    file = shm / "memory"
    with file.open("wb") as stream:
        stream.truncate(8 * MIB)
        os.posix_fallocate(stream.fileno(), 4 * MIB, 4 * MIB)
    assert "GB/s" in run_populate(file, "--size", "4M").stdout
    assert count_resident(file) == 8 * MIB
