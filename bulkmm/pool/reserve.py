# SPDX-License-Identifier: GPL-2.0-only
"""Processes that make the kernel allocate huge pages, several at once.

A mapping of huge pages reserves them; what the pool lacks is allocated as surplus,
outside hugetlb_lock (gather_surplus_pages(), mm/hugetlb.c, 6.12 and 7.3), while a
write to nr_hugepages allocates under resize_lock, one thread at a time. Nothing is
touched, so nothing is zeroed. Processes, as threads would share a mmap_lock.

A process is bound to its node only while it reserves, and leaves the node a margin:
where no memory is left, an allocation of the kernel's for a bound process ends in
the OOM killer (out_of_memory(), CONSTRAINT_MEMORY_POLICY), which may choose any
process. What is within the margin, writing nr_hugepages gets without that risk.
"""

import ctypes
import errno
import mmap
import os
import platform
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import NoReturn, Self

from bulkmm.control.pools import has_nodes, read_meminfo
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool.spread import AVAILABLE
from bulkmm.shell.ending import (
    KILLED_FIRST,
    LIBC,
    OOM_SCORE,
    end_with_parent,
    hold_signals,
)
from bulkmm.shell.size import KIB

PORTION = 64 << 20  # bytes that a process asks for at once, between two reports
HUGETLB, LOG_OF_HUGE = 0x40000, 26  # MAP_HUGETLB, MAP_HUGE_SHIFT
DEFAULT, BIND = 0, 2  # MPOL_DEFAULT, MPOL_BIND
MARGIN = 64 << 20  # bytes that stay free on a node, and more if the kernel keeps more
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}


@dataclass(frozen=True)
class Share:
    """What one process reserves."""

    pages: int
    node: int | None = None  # None: on any
    cpus: Sequence[int] = ()  # where it runs; (): anywhere


@dataclass
class Reserved:
    """Processes that hold reserved pages until the block ends, or they are killed."""

    page: int
    kids: list[int] = field(default_factory=list)
    pages: int = 0  # all processes together

    def __enter__(self) -> Self:
        """Have none yet."""
        return self

    def take(self, shares: Iterable[Share]) -> Iterator[int]:
        """Reserve, each share in a process of its own; yield the pages so far."""
        # of all: it ends when the last process has closed it
        read_fd, write_fd = os.pipe()
        with FileIO(read_fd) as reports:
            with FileIO(write_fd, "w"):
                for share in shares:
                    self._start(share, write_fd)
            while counts := reports.read(4096):
                self.pages += sum(counts)
                yield self.pages

    def _start(self, share: Share, report_fd: int) -> None:
        parent = os.getpid()
        with hold_signals():  # in the process, to its end: the parent decides
            if not (kid := os.fork()):
                try:
                    _hold_share(share, self.page, report_fd, parent)
                finally:
                    os._exit(1)
            self.kids.append(kid)

    def __exit__(self, *_: object) -> None:
        """End all processes: pages that are not persistent by now are freed."""
        for kid in self.kids:
            os.kill(kid, signal.SIGKILL)
            os.waitpid(kid, 0)


def _hold_share(share: Share, page: int, report_fd: int, parent: int) -> NoReturn:
    """In a process of its own: reserve a share, report each portion, wait."""
    end_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    if share.cpus:
        os.sched_setaffinity(0, share.cpus)
    OOM_SCORE.write_text(KILLED_FIRST, encoding="ascii")
    how = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | HUGETLB
    how |= (page.bit_length() - 1) << LOG_OF_HUGE
    mappings, remaining = [], share.pages
    step = min(max(PORTION // page, 1), 255)  # a report is a byte
    while remaining:
        count = min(step, remaining)
        try:
            with _bind_mapping(share.node, count * page):
                mappings.append(mmap.mmap(-1, count * page, flags=how))
        except OSError:
            if count == 1:
                break
            step = count // 2
            continue
        remaining -= count
        os.write(report_fd, bytes([count]))
    os.close(report_fd)
    while True:
        signal.pause()


@contextmanager
def _bind_mapping(node: int | None, size: int) -> Iterator[None]:
    """Take memory of this node alone, if it has as much and a margin."""
    if node is None:
        yield
        return
    min_free_kib = Path("/proc/sys/vm/min_free_kbytes").read_text(encoding="ascii")
    root = SystemFiles(Path("/"))
    available = read_meminfo(root, node, *AVAILABLE)
    if available < size + max(MARGIN, 2 * KIB * int(min_free_kib)):
        raise OSError(errno.ENOMEM, "the rest of the node is its margin")
    if not has_nodes(root):  # nor has the kernel memory policies
        yield
        return
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    words = node // bits + 1
    mask = (ctypes.c_ulong * words)()
    mask[node // bits] = 1 << node % bits
    # the kernel reads one bit less than it is told
    _set_policy(BIND, mask, words * bits + 1)
    try:
        yield
    finally:
        _set_policy(DEFAULT, None, 0)


def _set_policy(
    mode: int, mask: ctypes.Array[ctypes.c_ulong] | None, bits: int
) -> None:
    if LIBC.syscall(SET_MEMPOLICY[platform.machine()], mode, mask, bits):
        raise OSError(ctypes.get_errno(), "set_mempolicy")
