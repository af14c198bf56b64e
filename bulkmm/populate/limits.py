# SPDX-License-Identifier: GPL-2.0-only
"""What limits leave: those of the cgroups of this process, and the machine's memory.

Only what is certain is refused: caches and swap count as free, and a limit that a
container hides counts as none. Pools of huge pages and programs keep what they hold.
"""

import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from bulkmm.control.pools import ALL_NODES, TOTAL, Pool, list_page_sizes, read_meminfo
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.size import GIB, KIB, MIB

ESCAPE = re.compile(r"\\([0-7]{3})")
NO_LIMIT = 1 << 63
TABLES = 240  # of so many bytes of 4 KiB pages less than one is for the kernel's tables
# in meminfo: what can at best be swapped
HELD_BY_PROGRAMS = ("Active(anon)", "Inactive(anon)", "Unevictable", "SUnreclaim")
MOUNTED = 4  # word of a line of mountinfo; the one before is what of it is mounted
# by version: the limit, what is used of it, and what of that can be reclaimed
MEMORY = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    2: ("memory.max", "memory.current", ""),
}
SWAP = {
    1: ("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"),
    2: ("memory.swap.max", "memory.swap.current"),
}
HUGETLB = {
    1: (
        ("limit_in_bytes", "usage_in_bytes"),
        ("rsvd.limit_in_bytes", "rsvd.usage_in_bytes"),
    ),
    2: (("max", "current"), ("rsvd.max", "rsvd.current")),
}


