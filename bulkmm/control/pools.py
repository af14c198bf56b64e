# SPDX-License-Identifier: GPL-2.0-only
"""The pools of huge pages as sysfs has them: by page size, in all and by node.

Names are those of Documentation/admin-guide/mm/hugetlbpage.rst; reservations and
overcommit are known for a size as a whole only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Self

from bulkmm.control.json_output import Record
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.size import KIB

KNOWN_PAGES = "/sys/kernel/bulkmm/prezero/known"
SIZES, NODES = "/sys/kernel/mm/hugepages", "/sys/devices/system/node"
SIZE = re.compile(r"hugepages-(\d+)kB")
NODE = re.compile(r"node(\d+)")
CPUSET = re.compile(r"^Mems_allowed_list:\s*(\S+)", re.MULTILINE)
TOTAL = "nr_hugepages"
ALL_NODES = -1  # as the kernel has it (NUMA_NO_NODE)


@dataclass(frozen=True)
class NodeRecord:
    """A node's part of a pool, in pages; surplus pages are part of pages.

    zeroed: of the free ones, at most so many are known to path prezero to be zero.
    """

    node: int
    pages: int
    free: int
    surplus: int
    zeroed: int


@dataclass(frozen=True)
class PoolRecord:
    """A pool, in pages; overcommit: the surplus that may be allocated on demand."""

    page_bytes: int
    pages: int
    free: int
    reserved: int
    surplus: int
    overcommit: int
    nodes: list[NodeRecord]


@dataclass(frozen=True)
class NodeChange:
    """A node's change in pages, negative if they are given back; why there is less."""

    node: int
    wanted: int
    done: int
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Pools(Record):
    """Printed by pool."""

    kind: Literal["pool"] = "pool"
    pools: list[PoolRecord]


@dataclass(frozen=True)
class Pool:
    """The pool of one page size, or a node's part of it."""

    root: SystemFiles
    page: int
    node: int = ALL_NODES

    def file(self, name: str) -> str:
        """Return the path of one of its files."""
        whole = self.node == ALL_NODES or not has_nodes(self.root)
        home = SIZES if whole else f"{NODES}/node{self.node}/hugepages"
        return f"{home}/hugepages-{self.page // KIB}kB/{name}"

    def read(self, name: str) -> int:
        """Return a count of pages."""
        return int(self.root.read(self.file(name)) or 0)

    def write(self, name: str, value: int) -> None:
        """Write a count of pages; the kernel may settle for less."""
        self.root.write(self.file(name), str(value))

    def list_parts(self, node: int | None = None) -> list[Self]:
        """Return the parts of the nodes that have memory, or of one if it has any."""
        wanted = list_nodes(self.root) if node is None else [node]
        # sysfs has a pool of every node (hugetlb_register_all_nodes(), mm/hugetlb.c)
        memory_nodes = [
            number for number in wanted if read_meminfo(self.root, number, "MemTotal")
        ]
        parts = [replace(self, node=number) for number in memory_nodes]
        return [part for part in parts if self.root.read(part.file(TOTAL)) is not None]

    def count_free(self) -> int:
        """Return the pages that are not used; some may be reserved."""
        return self.read("free_hugepages")

    def count_spare(self) -> int:
        """Return the pages that are neither used nor reserved."""
        return max(self.count_free() - self.read("resv_hugepages"), 0)

    def count_persistent(self) -> int:
        """Return the pages that stay: what a write to nr_hugepages sets."""
        return self.read(TOTAL) - self.read("surplus_hugepages")

    def set_persistent(self, pages: int) -> None:
        """Set how many pages stay, or as many as the kernel can."""
        self.write(TOTAL, pages)
        # for a node 6.1 takes what is surplus on others for pages that stay, and adds
        # as many (set_max_huge_pages(), mm/hugetlb.c)
        surplus = "surplus_hugepages"
        elsewhere = replace(self, node=ALL_NODES).read(surplus) - self.read(surplus)
        if elsewhere > 0 and self.count_persistent() == pages + elsewhere:
            self.write(TOTAL, max(pages - elsewhere, 0))

    def count_zeroed(self) -> int:
        """Return how many free pages at most are known to be zero.

        What somebody took and did not have cleared (UFFDIO_COPY, migration, fork) is
        among the known pages until it comes back, and so is a page that broke.
        """
        if self.node == ALL_NODES:
            return sum(part.count_zeroed() for part in self.list_parts())
        all_known = read_known_pages(self.root).get((self.page, self.node), 0)
        return min(all_known, self.count_free())

    def count_uncleared(self) -> int:
        """Return how many free pages at least are cleared when a program takes them."""
        return self.count_free() - self.count_zeroed()

    def make_record(self) -> PoolRecord:
        """Return what the pool has."""
        return PoolRecord(
            self.page,
            self.read(TOTAL),
            self.count_free(),
            self.read("resv_hugepages"),
            self.read("surplus_hugepages"),
            self.read("nr_overcommit_hugepages"),
            [
                NodeRecord(
                    part.node,
                    part.read(TOTAL),
                    part.count_free(),
                    part.read("surplus_hugepages"),
                    part.count_zeroed(),
                )
                for part in self.list_parts()
            ],
        )


def has_nodes(root: SystemFiles) -> bool:
    """Return whether sysfs names nodes; a kernel without NUMA does not."""
    return any(map(NODE.fullmatch, root.names(NODES)))


def list_nodes(root: SystemFiles) -> list[int]:
    """Return the numbers of all nodes; where none is named, all memory is of node 0."""
    return sorted(_match_numbers(NODE, root.names(NODES))) or [0]


def list_page_sizes(root: SystemFiles) -> list[int]:
    """Return the page sizes that the kernel has pools of, in bytes."""
    return sorted(kib * KIB for kib in _match_numbers(SIZE, root.names(SIZES)))


def read_known_pages(root: SystemFiles) -> dict[tuple[int, int], int]:
    """Return the pages of which path prezero has a bit, by page size and node."""
    known_pages = {}
    for line in root.lines(KNOWN_PAGES):
        kib, node, pages = map(int, line.split())
        known_pages[kib * KIB, node] = pages
    return known_pages


def cpus_of(root: SystemFiles, node: int) -> set[int]:
    """Return the CPUs of a node."""
    return parse_list(root.read(f"{NODES}/node{node}/cpulist") or "")


def outside_cpuset(root: SystemFiles, node: int) -> bool:
    """Return whether this process's cpuset lacks a node."""
    match = CPUSET.search(root.read("/proc/self/status") or "")
    return match is not None and node not in parse_list(match[1])


def parse_list(text: str) -> set[int]:
    """Return the numbers of a list such as 0-3,8."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def _match_numbers(pattern: re.Pattern[str], names: list[str]) -> Iterator[int]:
    for name in names:
        if match := pattern.fullmatch(name):
            yield int(match[1])


def read_meminfo(root: SystemFiles, node: int, *names: str) -> int:
    """Return the bytes of some lines of a node's meminfo, together."""
    file = f"{NODES}/node{node}/meminfo" if has_nodes(root) else "/proc/meminfo"
    # a node's lines begin with "Node N"
    lines = [line.split()[-3:] for line in root.lines(file)]
    labels = [f"{name}:" for name in names]
    return sum(int(line[1]) for line in lines if line and line[0] in labels) * KIB


def compact_node(root: SystemFiles, node: int) -> None:
    """Compact a node's memory."""
    of_node = f"{NODES}/node{node}/compact"
    file = of_node if has_nodes(root) else "/proc/sys/vm/compact_memory"
    root.write(file, "1")
