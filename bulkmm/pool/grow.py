# SPDX-License-Identifier: GPL-2.0-only
"""Grow a pool: reserve surplus pages in parallel, then make them persistent."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bulkmm.control.pools import NodeChange, Pool, cpus_of, read_meminfo
from bulkmm.pool.reserve import Reserved, Share
from bulkmm.pool.spread import even_shares, to_grow
from bulkmm.shell import files
from bulkmm.shell.ending import hold_signals
from bulkmm.shell.errors import BulkmmError, InterruptedWorkError
from bulkmm.shell.size import MIB

RUN = "/run/bulkmm"
OVERCOMMIT = "nr_overcommit_hugepages"
Progress = Callable[[int], None]  # pages so far


@contextmanager
def exclude_others(pool: Pool) -> Iterator[Path]:
    """Keep other runs out, and restore what a run that was killed had raised.

    Yield the file in which this run notes what it raises.
    """
    home = pool.root.at(RUN)
    note = home / "pool.json"
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / "pool.lock").open("w")
    except PermissionError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise BulkmmError(f"{reason}: run it as root") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BulkmmError("another bulkmm pool is changing a pool") from error
        # no reason to fail: a note that says nothing, or what the kernel had refused
        with suppress(OSError, AttributeError, TypeError, ValueError):
            _restore_pool(pool, **json.loads(note.read_text()))
        note.unlink(missing_ok=True)
        yield note


def _restore_pool(
    pool: Pool,
    page: int = 0,
    nr_overcommit_hugepages: tuple[int, int] | None = None,
    lent: Mapping[str, tuple[int, int]] | Mapping[int, tuple[int, int]] | None = None,
) -> None:
    """Undo what was noted of this pool, or of the one of another page size.

    nr_overcommit_hugepages: the number before, and what it was raised to. lent: by
    node, the pages before and how many more.
    """
    pool = replace(pool, page=page or pool.page)
    for node, (before, pages) in (lent or {}).items():
        part = replace(pool, node=int(node))
        # others may have shrunk it meanwhile
        if (now := part.count_persistent()) > before:
            part.set_persistent(max(before, now - pages))
    if nr_overcommit_hugepages is not None:
        usual, most = nr_overcommit_hugepages
        if pool.read(OVERCOMMIT) == most:  # others may have set it since
            pool.write(OVERCOMMIT, usual)


@contextmanager
def _keep_note(note: Path, pool: Pool, **raised: Any) -> Iterator[None]:  # noqa: ANN401
    """Restore what the block raises; the next run does if this one is killed."""
    earlier = files.read_json(note)
    files.write_file(
        note, json.dumps(earlier | raised | {"page": pool.page}), "the note"
    )
    try:
        yield
    finally:
        with suppress(OSError):
            _restore_pool(pool, **raised)
        if earlier:
            files.write_file(note, json.dumps(earlier), "the note")
        else:
            note.unlink(missing_ok=True)


def grow_pool(
    pool: Pool,
    wanted: Mapping[Pool, int],
    jobs: int,
    note: Path,
    progress: Progress,
    *,
    make_up: bool = True,
) -> list[NodeChange]:
    """Add pages to nodes, with so many processes on each (0: one per CPU).

    Others get what a node lacks, unless that is not wanted. An exception leaves the
    pool as it was, or as others have made it.
    """
    before: dict[Pool, int] = {}
    added: dict[int, tuple[int, int]] = {}  # as what is lent is noted
    surplus = pool.read("surplus_hugepages")
    reserved, new_pages = Reserved(pool.page), 0  # pages more than were free
    with hold_signals() as interruptible:
        try:
            with _allow_surplus(pool, wanted, note) as spare, reserved, interruptible():
                if spare is not None:
                    for new_pages in _reserve_pages(reserved, spare, wanted, jobs):
                        progress(new_pages)
                # others may have changed the pool while pages were reserved
                before |= {part: part.count_persistent() for part in wanted}
                added |= {part.node: (before[part], n) for part, n in wanted.items()}
                _make_persistent(pool, wanted, before, surplus)
                if make_up:
                    _make_up(wanted, before, added)
            with interruptible():  # by what came after that
                pass
        except BaseException as error:
            _take_back(pool, added)
            if isinstance(error, KeyboardInterrupt):
                text = f"interrupted with {new_pages} of {sum(wanted.values())} pages"
                raise InterruptedWorkError(f"{text}: the pool is as it was") from error
            raise
    return [_describe_gain(part, n, before[part]) for part, n in wanted.items()]


def _reserve_pages(
    reserved: Reserved, spare: int, wanted: Mapping[Pool, int], jobs: int
) -> Iterator[int]:
    """Reserve those that are free, then new ones; yield how many of these so far."""
    first = [Share(spare)] if spare else []
    for shares in (first, _divide_evenly(wanted, jobs)):
        for pages in reserved.take(shares):
            yield max(pages - spare, 0)


def _make_persistent(
    pool: Pool, wanted: Mapping[Pool, int], before: Mapping[Pool, int], surplus: int
) -> None:
    """Have each node keep its pages; there were so many surplus ones before."""
    # 6.1 would add what is surplus on other nodes: none of ours first
    if (new_surplus := pool.read("surplus_hugepages") - surplus) > 0:
        pool.set_persistent(pool.count_persistent() + new_surplus)
    for part, pages in wanted.items():
        part.set_persistent(before[part] + pages)


def _make_up(
    wanted: Mapping[Pool, int],
    before: Mapping[Pool, int],
    added: dict[int, tuple[int, int]],
) -> None:
    """Let other nodes have what some lack."""
    goal = {part: before[part] + pages for part, pages in wanted.items()}
    takers = [part for part in wanted if part.count_persistent() >= goal[part]]
    for _ in wanted:  # each time all is had, or a node takes no more
        lack = sum(goal.values()) - sum(part.count_persistent() for part in wanted)
        if lack <= 0:
            break
        for part, pages in even_shares(lack, dict.fromkeys(takers, lack)).items():
            most = part.count_persistent() + pages
            if pages:
                added[part.node] = before[part], most - before[part]
                part.set_persistent(most)
            if part.count_persistent() < most:
                takers.remove(part)


def _take_back(pool: Pool, added: Mapping[int, tuple[int, int]]) -> None:
    """Undo what nodes were given."""
    for node, change in added.items():
        with suppress(OSError):  # its memory may have gone
            _restore_pool(pool, lent={node: change})


def _describe_gain(part: Pool, pages: int, before: int) -> NodeChange:
    """Return what a node has gained, of so many pages that it was to gain."""
    gain = part.count_persistent() - before
    return NodeChange(part.node, pages, gain, _explain_shortage(part, pages - gain))


@contextmanager
def borrow_pages(pool: Pool, pages: int) -> Iterator[None]:
    """Have so many pages more, or as many as are to be had, while the block runs."""
    wanted = to_grow(pool, pages)
    with hold_signals() as interruptible, exclude_others(pool) as note:
        before = {part.node: (part.count_persistent(), n) for part, n in wanted.items()}
        with _keep_note(note, pool, lent=before):
            # the note has what each node is to give back
            grow_pool(pool, wanted, 0, note, lambda _: None, make_up=False)
            with interruptible():
                yield


@contextmanager
def _allow_surplus(
    pool: Pool, wanted: Mapping[Pool, int], note: Path
) -> Iterator[int | None]:
    """Allow as many surplus pages as are wanted; yield how many are free now.

    Reserving takes these first. None: 6.12 refuses surplus pages of 1 GiB
    (__nr_hugepages_store_common() and nr_overcommit_hugepages_store(), mm/hugetlb.c),
    and writing nr_hugepages does all.
    """
    usual = pool.read(OVERCOMMIT)
    spare = pool.count_spare()
    most = pool.read("surplus_hugepages") + sum(wanted.values()) + spare
    if usual >= most:
        yield spare
        return
    with _keep_note(note, pool, nr_overcommit_hugepages=(usual, most)):
        with suppress(OSError):
            pool.write(OVERCOMMIT, most)
        yield spare if pool.read(OVERCOMMIT) >= most else None


def _divide_evenly(wanted: Mapping[Pool, int], jobs: int) -> Iterator[Share]:
    """Yield even shares for each node's processes, on its CPUs if it has any."""
    affinity = os.sched_getaffinity(0)
    for part, pages in wanted.items():
        node_cpus = sorted(cpus_of(part.root, part.node) & affinity)
        count = min(jobs or len(node_cpus) or len(affinity), pages)
        for index in range(count):
            yield Share(pages // count + (index < pages % count), part.node, node_cpus)


def _explain_shortage(part: Pool, missing: int) -> str:
    """Return why a node gave fewer pages than were wanted."""
    if missing <= 0:
        return ""
    free = read_meminfo(part.root, part.node, "MemFree")
    if free < missing * part.page:
        return f"{free // MIB} MiB are free there"
    return f"{free // MIB} MiB are free there, but in smaller pieces"
