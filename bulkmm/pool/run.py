# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool``: its implementation."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bulkmm import bar, size
from bulkmm.control.record import Record
from bulkmm.control.root import Root
from bulkmm.ending import undisturbed
from bulkmm.errors import BulkmmError, Exit, InterruptedWorkError, UsageError
from bulkmm.pool import grow as growing
from bulkmm.pool import spread
from bulkmm.pool import zero as zeroing
from bulkmm.pool.pools import (
    NodeChange,
    Pool,
    PoolRecord,
    Pools,
    compact,
    nodes,
    outside_cpuset,
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
    """A node's free pages, and how many of them at most are known to be zero.

    tried_all: every free page has been tried.
    """

    page_bytes: int
    node: int
    free: int
    zeroed: int
    tried_all: bool


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

    numbers = ("pages", "free", "reserved", "surplus", "overcommit", "zeroed ≤")
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
    pool, pages = _wanted(args)
    wanted = spread.to_grow(pool, pages, args.node)
    if sum(wanted.values()) < pages:
        total = sum(wanted.values()) * pool.page
        nodes_can = "the nodes" if args.node is None else f"node {args.node}"
        asked = f"--size {args.size}: {pages * pool.page // size.MIB} MiB"
        limit = f"{total // size.MIB} MiB at most"
        raise UsageError(f"{asked}; {nodes_can} can give {limit}")

    def grown(note: Path) -> list[NodeChange]:
        for part in wanted if args.compact else ():
            compact(pool.root, part.node)
        total = sum(wanted.values())
        with bar.shown(f"pages of {size.named(pool.page)}") as show:
            return growing.grow(
                pool, wanted, args.jobs, note, lambda pages: show(pages, total)
            )

    return _change(args, pool, wanted, grown)


def shrink(args: argparse.Namespace) -> int:
    """Give free pages of a pool back."""
    pool, pages = _wanted(args)
    wanted = spread.to_shrink(pool, pages, args.node)
    _need_free(wanted, pool, pages, args.size)

    def shrunk(_note: Path) -> list[NodeChange]:
        # what a killed run had lent has gone
        _need_free(wanted, pool, pages, args.size)
        before = {part: part.persistent() for part in wanted}
        with undisturbed():
            for part, count in wanted.items():
                part.set_persistent(before[part] - count)
        changes = []
        for part, count in wanted.items():
            done = before[part] - part.persistent()
            why = "others changed the pool meanwhile" if done != count else ""
            changes.append(NodeChange(part.node, -count, -done, why))
        return changes

    return _change(args, pool, {part: -pages for part, pages in wanted.items()}, shrunk)


def _need_free(wanted: dict[Pool, int], pool: Pool, pages: int, said: str) -> None:
    spare = pool.spare()
    if pages > spare:
        raise BulkmmError(
            f"--size {said} is {pages} pages of "
            f"{size.named(pool.page)}: {spare} are neither used nor reserved"
        )
    for part, count in wanted.items():
        if count > part.free():
            raise BulkmmError(
                f"node {part.node}: {part.free()} pages are free, not {count}"
            )


def _change(
    args: argparse.Namespace,
    pool: Pool,
    wanted: dict[Pool, int],
    change: Callable[[Path], list[NodeChange]],
) -> int:
    """Change a pool, or tell what would be; return whether it was all."""
    began = time.monotonic()
    if args.dry_run:
        changes = [NodeChange(part.node, pages, 0) for part, pages in wanted.items()]
    else:
        with growing.alone(pool) as note:
            changes = change(note)
    said = [_line(one, pool.page, dry=args.dry_run) for one in changes]
    PoolChange(
        dry_run=args.dry_run,
        seconds=time.monotonic() - began,
        page_bytes=pool.page,
        nodes=changes,
        pool=pool.record(),
    ).tell(said, as_json=args.json)
    # what a node lacks, others may have given
    whole = sum(one.done for one in changes) == sum(wanted.values())
    return Exit.OK if whole or args.dry_run else Exit.VERDICT


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
    parts = [part for page in pages for part in Pool(root, page).parts(args.node)]
    work = zeroing.Zeroer(parts, margin, args.watch)
    before, began = zeroing.counted(root), time.monotonic()
    try:
        with bar.shown("free pages that are zero") as show:
            work.run(args.threads, show)
    except KeyboardInterrupt as error:
        done = zeroing.counted(root) - before
        after = f"interrupted after {done} pages, which are known to be zero"
        raise InterruptedWorkError(after) from error
    nodes = [
        NodeZeroed(
            part.page, part.node, part.free(), part.zeroed(), part in work.tried_all
        )
        for part in parts
    ]
    seconds = time.monotonic() - began
    done = zeroing.counted(root) - before
    said = [f"{done} pages zeroed in {seconds:.1f} s"]
    said += [_state(root, node, margin) for node in nodes if node.free]
    record = PoolZeroed(seconds=seconds, zeroed_pages=done, nodes=nodes)
    record.tell(said, as_json=args.json)
    left = any(node.free and not node.tried_all for node in nodes)
    return Exit.VERDICT if left else Exit.OK


def _state(root: Root, node: NodeZeroed, margin: float) -> str:
    pages = f"{node.free} free pages of {size.named(node.page_bytes)}"
    if node.tried_all:
        tried = f"all {pages} were tried"
        return f"node {node.node}: {tried}; those that can be used are zero"
    why = _why_left(root, node, margin)
    return f"node {node.node}: {pages}; some are left because {why}"


def _why_left(root: Root, node: NodeZeroed, margin: float) -> str:
    """Return why no page was to be had (fill_allowed(), module/prezero_fill.c)."""
    if outside_cpuset(root, node.node):
        return "this command's cpuset lacks the node"
    pool = Pool(root, node.page_bytes)
    part = replace(pool, node=node.node)
    if part.read("surplus_hugepages"):
        return "the node has surplus pages: what is freed there leaves the pool"
    spare = node.free - pool.read("resv_hugepages")
    if 0 < spare <= zeroing.kept(part, margin):
        return "the margin keeps them free"
    return "others need them, or they are broken or going offline"


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


def _wanted(args: argparse.Namespace) -> tuple[Pool, int]:
    """Return the pool and the pages; raise if that cannot be."""
    root = Root.given(args.root)
    pool = Pool(root, _page(root, args.page))
    wanted = size.parse_bytes(args.size, LARGEST)
    if not wanted or wanted % pool.page:
        said = size.named(pool.page)
        raise UsageError(f"--size {args.size} is not a multiple of {said}")
    if args.node is not None:
        _check_node(root, args.node)
        if not pool.parts(args.node):
            raise UsageError(f"--node {args.node} has no memory")
    return pool, wanted // pool.page
