# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool``: its implementation."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bulkmm.control.format import format_size
from bulkmm.control.json_output import Record
from bulkmm.control.pools import (
    NodeChange,
    Pool,
    PoolRecord,
    Pools,
    compact_node,
    list_nodes,
    list_page_sizes,
    outside_cpuset,
)
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool import grow as growing
from bulkmm.pool import spread
from bulkmm.pool import zero as zeroing
from bulkmm.shell import bar, size
from bulkmm.shell.ending import hold_signals
from bulkmm.shell.errors import BulkmmError, Exit, InterruptedWorkError, UsageError

LARGEST = "1024T"
MAX_PERCENT = 100


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


def show_pools(args: argparse.Namespace) -> int:
    """Print all pools."""
    root = SystemFiles.from_argument(args.root)
    pools = [Pool(root, page).make_record() for page in list_page_sizes(root)]
    if not pools:
        raise BulkmmError("this kernel has no pools of huge pages (hugetlb)")
    if args.json:
        print(Pools(pools=pools).to_json())
    else:
        _pool_table(pools)
    return Exit.OK


def _pool_table(pools: list[PoolRecord]) -> None:
    from bulkmm.results.table import Table

    numbers = ("pages", "free", "reserved", "surplus", "overcommit", "zeroed ≤")
    rows: list[tuple[str, ...]] = []
    for pool in pools:
        whole = (pool.pages, pool.free, pool.reserved, pool.surplus, pool.overcommit)
        zeroed = sum(part.zeroed for part in pool.nodes)
        rows.append(
            (size.name_size(pool.page_bytes), "all", *map(str, (*whole, zeroed)))
        )
        for part in pool.nodes:
            counts = (part.node, part.pages, part.free, part.surplus, part.zeroed)
            node, pages, free, surplus, zero = map(str, counts)
            rows.append(("", node, pages, free, "", surplus, "", zero))
    Table(("page", "node", *numbers), rows, numbers, keys=2).print()


def grow_pool(args: argparse.Namespace) -> int:
    """Add pages to a pool."""
    pool, pages = _parse_request(args)
    wanted = spread.to_grow(pool, pages, args.node)
    if sum(wanted.values()) < pages:
        total = format_size(sum(wanted.values()) * pool.page)
        nodes_can = "the nodes" if args.node is None else f"node {args.node}"
        raise UsageError(f"--size {args.size}: {nodes_can} can give {total} at most")

    def grown(note: Path) -> list[NodeChange]:
        for part in wanted if args.compact else ():
            compact_node(pool.root, part.node)
        total = sum(wanted.values())
        with bar.show_bar(f"pages of {size.name_size(pool.page)}") as show:
            return growing.grow_pool(
                pool, wanted, args.jobs, note, lambda pages: show(pages, total)
            )

    return _change_pool(args, pool, wanted, grown)


def shrink_pool(args: argparse.Namespace) -> int:
    """Give free pages of a pool back."""
    pool, pages = _parse_request(args)
    wanted = spread.to_shrink(pool, pages, args.node)
    _need_free(wanted, pool, pages, args.size)

    def shrunk(_note: Path) -> list[NodeChange]:
        # what a killed run had lent has gone
        _need_free(wanted, pool, pages, args.size)
        before = {part: part.count_persistent() for part in wanted}
        with hold_signals():
            for part, count in wanted.items():
                part.set_persistent(before[part] - count)
        changes = []
        for part, count in wanted.items():
            reduction = before[part] - part.count_persistent()
            why = "others changed the pool meanwhile" if reduction != count else ""
            changes.append(NodeChange(part.node, -count, -reduction, why))
        return changes

    return _change_pool(
        args, pool, {part: -pages for part, pages in wanted.items()}, shrunk
    )


def _need_free(wanted: dict[Pool, int], pool: Pool, pages: int, size_text: str) -> None:
    spare = pool.count_spare()
    if pages > spare:
        raise BulkmmError(
            f"--size {size_text} is {pages} pages of {size.name_size(pool.page)}: "
            f"{spare} are free and not reserved"
        )
    for part, count in wanted.items():
        if count > part.count_free():
            raise BulkmmError(
                f"node {part.node}: {part.count_free()} pages are free, not {count}"
            )


