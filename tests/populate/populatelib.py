# SPDX-License-Identifier: GPL-2.0-only
"""The command `bulkmm populate`, run."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from programs import run_program

from bulkmm.populate import target
from bulkmm.populate.request import Request

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


def open_target(
    path: Path, size: int | None, node: int | None = None
) -> AbstractContextManager[list[target.Target]]:
    """Open a file as the command does."""
    return target.open_files([Request(path, size, node)])


def count_resident(path: Path) -> int:
    """Return the bytes that a file has in memory."""
    return path.stat().st_blocks * 512


def count_used(place: Path) -> int:
    """Return the bytes that a file system has given out."""
    room = os.statvfs(place)
    return (room.f_blocks - room.f_bfree) * room.f_frsize
