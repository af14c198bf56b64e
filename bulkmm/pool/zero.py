# SPDX-License-Identifier: GPL-2.0-only
"""Zero free pages of a pool ahead of use, so that path prezero can vouch for them.

A thread of ours does it inside a write to the module (module/prezero.c): one page
at a time, at the lowest priority, on the page's node. A thread that ends, in whatever
way, leaves nothing behind.
"""

import errno
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from threading import Event

from bulkmm.control.module import HOME, chosen
from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError
from bulkmm.pool.pools import TOTAL, Pool, cpus
from bulkmm.size import KIB

PREZERO = f"{HOME}/prezero"
PORTION = 64 << 20  # bytes, or a page: how long Ctrl-C waits for a thread
REST = 0.5  # seconds between two looks at a pool
DONE, BUSY = errno.EEXIST, errno.EAGAIN  # all are known; others need them
PASSES = {
    errno.EACCES: "only root may zero pages: run it as root",
    errno.ENOMEM: "the kernel has no memory for its bitmap",
    errno.ENODEV: "path prezero was switched off",
    errno.ENODATA: "the kernel's frees do not reach the module: path prezero "
    "cannot serve this kernel",
    errno.EINVAL: "the pool is gone",
}


def counted(root: Root) -> int:
    """Return how many pages have been zeroed since the module was loaded."""
    found = re.search(
        r"^zeroed (\d+)", root.read(f"{PREZERO}/stats") or "", re.MULTILINE
    )
    return int(found[1]) if found else 0


def check(root: Root) -> None:
    """Raise unless zeroing would be of any use."""
    if chosen(root, f"{PREZERO}/mode") != "on":
        raise BulkmmError(
            "nothing to gain: without path prezero the kernel clears each page again; "
            "switch it on first: bulkmm on prezero"
        )


@dataclass(frozen=True)
class Zeroer:
    """Threads that zero the free pages of nodes, but for a margin of their pages."""

    parts: Sequence[Pool]
    margin: float
    watch: bool
    stop: Event = field(default_factory=Event)

    def run(self, threads: int, progress: Callable[[int, int], None]) -> None:
        """Zero until all are known, or for ever; raise what stopped a thread."""
        usual = os.sched_getaffinity(0)
        with ThreadPoolExecutor(threads) as pool:
            try:
                left = {pool.submit(self._thread, usual) for _ in range(threads)}
                while left:
                    zeroed = sum(part.zeroed() for part in self.parts)
                    progress(zeroed, sum(part.free() for part in self.parts))
                    done, left = wait(left, REST / 5, FIRST_COMPLETED)
                    for one in done:
                        one.result()
            finally:
                self.stop.set()

    def _thread(self, usual: set[int]) -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while True:
            for part in self.parts:
                here = cpus(part.root, part.node) & usual
                with suppress(OSError):  # CPUs may have gone
                    os.sched_setaffinity(0, here or usual)
                self._zero(part)
            if not self.watch or self.stop.wait(REST):
                return

    def _zero(self, part: Pool) -> None:
        """Zero portions of a node until none is left, or none is to be had."""
        if self.watch and part.zeroed() >= part.free():
            return
        kib, count = part.page // KIB, max(PORTION // part.page, 1)
        try:
            while not self.stop.is_set():
                kept = ceil(part.read(TOTAL) * self.margin)
                words = f"{kib} {part.node} {count} {kept}"
                part.root.write(f"{PREZERO}/zero", words)
        except OSError as error:
            code = error.errno or 0
            if code not in {DONE, BUSY}:
                said = f"{error.filename or PREZERO}: {error.strerror}"
                raise BulkmmError(PASSES.get(code, said)) from error
