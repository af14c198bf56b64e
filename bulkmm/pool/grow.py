# SPDX-License-Identifier: GPL-2.0-only
"""Grow a pool: reserve surplus pages in parallel, then make them persistent."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError, InterruptedWorkError
from bulkmm.pool.pools import NODES, NodeChange, Pool, cpus_of, meminfo
from bulkmm.pool.reserve import Reserved, Share
from bulkmm.size import KIB, MIB

RUN = "/run/bulkmm"
OVERCOMMIT = "nr_overcommit_hugepages"
Progress = Callable[[int], None]  # pages so far


@contextmanager
def alone(root: Root, pool: Pool) -> Iterator[Path]:
    """Keep other runs out, and restore what a run that was killed had raised.

    Yield the file in which this run notes what it raises.
    """
    home = root.at(RUN)
    home.mkdir(parents=True, exist_ok=True)
    note = home / f"pool-{pool.page // KIB}kB.json"
    with (home / "pool.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BulkmmError("another bulkmm pool is changing a pool") from error
        with suppress(FileNotFoundError, ValueError):
            pool.write(OVERCOMMIT, json.loads(note.read_text())[OVERCOMMIT])
        note.unlink(missing_ok=True)
        yield note


def grow(
    pool: Pool,
    wanted: Mapping[int, int],
    jobs: int,
    note: Path,
    progress: Progress,
) -> list[NodeChange]:
    """Add pages to nodes, with so many processes on each (0: one per CPU).

    An exception leaves the pool as it was.
    """
    before = {node: pool.persistent(node) for node in wanted}
    had = 0

    def told(pages: int) -> None:
        nonlocal had
        had = pages
        progress(pages)

    try:
        with _surplus(pool, wanted, jobs, note, told):
            for node, pages in wanted.items():
                pool.write("nr_hugepages", before[node] + pages, node)
    except BaseException as error:
        for node, pages in before.items():
            pool.write("nr_hugepages", pages, node)
        if isinstance(error, KeyboardInterrupt):
            said = f"interrupted with {had} of {sum(wanted.values())} pages"
            raise InterruptedWorkError(f"{said}: the pool is as it was") from error
        raise
    got = {node: pool.persistent(node) - before[node] for node in wanted}
    return [
        NodeChange(node, pages, got[node], _why(pool, node, pages - got[node]))
        for node, pages in wanted.items()
    ]


@contextmanager
def _surplus(
    pool: Pool, wanted: Mapping[int, int], jobs: int, note: Path, progress: Progress
) -> Iterator[None]:
    """Hold as many surplus pages as are wanted, where the kernel allows that.

    6.12 refuses surplus pages of 1 GiB (__nr_hugepages_store_common() and
    nr_overcommit_hugepages_store(), mm/hugetlb.c): then writing nr_hugepages does all.
    """
    usual = pool.read(OVERCOMMIT)
    # Reserving takes what is free first.
    spare = max(pool.read("free_hugepages") - pool.read("resv_hugepages"), 0)
    reserved = Reserved(pool.page)
    note.write_text(json.dumps({OVERCOMMIT: usual}))
    try:
        most = pool.read("surplus_hugepages") + sum(wanted.values()) + spare
        with suppress(BulkmmError):
            pool.write(OVERCOMMIT, max(usual, most))
        if pool.read(OVERCOMMIT) >= most:
            reserved.take([Share(spare)] if spare else [], lambda _: None)
            reserved.take(
                [
                    share
                    for node, pages in wanted.items()
                    for share in _shares(pool.root, node, pages, jobs)
                ],
                lambda held: progress(held - spare),
            )
        yield
    finally:
        reserved.let_go()
        with suppress(BulkmmError):
            pool.write(OVERCOMMIT, usual)
        note.unlink(missing_ok=True)


def _shares(root: Root, node: int, pages: int, jobs: int) -> Iterator[Share]:
    """Yield even shares for a node's processes, which run on its CPUs if it has any."""
    here = os.sched_getaffinity(0)
    cpus = sorted(cpus_of(root.read(f"{NODES}/node{node}/cpulist") or "") & here)
    count = min(jobs or len(cpus) or len(here), pages)
    for index in range(count):
        yield Share(pages // count + (index < pages % count), node, cpus)


def compact(root: Root, nodes: Mapping[int, int]) -> None:
    """Compact the memory of nodes, so that there are larger pieces."""
    for node in nodes:
        root.write(f"{NODES}/node{node}/compact", "1")


def _why(pool: Pool, node: int, missing: int) -> str:
    """Return why a node gave fewer pages than were wanted."""
    if missing <= 0:
        return ""
    free = meminfo(pool.root, node, "MemFree")
    if free < missing * pool.page:
        return f"{free // MIB} MiB are free there"
    return f"{free // MIB} MiB are free there, but in smaller pieces"
