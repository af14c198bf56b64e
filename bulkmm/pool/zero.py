# SPDX-License-Identifier: GPL-2.0-only
"""Zero free pages of a pool ahead of use, so that path prezero can vouch for them.

A thread of ours does it inside a write to the module (module/prezero_fill.c): one
page at a time, on the page's node. It holds that page until it is zero, so it must get
a CPU: at idle priority a page of 1 GiB was gone for minutes on a busy node. A thread
that has to share its CPU rests after each portion instead. A thread that ends, in
whatever way, leaves nothing behind.

What is left to do is never told from counts: a page that is known may be in use. A
write that passes by eight known pages in a row fails, and the next tries others, so
that as many writes as it takes for all free pages find any that is left.
"""

import errno
import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil, inf
from threading import Event

from bulkmm.control.module import HOME, explain_unloaded, is_loaded, read_choice
from bulkmm.control.pools import TOTAL, Pool, cpus_of
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.size import KIB

PREZERO = f"{HOME}/prezero"
PORTION = 64 << 20  # bytes, or a page: how long Ctrl-C waits for a thread
TICK = 0.5  # seconds between two looks at a pool
# after so many known pages a write fails (module/prezero_fill.c: SKIPPED)
KNOWN_IN_A_ROW = 8
ROUND = 1200  # ticks in which a watch tries every free page once
SHARE = 10  # a thread that shares its CPU takes this part of it
ALREADY_KNOWN, BUSY = errno.EEXIST, errno.EAGAIN  # these are known; others need them
PASSES = {
    errno.EACCES: "only root may zero pages: run it as root",
    errno.ENOMEM: "the kernel has no memory for its bitmap",
    errno.ENODEV: "path prezero was switched off",
    errno.ENODATA: "the kernel's frees do not reach the module: path prezero "
    "cannot serve this kernel",
    errno.EINVAL: "the pool is gone",
}


def count_zeroed(root: SystemFiles) -> int:
    """Return how many pages have been zeroed since the module was loaded."""
    match = re.search(
        r"^zeroed (\d+)", root.read(f"{PREZERO}/stats") or "", re.MULTILINE
    )
    return int(match[1]) if match else 0


def count_margin(part: Pool, margin: float) -> int:
    """Return how many pages of a node a margin keeps free."""
    return ceil(part.read(TOTAL) * margin)


def need_prezero(root: SystemFiles) -> None:
    """Raise unless zeroing would be of any use."""
    if read_choice(root, f"{PREZERO}/mode") != "on":
        remedy = "switch it on first: bulkmm on prezero"
        raise BulkmmError(
            "nothing to gain: without path prezero the kernel clears each page again; "
            f"{remedy if is_loaded(root) else explain_unloaded(root)}"
        )


@dataclass(frozen=True)
class Zeroer:
    """Threads that zero the free pages of nodes, but for a margin of their pages.

    ``tried_all`` has the parts of which a thread has tried all free pages.
    """

    parts: Sequence[Pool]
    margin: float
    watch: bool
    stop: Event = field(default_factory=Event)
    tried_all: set[Pool] = field(default_factory=set)

    def run(self, threads: int, progress: Callable[[int, int], None]) -> None:
        """Zero until all are known, or for ever; raise what stopped a thread."""
        usual = os.sched_getaffinity(0)
        with ThreadPoolExecutor(threads) as pool:
            try:
                pending = {pool.submit(self._thread, usual) for _ in range(threads)}
                while pending:
                    zeroed = sum(part.count_zeroed() for part in self.parts)
                    progress(zeroed, sum(part.count_free() for part in self.parts))
                    completed, pending = wait(pending, TICK / 5, FIRST_COMPLETED)
                    for future in completed:
                        future.result()
            finally:
                self.stop.set()

    def _thread(self, usual: set[int]) -> None:
        with suppress(OSError):  # of no other policy without a right to it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        while True:
            for part in self.parts:
                node_cpus = cpus_of(part.root, part.node) & usual
                with suppress(OSError):  # CPUs may have gone
                    os.sched_setaffinity(0, node_cpus or usual)
                self._zero(part)
            if not self.watch or self.stop.wait(TICK):
                return

    def _zero(self, part: Pool) -> None:
        """Zero portions of a node until only known pages are met, or none is to be had.

        Once, all free pages are tried; a watch tries some, and others at its next tick,
        and zeroes no more than were free, for other nodes and sizes wait meanwhile.
        """
        passed, ticks = 0, ROUND if self.watch else 1
        pages = KNOWN_IN_A_ROW * ticks
        writes = ceil(part.count_free() / _portion_pages(part)) if self.watch else inf
        while (
            not self.stop.is_set() and passed * pages <= part.count_free() > 0 < writes
        ):
            writes -= 1
            wall, cpu = time.monotonic(), time.thread_time()
            code = self._write(part)
            self._rest(time.monotonic() - wall, time.thread_time() - cpu)
            if code == BUSY:
                return
            passed = passed + 1 if code == ALREADY_KNOWN else 0
        if passed:
            self.tried_all.add(part)

    def _write(self, part: Pool) -> int:
        """Have a portion zeroed; return 0, or why none was."""
        kib, count = part.page // KIB, _portion_pages(part)
        floor = count_margin(part, self.margin)
        try:
            part.root.write(f"{PREZERO}/zero", f"{kib} {part.node} {count} {floor}")
        except OSError as error:
            code = error.errno or 0
            if code == errno.EINVAL and not part.count_free():
                return BUSY  # the node's memory has gone offline meanwhile
            if code not in {ALREADY_KNOWN, BUSY}:
                reason = f"{error.filename or PREZERO}: {error.strerror}"
                raise BulkmmError(PASSES.get(code, reason)) from error
            return code
        return 0

    def _rest(self, wall: float, cpu: float) -> None:
        """Leave the CPU to others for a while, if they wanted it meanwhile."""
        if wall - cpu > cpu / 4:
            self.stop.wait((SHARE - 1) * cpu)


def _portion_pages(part: Pool) -> int:
    """Return how many pages a write has zeroed."""
    return max(PORTION // part.page, 1)
