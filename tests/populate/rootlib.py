# SPDX-License-Identifier: GPL-2.0-only
"""What root can make of this machine for a test, and puts back after it."""

import fcntl
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

POOL = Path("/proc/sys/vm/nr_hugepages")


def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


@contextmanager
def alone_with_the_pool() -> Iterator[None]:
    """Wait for other processes of these tests: the machine has one pool.

    A test that fails leaves it as it was, or the next ones would find it larger.
    """
    with (Path(tempfile.gettempdir()) / "bulkmm-test-pool.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = POOL.read_text()
        try:
            yield
        except BaseException:
            with suppress(OSError):
                POOL.write_text(before)
            raise


def count_used_pages() -> int:
    """Return the huge pages of programs outside of the tests."""
    text = Path("/proc/meminfo").read_text()
    words = re.findall(r"^HugePages_(?:Total|Free): +(\d+)$", text, re.MULTILINE)
    total, free = map(int, words)
    return total - free


@contextmanager
def huge_pages(count: int) -> Iterator[None]:
    """Have so many huge pages of 2 MiB free in the pool."""
    needs_root()
    with alone_with_the_pool():
        before, count = POOL.read_text(), count + count_used_pages()
        try:
            POOL.write_text(str(count))
            if int(POOL.read_text()) != count:
                pytest.skip(f"the machine has no {count} huge pages to spare")
            yield
        finally:
            POOL.write_text(before)


@contextmanager
def make_cgroup(controller: str, **values: str) -> Iterator[list[str]]:
    """Make a cgroup, and give what starts a command in it."""
    needs_root()
    root = Path("/sys/fs/cgroup") / controller
    if not root.is_dir():  # version 2
        pytest.skip(f"no cgroup of version 1 for {controller}")
    group = root / f"bulkmm-test-{os.getpid()}"
    try:
        group.mkdir()
        for name, value in values.items():
            (group / f"{controller}.{name}").write_text(value)
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        tasks = group / "cgroup.procs"
        yield ["sh", "-c", f'echo $$ > {tasks} && exec "$@"', "sh"]
    finally:
        group.rmdir()


@contextmanager
def full_cgroup(size: int) -> Iterator[list[str]]:
    """Make a cgroup of so much memory, in which the kernel may not kill.

    It lets who touches a page wait instead, for ever: even a program that has been
    told that there is no memory, when it says so. So whoever waits gets more.
    """
    limits = {"limit_in_bytes": str(size), "oom_control": "1"}
    with make_cgroup("memory", **limits) as inside:
        group = Path("/sys/fs/cgroup/memory") / f"bulkmm-test-{os.getpid()}"
        over = threading.Event()

        def relieve(limit: int = size) -> None:
            while not over.wait(0.5):
                if "under_oom 1" in (group / "memory.oom_control").read_text():
                    limit += 1 << 20
                    (group / "memory.limit_in_bytes").write_text(str(limit))

        helper = threading.Thread(target=relieve)
        helper.start()
        try:
            yield inside
        finally:
            over.set()
            helper.join()


# for a command: it sees no cgroup, as in some containers
NO_CGROUPS = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
HIDDEN = ["unshare", "-m", "sh", "-c", NO_CGROUPS, "sh"]


@contextmanager
def huge_cgroup(name: str, size: int, at: Path) -> Iterator[list[str]]:
    """Make a cgroup that limits huge pages of 2 MiB, and give what starts in it."""
    needs_root()
    at.mkdir()
    mount = ["mount", "-t", "cgroup", "-o", "hugetlb", "none", str(at)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("the hugetlb controller is not free for version 1")
    group = at / "bulkmm-test"
    try:
        group.mkdir()
        (group / f"hugetlb.2MB.{name}").write_text(str(size))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        for _ in range(100):  # until the kernel has given all pages back
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.05)
        subprocess.run(["umount", str(at)], check=True)


@contextmanager
def broken_disk(image: Path, size: int, readable: int) -> Iterator[Path]:
    """Have a disk of which the rest cannot be read."""
    needs_root()
    image.touch()
    os.truncate(image, size)
    command = ["losetup", "--find", "--show", str(image)]
    status = subprocess.run(command, check=False, capture_output=True, text=True)
    if status.returncode:
        pytest.skip(f"no loop device: {status.stderr.strip()}")
    disk = Path(status.stdout.strip())
    try:
        os.truncate(image, readable)
        yield disk
    finally:
        subprocess.run(["losetup", "--detach", str(disk)], check=True)


@contextmanager
def mount_memory(kind: str, options: str, at: Path) -> Iterator[Path]:
    """Mount a file system of memory."""
    needs_root()
    at.mkdir()
    command = ["mount", "-t", kind, "-o", options, "none", str(at)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip(f"{kind} cannot be mounted here")
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)
