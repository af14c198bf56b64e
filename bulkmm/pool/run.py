# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool``: its implementation."""

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bulkmm import size
from bulkmm.control.record import Record
from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError, Exit, UsageError
from bulkmm.pool import grow as growing
from bulkmm.pool import zero as zeroing
from bulkmm.pool.grow import Grown
from bulkmm.pool.pools import NODES, Pool, PoolRecord, Pools, named, nodes, sizes
from bulkmm.pool.zero import Zeroer

LARGEST = "1024T"
ALL = 100  # percent


@dataclass(frozen=True)
class NodeChange:
    """A node's change in pages, negative if they are given back; why there is less."""

    node: int
    wanted: int
    done: int
    why: str


@dataclass(frozen=True, kw_only=True)
class PoolChange(Record):
    """Printed by pool grow and pool shrink; dry_run: nothing was changed."""

    kind: Literal["pool-change"] = "pool-change"
    dry_run: bool
    page_bytes: int
    nodes: list[NodeChange]
    pool: PoolRecord


@dataclass(frozen=True)
class NodeZeroed:
    """A node's free pages, and those of them that are known to be zero."""

    page_bytes: int
    node: int
    free: int
    zeroed: int


@dataclass(frozen=True, kw_only=True)
class PoolZeroed(Record):
    """Printed by pool zero; zeroed_pages: by this run or others meanwhile."""

    kind: Literal["pool-zeroed"] = "pool-zeroed"
    seconds: float
    zeroed_pages: int
    nodes: list[NodeZeroed]


def _root(args: argparse.Namespace) -> Root:
    if not args.root.is_dir():
        raise UsageError(f"{args.root} is not a directory")
    return Root(args.root)


def show(args: argparse.Namespace) -> int:
    """Print all pools."""
    root = _root(args)
    found = [Pool(root, page).record() for page in sizes(root)]
    if not found:
        raise BulkmmError("this kernel has no pools of huge pages (hugetlb)")
    if args.json:
        print(Pools(pools=found).json())
    else:
        _table(found)
    return Exit.OK


def _table(found: list[PoolRecord]) -> None:
    from bulkmm.sheet import Sheet

    numbers = ("pages", "free", "reserved", "surplus", "overcommit", "zeroed")
    rows: list[tuple[str, ...]] = []
    for one in found:
        whole = (one.pages, one.free, one.reserved, one.surplus, one.overcommit)
        zeroed = sum(part.zeroed for part in one.nodes)
        rows.append((named(one.page_bytes), "all", *map(str, (*whole, zeroed))))
        for part in one.nodes:
            counts = (part.node, part.pages, part.free, part.surplus, part.zeroed)
            node, pages, free, surplus, zero = map(str, counts)
            rows.append(("", node, pages, free, "", surplus, "", zero))
    Sheet(("page", "node", *numbers), rows, numbers).print()


def grow(args: argparse.Namespace) -> int:
    """Add pages to a pool."""
    root = _root(args)
    pool, wanted = _wanted(root, args)
    jobs = _jobs(args.jobs)
    for node, pages in wanted.items():
        total = _total(root, node)
        if pages * pool.page > total:
            raise UsageError(
                f"--size {args.size}: {pages * pool.page // size.MIB} MiB for node "
                f"{node}, which has {total // size.MIB} MiB in all"
            )
    if args.dry_run:
        done = [Grown(node, pages, 0) for node, pages in wanted.items()]
    else:
        with growing.alone(root, pool) as note:
            if args.compact:
                growing.compact(root, wanted)
            done = _grow(pool, wanted, jobs, note)
    changes = [NodeChange(one.node, one.wanted, one.got, one.why) for one in done]
    return _told(args, pool, changes)


