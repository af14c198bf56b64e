# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool``: its implementation."""

import argparse
import time
from dataclasses import dataclass
from typing import Literal

from bulkmm import bar, size
from bulkmm.control.record import Record
from bulkmm.control.root import Root
from bulkmm.ending import undisturbed
from bulkmm.errors import BulkmmError, Exit, InterruptedWorkError, UsageError
from bulkmm.pool import grow as growing
from bulkmm.pool import zero as zeroing
from bulkmm.pool.pools import (
    NODES,
    NodeChange,
    Pool,
    PoolRecord,
    Pools,
    meminfo,
    nodes,
    sizes,
)

LARGEST = "1024T"
ALL = 100  # percent


@dataclass(frozen=True, kw_only=True)
class PoolChange(Record):
    """Printed by pool grow and pool shrink; dry_run: nothing was changed."""

    kind: Literal["pool-change"] = "pool-change"
    dry_run: bool
    seconds: float
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


def show(args: argparse.Namespace) -> int:
    """Print all pools."""
    root = Root.given(args.root)
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
        rows.append((size.named(one.page_bytes), "all", *map(str, (*whole, zeroed))))
        for part in one.nodes:
            counts = (part.node, part.pages, part.free, part.surplus, part.zeroed)
            node, pages, free, surplus, zero = map(str, counts)
            rows.append(("", node, pages, free, "", surplus, "", zero))
    Sheet(("page", "node", *numbers), rows, numbers).print()


def grow(args: argparse.Namespace) -> int:
    """Add pages to a pool."""
    root = Root.given(args.root)
    pool, wanted = _wanted(root, args)
    began = time.monotonic()
    for node, pages in wanted.items():
        total = meminfo(root, node, "MemTotal")
        if pages * pool.page > total:
            raise UsageError(
                f"--size {args.size}: {pages * pool.page // size.MIB} MiB for node "
                f"{node}, which has {total // size.MIB} MiB in all"
            )
    if args.dry_run:
        changes = [NodeChange(node, pages, 0) for node, pages in wanted.items()]
    else:
        with growing.alone(root, pool) as note:
            for node in wanted if args.compact else ():
                root.write(f"{NODES}/node{node}/compact", "1")
            total = sum(wanted.values())
            with bar.shown(f"pages of {size.named(pool.page)}") as show:
                changes = growing.grow(
                    pool, wanted, args.jobs, note, lambda pages: show(pages, total)
                )
    return _told(args, pool, changes, began)


def shrink(args: argparse.Namespace) -> int:
    """Give free pages of a pool back."""
    root = Root.given(args.root)
    pool, wanted = _wanted(root, args)
    _need_free(pool, wanted, args.size)
    began = time.monotonic()
    if args.dry_run:
        changes = [NodeChange(node, -pages, 0) for node, pages in wanted.items()]
    else:
        with growing.alone(root, pool):
            _need_free(pool, wanted, args.size)  # what a killed run had lent has gone
            changes = _shrunk(pool, wanted)
    return _told(args, pool, changes, began)


def _need_free(pool: Pool, wanted: dict[int, int], said: str) -> None:
    spare = pool.spare()
    if sum(wanted.values()) > spare:
        raise BulkmmError(
            f"--size {said} is {sum(wanted.values())} pages of "
            f"{size.named(pool.page)}: {spare} are neither used nor reserved"
        )
    for node, pages in wanted.items():
        free = pool.read("free_hugepages", node)
        if pages > free:
            raise BulkmmError(f"node {node}: {free} pages are free, not {pages}")


def _shrunk(pool: Pool, wanted: dict[int, int]) -> list[NodeChange]:
    before = {node: pool.persistent(node) for node in wanted}
    with undisturbed():
        for node, pages in wanted.items():
            pool.write("nr_hugepages", before[node] - pages, node)
    changes = []
    for node, pages in wanted.items():
        done = before[node] - pool.persistent(node)
        why = "others changed the pool meanwhile" if done != pages else ""
        changes.append(NodeChange(node, -pages, -done, why))
    return changes


def _told(
    args: argparse.Namespace, pool: Pool, changes: list[NodeChange], began: float
) -> int:
    """Print what was done; return whether it was all."""
    said = [_line(one, pool.page, dry=args.dry_run) for one in changes]
    PoolChange(
        dry_run=args.dry_run,
        seconds=time.monotonic() - began,
        page_bytes=pool.page,
        nodes=changes,
        pool=pool.record(),
    ).tell(said, as_json=args.json)
    short = not args.dry_run and any(one.done != one.wanted for one in changes)
    return Exit.VERDICT if short else Exit.OK


def _line(one: NodeChange, page: int, *, dry: bool) -> str:
    said = f"pages of {size.named(page)}"
    if dry:
        return f"node {one.node}: would change by {one.wanted:+} {said}"
    less = f", {one.wanted:+} were asked for: {one.why}" if one.why else ""
    return f"node {one.node}: {one.done:+} {said}{less}"


def zero(args: argparse.Namespace) -> int:
    """Zero free pages ahead of use."""
    root = Root.given(args.root)
    pages = [_page(root, args.page)] if args.page else sizes(root)
    if args.node is not None:
        _check_node(root, args.node)
    margin = _margin(args.margin)
    zeroing.check(root)
    work = zeroing.Zeroer(zeroing.targets(root, pages, args.node, margin), args.watch)
    before, began = zeroing.counted(root), time.monotonic()
    try:
        with bar.shown("free pages that are zero") as show:
            work.run(args.threads, show)
    except KeyboardInterrupt as error:
        done = zeroing.counted(root) - before
        after = f"interrupted after {done} pages, which are known to be zero"
        raise InterruptedWorkError(after) from error
    nodes = [
        NodeZeroed(one.pool.page, one.node, one.pages, one.zeroed)
        for one in work.targets
    ]
    seconds = time.monotonic() - began
    done = zeroing.counted(root) - before
    said = [f"{done} pages zeroed in {seconds:.1f} s"]
    said += [
        f"node {one.node}: {one.zeroed} of {one.free} free pages of "
        f"{size.named(one.page_bytes)} are known to be zero"
        for one in nodes
        if one.free
    ]
    record = PoolZeroed(seconds=seconds, zeroed_pages=done, nodes=nodes)
    record.tell(said, as_json=args.json)
    left = any(one.zeroed < one.free for one in nodes)
    return Exit.VERDICT if left else Exit.OK


def _margin(text: str) -> float:
    """Return a share given as in 10%."""
    number = text.removesuffix("%")
    if not number.isdecimal() or int(number) > ALL:
        raise UsageError(f"--margin {text}: give a percentage, 0% to 100%")
    return int(number) / ALL


def _page(root: Root, text: str) -> int:
    """Return a page size that there are pools of."""
    page = size.parse_bytes(text, LARGEST)
    known = sizes(root)
    if page not in known:
        said = ", ".join(map(size.named, known)) or "none"
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
        raise UsageError(f"--size {args.size} is not a multiple of {size.named(page)}")
    pool = Pool(root, page)
    if args.node is not None:
        _check_node(root, args.node)
        if not pool.on(args.node):
            raise UsageError(f"--node {args.node} has no memory")
    return pool, pool.evenly(wanted // page, args.node)