def _change_pool(
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
        with growing.exclude_others(pool) as note:
            changes = change(note)
    lines = [
        _describe_change(node_change, pool.page, dry=args.dry_run)
        for node_change in changes
    ]
    PoolChange(
        dry_run=args.dry_run,
        seconds=time.monotonic() - began,
        page_bytes=pool.page,
        nodes=changes,
        pool=pool.make_record(),
    ).print_output(lines, as_json=args.json)
    # what a node lacks, others may have given
    whole = sum(node_change.done for node_change in changes) == sum(wanted.values())
    return Exit.OK if whole or args.dry_run else Exit.VERDICT


def _describe_change(change: NodeChange, page: int, *, dry: bool) -> str:
    unit = f"pages of {size.name_size(page)}"
    if dry:
        return f"node {change.node}: would change by {change.wanted:+} {unit}"
    less = f", {change.wanted:+} were asked for: {change.why}" if change.why else ""
    return f"node {change.node}: {change.done:+} {unit}{less}"


def zero_pages(args: argparse.Namespace) -> int:
    """Zero free pages ahead of use."""
    root = SystemFiles.from_argument(args.root)
    pages = [_parse_page(root, args.page)] if args.page else list_page_sizes(root)
    if args.node is not None:
        _check_node(root, args.node)
    margin = _parse_margin(args.margin)
    zeroing.need_prezero(root)
    parts = [part for page in pages for part in Pool(root, page).list_parts(args.node)]
    work = zeroing.Zeroer(parts, margin, args.watch)
    before, began = zeroing.count_zeroed(root), time.monotonic()
    try:
        with bar.show_bar("free pages that are zero") as show:
            work.run(args.threads, show)
    except KeyboardInterrupt as error:
        zeroed_pages = zeroing.count_zeroed(root) - before
        after = f"interrupted after {zeroed_pages} pages, which are known to be zero"
        raise InterruptedWorkError(after) from error
    nodes = [
        NodeZeroed(
            part.page,
            part.node,
            part.count_free(),
            part.count_zeroed(),
            part in work.tried_all,
        )
        for part in parts
    ]
    seconds = time.monotonic() - began
    zeroed_pages = zeroing.count_zeroed(root) - before
    lines = [f"{zeroed_pages} pages zeroed in {seconds:.1f} s"]
    lines += [_read_state(root, node, margin) for node in nodes if node.free]
    record = PoolZeroed(seconds=seconds, zeroed_pages=zeroed_pages, nodes=nodes)
    record.print_output(lines, as_json=args.json)
    incomplete = any(node.free and not node.tried_all for node in nodes)
    return Exit.VERDICT if incomplete else Exit.OK


def _read_state(root: SystemFiles, node: NodeZeroed, margin: float) -> str:
    pages = f"{node.free} free pages of {size.name_size(node.page_bytes)}"
    if node.tried_all:
        tried = f"all {pages} were tried"
        return f"node {node.node}: {tried}; those that can be used are zero"
    why = _why_left(root, node, margin)
    return f"node {node.node}: {pages}; some are left because {why}"


def _why_left(root: SystemFiles, node: NodeZeroed, margin: float) -> str:
    """Return why no page was to be had (fill_allowed(), module/prezero_fill.c)."""
    if outside_cpuset(root, node.node):
        return "this command's cpuset lacks the node"
    pool = Pool(root, node.page_bytes)
    part = replace(pool, node=node.node)
    if part.read("surplus_hugepages"):
        return "the node has surplus pages: what is freed there leaves the pool"
    spare = node.free - pool.read("resv_hugepages")
    if 0 < spare <= zeroing.count_margin(part, margin):
        return "the margin keeps them free"
    return "others need them, or they are broken or going offline"


def _parse_margin(text: str) -> float:
    """Return a share given as in 10%."""
    number = text.removesuffix("%")
    if not number.isdecimal() or int(number) > MAX_PERCENT:
        raise UsageError(f"--margin {text}: give a percentage, 0% to 100%")
    return int(number) / MAX_PERCENT


def _parse_page(root: SystemFiles, text: str) -> int:
    """Return a page size that there are pools of."""
    page = size.parse_bytes(text, LARGEST)
    page_sizes = list_page_sizes(root)
    if page not in page_sizes:
        names = ", ".join(map(size.name_size, page_sizes)) or "none"
        raise UsageError(f"--page {text}: the kernel has pools of {names}")
    return page


def _check_node(root: SystemFiles, node: int) -> None:
    if node not in list_nodes(root):
        numbers = ", ".join(map(str, list_nodes(root)))
        raise UsageError(f"--node {node}: there are nodes {numbers}")


def _parse_request(args: argparse.Namespace) -> tuple[Pool, int]:
    """Return the pool and the pages; raise if that cannot be."""
    root = SystemFiles.from_argument(args.root)
    pool = Pool(root, _parse_page(root, args.page))
    wanted = size.parse_bytes(args.size, LARGEST)
    if not wanted or wanted % pool.page:
        unit = size.name_size(pool.page)
        raise UsageError(f"--size {args.size} is not a multiple of {unit}")
    if args.node is not None:
        _check_node(root, args.node)
        if not pool.list_parts(args.node):
            raise UsageError(f"--node {args.node} has no memory")
    return pool, wanted // pool.page