def _grow(pool: Pool, wanted: Mapping[int, int], jobs: int, note: Path) -> list[Grown]:
    """Grow it, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return growing.grow(pool, wanted, jobs, note, lambda _: None)
    from rich import progress as bars
    from rich.console import Console

    with bars.Progress(console=Console(stderr=True), transient=True) as bar:
        total = sum(wanted.values())
        task = bar.add_task(f"pages of {named(pool.page)}", total=total)
        return growing.grow(
            pool, wanted, jobs, note, lambda pages: bar.update(task, completed=pages)
        )


def shrink(args: argparse.Namespace) -> int:
    """Give free pages of a pool back."""
    root = _root(args)
    pool, wanted = _wanted(root, args)
    spare = pool.read("free_hugepages") - pool.read("resv_hugepages")
    if sum(wanted.values()) > spare:
        raise BulkmmError(
            f"--size {args.size} is {sum(wanted.values())} pages of "
            f"{named(pool.page)}: {max(spare, 0)} are neither used nor reserved"
        )
    for node, pages in wanted.items():
        free = pool.read("free_hugepages", node)
        if pages > free:
            raise BulkmmError(f"node {node}: {free} pages are free, not {pages}")
    before = {node: pool.persistent(node) for node in wanted}
    if not args.dry_run:
        with growing.alone(root, pool):
            for node, pages in wanted.items():
                pool.write("nr_hugepages", before[node] - pages, node)
    changes = []
    for node, pages in wanted.items():
        done = before[node] - pool.persistent(node)
        short = not args.dry_run and done != pages
        why = "others changed the pool meanwhile" if short else ""
        changes.append(NodeChange(node, -pages, -done, why))
    return _told(args, pool, changes)


def _told(args: argparse.Namespace, pool: Pool, changes: list[NodeChange]) -> int:
    """Print what was done; return whether it was all."""
    record = pool.record()
    if args.json:
        change = PoolChange(
            dry_run=args.dry_run,
            page_bytes=pool.page,
            nodes=changes,
            pool=record,
        )
        print(change.json())
    else:
        for one in changes:
            print(_line(one, pool.page, dry=args.dry_run))
    short = not args.dry_run and any(one.done != one.wanted for one in changes)
    return Exit.VERDICT if short else Exit.OK


def _line(one: NodeChange, page: int, *, dry: bool) -> str:
    if dry:
        return f"node {one.node}: would change by {one.wanted:+} pages of {named(page)}"
    less = f", {one.wanted:+} were asked for: {one.why}" if one.why else ""
    return f"node {one.node}: {one.done:+} pages of {named(page)}{less}"


def zero(args: argparse.Namespace) -> int:
    """Zero free pages ahead of use."""
    root = _root(args)
    pages = [_page(root, args.page)] if args.page else sizes(root)
    if args.node is not None:
        _check_node(root, args.node)
    margin, threads = _margin(args.margin), args.threads
    _check_threads(threads)
    zeroing.check(root)
    work = zeroing.Zeroer(zeroing.targets(root, pages, args.node, margin), args.watch)
    before, began = zeroing.counted(root), time.monotonic()
    try:
        _zero(work, threads)
    except KeyboardInterrupt as error:
        done = zeroing.counted(root) - before
        raise zeroing.InterruptedZeroingError(done) from error
    nodes = [
        NodeZeroed(one.pool.page, one.node, one.pages, one.zeroed)
        for one in work.targets
    ]
    seconds = time.monotonic() - began
    done = zeroing.counted(root) - before
    record = PoolZeroed(seconds=seconds, zeroed_pages=done, nodes=nodes)
    if args.json:
        print(record.json())
    else:
        print(f"{done} pages zeroed in {seconds:.1f} s")
        for one in filter(lambda one: one.free, nodes):
            print(
                f"node {one.node}: {one.zeroed} of {one.free} free pages of "
                f"{named(one.page_bytes)} are known to be zero"
            )
    left = any(one.zeroed < one.free for one in nodes)
    return Exit.VERDICT if left else Exit.OK


def _zero(work: Zeroer, threads: int) -> None:
    """Zero, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        work.run(threads, lambda: None)
        return
    from rich import progress as bars
    from rich.console import Console

    with bars.Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("free pages that are zero")

        def show() -> None:
            free = sum(one.pages for one in work.targets)
            zeroed = sum(one.zeroed for one in work.targets)
            bar.update(task, total=max(free, 1), completed=zeroed)

        work.run(threads, show)


def _margin(text: str) -> float:
    """Return a share given as in 10%."""
    number = text.removesuffix("%")
    if not number.isdecimal() or int(number) > ALL:
        raise UsageError(f"--margin {text}: give a percentage, 0% to 100%")
    return int(number) / ALL


def _check_threads(count: int) -> None:
    if not 1 <= count <= 1 << 10:
        raise UsageError(f"--threads {count}: give a number from 1 to 1024")


def _page(root: Root, text: str) -> int:
    """Return a page size that there are pools of."""
    page = size.parse_bytes(text, LARGEST)
    known = sizes(root)
    if page not in known:
        said = ", ".join(map(named, known)) or "none"
        raise UsageError(f"--page {text}: the kernel has pools of {said}")
    return page


def _check_node(root: Root, node: int) -> None:
    if node not in nodes(root):
        said = ", ".join(map(str, nodes(root)))
        raise UsageError(f"--node {node}: there are nodes {said}")


def _wanted(root: Root, args: argparse.Namespace) -> tuple[Pool, dict[int, int]]:
    """Return the pool and the pages per node; raise if that cannot be."""
    page = _page(root, args.page)
    wanted = size.parse_bytes(args.size, LARGEST)
    if not wanted or wanted % page:
        raise UsageError(f"--size {args.size} is not a multiple of {named(page)}")
    pool = Pool(root, page)
    parts = pool.nodes
    if args.node is not None:
        _check_node(root, args.node)
        if not pool.on(args.node):
            raise UsageError(f"--node {args.node} has no memory")
        parts = [args.node]
    pages = wanted // page
    each, more = divmod(pages, len(parts))
    shares = {node: each + (i < more) for i, node in enumerate(parts)}
    return pool, {node: count for node, count in shares.items() if count}


def _jobs(text: str) -> int:
    if text == "auto":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 10:
        raise UsageError(f"--jobs {text}: give a number, or auto")
    return int(text)


def _total(root: Root, node: int) -> int:
    for line in root.lines(f"{NODES}/node{node}/meminfo") or ():
        words = line.split()
        if words[2:3] == ["MemTotal:"]:
            return int(words[3]) * size.KIB
    return 0