@dataclass(frozen=True)
class Need:
    """The bytes that a file lacks, in pages of a size, from any node or this one."""

    name: str
    missing: int
    page: int = mmap.PAGESIZE
    node: int | None = None
    reserved: bool = False  # its huge pages are

    @property
    def charged_bytes(self) -> int:
        """Return what limits count for it."""
        return self.missing + (0 if self.is_huge else self.missing // TABLES)

    @property
    def is_huge(self) -> bool:
        """Return whether its pages are those of a pool."""
        return self.page > mmap.PAGESIZE


@dataclass(frozen=True)
class Limit:
    """A limit, and the bytes that it leaves."""

    name: str
    room: int
    node: int | None = None  # it is of this node's memory only
    reservations: bool = False  # it is met when huge pages are reserved

    def leave_room(self, earlier_needs: Sequence[Need]) -> "Limit":
        """Return what is left beside needs for the same kind of page."""
        charges = (
            need.charged_bytes
            for need in earlier_needs
            if self.node in {None, need.node}
            and not (self.reservations and need.reserved)
        )
        return replace(self, room=self.room - sum(charges))


UNLIMITED = Limit("no limit", NO_LIMIT)


@dataclass(frozen=True)
class Group:
    """A cgroup of this process."""

    root: SystemFiles
    version: int
    path: str

    def number(self, name: str) -> int | None:
        """Return a value; None if there is no such file, ``max`` is no limit."""
        text = self.root.read(f"{self.path}/{name}")
        return NO_LIMIT if text == "max" else int(text) if text else None

    def read_room(self, limit_name: str, used_name: str) -> int:
        """Return what a limit leaves."""
        limit = self.number(limit_name)
        return NO_LIMIT if limit is None else limit - (self.number(used_name) or 0)


def list_memory_limits(root: SystemFiles, node: int | None = None) -> Iterator[Limit]:
    """Give the limits on memory, of any node or of one."""
    free = dict(re.findall(r"(\S+): +(\d+) kB", root.read("/proc/meminfo") or ""))
    swap = int(free.get("SwapFree", 0)) * KIB
    yield UNLIMITED
    if "MemTotal" in free:  # what is available is an estimate
        kib = int(free["MemTotal"]) - sum(int(free.get(n, 0)) for n in HELD_BY_PROGRAMS)
        yield Limit("the machine", kib * KIB - _bytes_in_pools(root, ALL_NODES) + swap)
    if node is not None and (node_total := read_meminfo(root, node, "MemTotal")):
        used_bytes = read_meminfo(root, node, *HELD_BY_PROGRAMS) + _bytes_in_pools(
            root, node
        )
        yield Limit(f"node {node}", node_total - used_bytes + swap, node)
    for group in _list_groups(root, "memory"):
        limit, used, prefix = MEMORY[group.version]
        caches = _reclaimable_bytes(group, prefix)
        room = group.read_room(limit, used) + caches
        swapped = group.read_room(*SWAP[group.version])
        if group.version == 1:  # of memory and swap together
            room = min(room + swap, swapped + caches)
        else:
            room += max(min(swap, swapped), 0)  # its limit may be below what is used
        yield Limit(f"{group.path}/{limit}", room)


def list_hugetlb_limits(
    root: SystemFiles, page: int, *, reserved: bool = False
) -> Iterator[Limit]:
    """Give the limits on huge pages of a size, which may be reserved already."""
    yield UNLIMITED
    unit, name = next(
        (unit, name)
        for unit, name in ((GIB, "GB"), (MIB, "MB"), (KIB, "KB"))
        if page >= unit
    )
    for group in _list_groups(root, "hugetlb"):
        usage, reservations = HUGETLB[group.version]
        for limit, used in (usage,) if reserved else (usage, reservations):
            file = f"hugetlb.{page // unit}{name}.{limit}"
            room = group.read_room(file, f"hugetlb.{page // unit}{name}.{used}")
            path = f"{group.path}/{file}"
            yield Limit(path, room, reservations=limit.startswith("rsvd."))


def _bytes_in_pools(root: SystemFiles, node: int) -> int:
    """Return the bytes that pools of huge pages hold."""
    return sum(
        Pool(root, page, node).read(TOTAL) * page for page in list_page_sizes(root)
    )


def _reclaimable_bytes(group: Group, prefix: str) -> int:
    """Return the bytes of caches; pages of tmpfs are not in these lists."""
    stat = group.root.read(f"{group.path}/memory.stat") or ""
    lists = "active_file|inactive_file|slab_reclaimable"
    cache_sizes = re.findall(rf"^{prefix}(?:{lists}) (\d+)$", stat, re.MULTILINE)
    return sum(map(int, cache_sizes))


def _list_groups(root: SystemFiles, controller: str) -> Iterator[Group]:
    """Give the cgroups of this process, each with all above it that can be seen."""
    paths = {}
    for line in (root.read("/proc/self/cgroup") or "").split("\n"):
        _, controllers, path = [*line.split(":", 2), "none", ""][:3]
        if not controllers:
            paths[2] = path
        elif controller in controllers.split(","):
            paths[1] = path
    for line in (root.read("/proc/self/mountinfo") or "").split("\n"):
        front, _, back = line.partition(" - ")
        kind, _, options = [*back.split(" ", 2), "", ""][:3]
        version = {"cgroup": 1, "cgroup2": 2}.get(kind)
        if version == 1 and controller not in options.split(","):
            continue
        words = front.split(" ")
        if version in paths and len(words) > MOUNTED:
            top, mount = (
                _unescape_word(word) for word in words[MOUNTED - 1 : MOUNTED + 1]
            )
            for place in _list_parents(mount, _path_below(paths[version], top)):
                yield Group(root, version, place)


def _unescape_word(word: str) -> str:
    return ESCAPE.sub(lambda match: chr(int(match[1], 8)), word)


def _path_below(path: str, top: str) -> str:
    """Return where a cgroup is below a mount's top; outside it: the top.

    Outside its name space it begins with ``..`` (cgroup_namespaces(7)).
    """
    place = PurePosixPath(path)
    inside = place.is_relative_to(top) and ".." not in place.parts
    return str(place.relative_to(top)) if inside else "."


def _list_parents(mount: str, below: str) -> Iterator[str]:
    place = PurePosixPath(mount, below)
    yield str(place)
    while place != PurePosixPath(mount):
        place = place.parent
        yield str(place)


def find_tightest(
    root: SystemFiles, need: Need, earlier_needs: Sequence[Need] = ()
) -> Limit:
    """Return the limit that leaves least for a need, beside earlier ones."""
    candidates = (
        list_hugetlb_limits(root, need.page, reserved=need.reserved)
        if need.is_huge
        else list_memory_limits(root, need.node)
    )
    same_pages = [each for each in earlier_needs if each.page == need.page]
    tightened = (limit.leave_room(same_pages) for limit in candidates)
    return min(tightened, key=lambda limit: limit.room)
