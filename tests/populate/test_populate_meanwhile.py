# SPDX-License-Identifier: GPL-2.0-only
"""What others do to a file while it is filled stays, and so does its name."""

import ctypes
import errno
import fcntl
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from populatelib import (
    COMMAND,
    MIB,
    append_more,
    count_resident,
    interrupt_target,
    open_target,
)

from bulkmm.populate import room, target
from bulkmm.shell.ending import LIBC
from bulkmm.shell.errors import BulkmmError


@pytest.mark.parametrize("size", [None, 3 * MIB])
def test_what_others_append_meanwhile_stays(shm: Path, size: int | None) -> None:
    path = shm / "f"
    path.write_bytes(bytes(MIB))
    interrupt_target(path, size, lambda: append_more(path))
    assert path.read_bytes()[-4:] == b"more"


@pytest.mark.parametrize("node", [None, 0])
def test_what_others_append_before_it_grows_stays(
    shm: Path, monkeypatch: pytest.MonkeyPatch, node: int | None
) -> None:
    """And beyond the new size: to allocate what is missing takes seconds."""
    path, check_room = shm / "f", room.check_room
    path.write_bytes(bytes(MIB))

    def appended(needs: Sequence[room.FileNeed]) -> None:
        check_room(needs)
        os.truncate(path, 4 * MIB)
        append_more(path)

    monkeypatch.setattr(room, "check_room", appended)
    with open_target(path, 3 * MIB, node) as (file,):
        assert file.size == 3 * MIB
    assert path.read_bytes()[-4:] == b"more"


def test_what_others_append_before_it_grows_stays_if_it_is_interrupted(
    shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, check_room = shm / "f", room.check_room
    path.write_bytes(bytes(MIB))

    def appended(needs: Sequence[room.FileNeed]) -> None:
        check_room(needs)
        append_more(path)

    monkeypatch.setattr(room, "check_room", appended)
    interrupt_target(path, 3 * MIB)
    assert path.read_bytes()[MIB:] == b"more"


def test_what_another_run_has_filled_is_not_cut_off(shm: Path) -> None:
    """One waits for the other, and for no other lock of the file."""
    path, runs = shm / "f", list[subprocess.Popen[str]]()
    path.write_bytes(bytes(MIB))

    def start() -> None:
        runs.append(subprocess.Popen([*COMMAND, path, "--size", "3M"], text=True))
        with suppress(subprocess.TimeoutExpired):
            runs[0].wait(3)

    with path.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        interrupt_target(path, 3 * MIB, start)
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
        with open_target(path, size):
            raise KeyboardInterrupt

    with path.open("r+b") as stream:
        numbers = ctypes.c_int64(0), ctypes.c_int64(length)
        assert not LIBC.fallocate(stream.fileno(), keep_size, *numbers)
    with pytest.raises((BulkmmError, KeyboardInterrupt)):
        interrupted()
    assert count_resident(path) == length


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
        open_target(path, MIB),
    ):
        pass


def test_a_name_that_another_took_meanwhile_is_kept(shm: Path) -> None:
    with (
        pytest.raises(BulkmmError, match="File exists"),
        open_target(shm / "f", MIB),
    ):
        (shm / "f").write_text("another")
    assert (shm / "f").read_text() == "another"
