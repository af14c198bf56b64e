# SPDX-License-Identifier: GPL-2.0-only
"""Processes that make the kernel allocate huge pages, several at once.

A mapping of huge pages reserves them; what the pool lacks is allocated as surplus,
outside hugetlb_lock (gather_surplus_pages(), mm/hugetlb.c, 6.12 and 7.3), while a
write to nr_hugepages allocates under resize_lock, one thread at a time. Nothing is
touched, so nothing is zeroed. Processes, as threads would share a mmap_lock.
"""

import ctypes
import mmap
import os
import platform
import selectors
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

PORTION = 64 << 20  # bytes that a process asks for at once, between two reports
HUGETLB, LOG_OF_HUGE = 0x40000, 26  # MAP_HUGETLB, MAP_HUGE_SHIFT
PDEATHSIG, BIND = 1, 2  # PR_SET_PDEATHSIG, MPOL_BIND
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Share:
    """What one process reserves."""

    pages: int
    node: int | None = None  # None: on any
    cpus: Sequence[int] = ()  # where it runs; (): anywhere


@dataclass
class Reserved:
    """Processes that hold reserved pages until they are let go, or killed."""

    page: int
    kids: list[int] = field(default_factory=list)
    held: int = 0  # pages, all processes together

    def take(self, shares: Sequence[Share], progress: Callable[[int], None]) -> None:
        """Reserve, each share in a process of its own; return when none has more."""
        with selectors.DefaultSelector() as waiting:
            for share in shares:
                waiting.register(self._start(share), selectors.EVENT_READ)
            while waiting.get_map():
                for key, _ in waiting.select():
                    said = os.read(key.fd, 4096)
                    if not said:
                        waiting.unregister(key.fd)
                        os.close(key.fd)
                    self.held += sum(said)
                    progress(self.held)

    def _start(self, share: Share) -> int:
        told, tell = os.pipe()
        parent = os.getpid()
        if kid := os.fork():
            os.close(tell)
            self.kids.append(kid)
            return told
        try:
            _hold(share, self.page, tell, parent)
        finally:
            os._exit(1)

    def let_go(self) -> None:
        """End all processes: pages that are not persistent by now are freed."""
        for kid in self.kids:
            os.kill(kid, signal.SIGKILL)
            os.waitpid(kid, 0)
        self.kids, self.held = [], 0


def _hold(share: Share, page: int, tell: int, parent: int) -> NoReturn:
    """In a process of its own: reserve a share, report each portion, wait."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    LIBC.prctl(PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    if share.cpus:
        os.sched_setaffinity(0, share.cpus)
    if share.node is not None:
        _bind(share.node)
    how = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | HUGETLB
    how |= (page.bit_length() - 1) << LOG_OF_HUGE
    held, left = [], share.pages
    step = min(max(PORTION // page, 1), 255)  # a report is a byte
    while left:
        count = min(step, left)
        try:
            held.append(mmap.mmap(-1, count * page, flags=how))
        except OSError:
            if count == 1:
                break
            step = count // 2
            continue
        left -= count
        os.write(tell, bytes([count]))
    os.close(tell)
    while True:
        signal.pause()


def _bind(node: int) -> None:
    """Take memory of this node alone."""
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    words = node // bits + 1
    mask = (ctypes.c_ulong * words)()
    mask[node // bits] = 1 << node % bits
    call = SET_MEMPOLICY[platform.machine()]
    # the kernel reads one bit less than it is told
    if LIBC.syscall(call, BIND, mask, words * bits + 1):
        raise OSError(ctypes.get_errno(), "set_mempolicy")
