# SPDX-License-Identifier: GPL-2.0-only
"""The commands `bulkmm populate` and `bulkmm bench populate`, run."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import fakekernel
import pytest
from programs import run_command, run_program

from bulkmm.control.system_files import SystemFiles
from bulkmm.populate import target
from bulkmm.populate.request import Request

PROGRAM = [sys.executable, "-m", "bulkmm.cli"]
COMMAND = [*PROGRAM, "populate"]
MIB = 1 << 20


def run_populate(
    *words: object, code: int = 0, inside: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return run_command([*inside, *COMMAND, *words], code=code)


def run_bench(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "bench", "populate", *words]
    return run_program(command, timeout=300, env={**os.environ, **more})


def run_alone(path: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run with the programs of a directory: others start slower than they populate."""
    return run_bench(*words, BULKMM_CACHE=str(path), PATH=str(path), **more)


def open_target(
    path: Path, size: int | None, node: int | None = None
) -> AbstractContextManager[list[target.Target]]:
    """Open a file as the command does."""
    return target.open_files([Request(path, size, node)])


def interrupt_target(
    path: Path, size: int | None, meanwhile: Callable[[], Any] = bool
) -> None:
    """Open a file as the command does, do something meanwhile, and interrupt it."""

    def interrupted() -> None:
        with open_target(path, size):
            meanwhile()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def append_more(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"more")


def count_resident(path: Path) -> int:
    """Return the bytes that a file has in memory."""
    return path.stat().st_blocks * 512


def count_used(place: Path) -> int:
    """Return the bytes that a file system has given out."""
    room = os.statvfs(place)
    return (room.f_blocks - room.f_bfree) * room.f_frsize


def fake_two_nodes(
    root: Path, pools: dict[int, tuple[int, int, int]], *, swap_kib: int
) -> SystemFiles:
    """Make up a machine of 200 MiB, half of it on each node, and its pools."""
    fake = fakekernel.Fake(root)
    fakekernel.make_pool(fake, pools)
    fake.write("/proc/meminfo", f"MemTotal: 204800 kB\nSwapFree: {swap_kib} kB")
    for node in (0, 1):
        home = f"/sys/devices/system/node/node{node}"
        fake.write(f"{home}/meminfo", f"Node {node} MemTotal: 102400 kB")
    return SystemFiles(root)
