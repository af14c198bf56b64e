# SPDX-License-Identifier: GPL-2.0-only
"""Zero free pages of a pool ahead of use, so that path prezero can vouch for them.

A thread of ours does it inside a write to the module (module/prezero.c): one page
at a time, at the lowest priority, on the page's node. A thread that ends, in whatever
way, leaves nothing behind.
"""

import errno
import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from bulkmm.control.module import HOME, chosen
from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError
from bulkmm.pool.pools import Pool, cpus, nodes
from bulkmm.size import KIB

PREZERO = f"{HOME}/prezero"
PORTION = 64 << 20  # bytes, or a page: how long Ctrl-C waits for a thread
REST = 0.5  # seconds between two looks at a pool
DONE, BUSY = errno.EEXIST, errno.EAGAIN  # all are known; others need them
PASSES = {
    errno.ENOMEM: "the kernel has no memory for its bitmap",
    errno.ENODEV: "path prezero was switched off",
    errno.ENODATA: "the kernel's frees do not reach the module: path prezero "
    "cannot serve this kernel",
    errno.EINVAL: "the pool is gone",
}


@dataclass(frozen=True)
class Target:
    """A node's part of a pool."""

    pool: Pool
    node: int
    margin: float  # of its pages, that stay free

    @property
    def pages(self) -> int:
        """Return its pages that are free."""
        return self.pool.read("free_hugepages", self.node)

    @property
    def zeroed(self) -> int:
        """Return those of them that are known to be zero."""
        return self.pool.zeroed(self.node)

    @property
    def floor(self) -> int:
        """Return how many pages stay free."""
        return -int(-self.pool.read("nr_hugepages", self.node) * self.margin // 1)


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


@dataclass
class Zeroer:
    """Threads that zero the free pages of some targets."""

    targets: Sequence[Target]
    watch: bool
    cpus: set[int] = field(default_factory=partial(os.sched_getaffinity, 0))
    stop: threading.Event = field(default_factory=threading.Event)
    failed: BulkmmError | None = None

    def run(self, threads: int, progress: Callable[[int, int], None]) -> None:
        """Zero until all are known, or for ever; raise what stopped a thread."""
        began = [threading.Thread(target=self._thread) for _ in range(threads)]
        try:
            for thread in began:
                thread.start()
            while any(thread.is_alive() for thread in began):
                zeroed = sum(one.zeroed for one in self.targets)
                progress(zeroed, sum(one.pages for one in self.targets))
                began[0].join(REST / 5)
                self.stop.wait(REST / 5)
        finally:
            self.stop.set()
            for thread in began:
                thread.join()
        if self.failed:
            raise self.failed

    def _thread(self) -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            while True:
                for target in self.targets:
                    here = cpus(target.pool.root, target.node) & self.cpus
                    with suppress(OSError):  # CPUs may have gone
                        os.sched_setaffinity(0, here or self.cpus)
                    self._target(target)
                if not self.watch or self.stop.wait(REST):
                    return
        except BulkmmError as error:
            self.failed = error
            self.stop.set()

    def _target(self, target: Target) -> None:
        """Zero portions of a target until none is left, or none is to be had."""
        if self.watch and target.zeroed >= target.pages:
            return
        kib, count = target.pool.page // KIB, max(PORTION // target.pool.page, 1)
        try:
            while not self.stop.is_set():
                words = f"{kib} {target.node} {count} {target.floor}"
                target.pool.root.write(f"{PREZERO}/zero", words)
        except OSError as error:
            code = error.errno or 0
            if code not in {DONE, BUSY}:
                said = f"{error.filename or PREZERO}: {error.strerror}"
                raise BulkmmError(PASSES.get(code, said)) from error


def targets(
    root: Root, pages: Sequence[int], node: int | None, margin: float
) -> list[Target]:
    """Return the parts of pools of these sizes, on a node or all."""
    return [
        Target(Pool(root, page), one, margin)
        for page in pages
        for one in (nodes(root) if node is None else [node])
        if Pool(root, page).on(one)
    ]
