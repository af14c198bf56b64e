# SPDX-License-Identifier: GPL-2.0-only
"""Which node gives or gets how many pages: even shares, unless a node has no room.

As the kernel does, which asks one node after another and passes over one that has
none (alloc_pool_huge_folio(), remove_pool_hugetlb_folio(), mm/hugetlb.c). Nodes
without CPUs count too.
"""

import mmap
from collections.abc import Hashable, Mapping
from typing import TypeVar

from bulkmm.control.pools import NODES, Pool, outside_cpuset, parse_list, read_meminfo
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.size import name_size

# in meminfo: memory that is free, or reclaimed first
AVAILABLE = ("MemFree", "Active(file)", "Inactive(file)")
MOVABLE = "/proc/sys/vm/movable_gigantic_pages"
ORDERS = 11  # in the allocator's lists, if the kernel does not tell
T = TypeVar("T", bound=Hashable)


def even_shares(pages: int, rooms: Mapping[T, int]) -> dict[T, int]:
    """Return even shares; what has no room for its share leaves it to the others."""
    shares = dict.fromkeys(rooms, 0)
    # the smallest rooms first; of equal ones, the first node gets what is left over
    order = sorted(enumerate(rooms), key=lambda entry: (rooms[entry[1]], -entry[0]))
    for index, (_, part) in enumerate(order):
        shares[part] = min(pages // (len(rooms) - index), rooms[part])
        pages -= shares[part]
    return shares


def to_grow(pool: Pool, pages: int, node: int | None = None) -> dict[Pool, int]:
    """Return the pages that each node is to get; fewer if the machine has no more.

    First where memory is available, then where some may become so.
    """
    cpuset_parts = [part for part in _node_parts(pool, node) if not _is_outside(part)]
    if not cpuset_parts:
        where = "every node" if node is None else f"node {node}"
        raise BulkmmError(
            f"{where} is outside of this command's cpuset: the kernel takes no pages "
            f"of {name_size(pool.page)} there; run it in a cpuset that has the node"
        )
    parts = [part for part in cpuset_parts if not _only_movable(part)]
    if not parts:
        where = "all memory" if node is None else f"node {node}: all its memory"
        has_sysctl = pool.root.read(MOVABLE) is not None
        remedy = "bring some online by online_kernel"
        if has_sysctl:
            remedy = "sysctl vm.movable_gigantic_pages=1 allows it"
        raise BulkmmError(
            f"{where} was brought online as movable, and the kernel takes no pages of "
            f"{name_size(pool.page)} from that: {remedy}"
        )
    available = {part: _count_room(part, *AVAILABLE) for part in parts}
    shares = even_shares(pages, available)
    rooms = {
        part: max(_count_room(part, "MemTotal") - shares[part], 0) for part in parts
    }
    extra = even_shares(pages - sum(shares.values()), rooms)
    return _with_pages({part: shares[part] + extra[part] for part in parts})


def to_shrink(pool: Pool, pages: int, node: int | None = None) -> dict[Pool, int]:
    """Return the pages that each node is to give back; fewer if no more are free.

    Of one node, as many as are asked for.
    """
    parts = _node_parts(pool, node)
    if node is not None:
        return dict.fromkeys(parts, pages)
    return _with_pages(even_shares(pages, {part: part.count_free() for part in parts}))


def _node_parts(pool: Pool, node: int | None) -> list[Pool]:
    if parts := pool.list_parts(node):
        return parts
    raise BulkmmError(f"the kernel has no pool of {name_size(pool.page)} pages")


def _with_pages(shares: Mapping[Pool, int]) -> dict[Pool, int]:
    return {part: pages for part, pages in shares.items() if pages}


def _count_room(part: Pool, *names: str) -> int:
    """Return how many pages some lines of a node's meminfo make."""
    return read_meminfo(part.root, part.node, *names) // part.page


def _is_outside(part: Pool) -> bool:
    """Return whether the kernel takes no such page from a node, for us.

    Only the allocator heeds cpusets (prepare_alloc_pages(), mm/page_alloc.c).
    """
    return outside_cpuset(part.root, part.node) and not _is_gigantic(part)


def _only_movable(part: Pool) -> bool:
    """Return whether the kernel takes no such page from any memory of a node.

    It takes none that is larger than the allocator's blocks from ZONE_MOVABLE
    (hugepage_movable_supported(), include/linux/hugetlb.h), unless it is told to.
    """
    normal = part.root.read(f"{NODES}/has_normal_memory")
    if normal is None or part.root.read(MOVABLE) == "1":
        return False
    return _is_gigantic(part) and part.node not in parse_list(normal)


def _is_gigantic(part: Pool) -> bool:
    """Return whether a page is larger than the allocator's blocks."""
    # "Node N, zone NAME" and the blocks of each order
    rows = map(str.split, part.root.lines("/proc/buddyinfo"))
    orders = max((len(row) - 4 for row in rows), default=ORDERS)
    return part.page > mmap.PAGESIZE << (orders - 1)
