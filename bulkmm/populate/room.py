# SPDX-License-Identifier: GPL-2.0-only
"""Whether the pages that files lack fit: their file systems, and all limits.

This is checked for all files of a run together, before anything is done.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bulkmm.control.pools import has_nodes, list_nodes, outside_cpuset, read_meminfo
from bulkmm.control.system_files import SystemFiles
from bulkmm.populate import limits
from bulkmm.populate.limits import Need
from bulkmm.shell.errors import BulkmmError, UsageError


@dataclass(frozen=True, kw_only=True)
class FileNeed(Need):
    """What a file lacks, and an open file of the file system that has to have it."""

    fd: int
    limited: bool  # by memory or pools; the space of a DAX device is neither


def check_node(name: str, node: int | None, root: Path = Path("/")) -> None:
    """Raise if a node has no memory for this process."""
    files = SystemFiles(root)
    if node is None or not has_nodes(files):  # without NUMA the library refuses
        return
    if not read_meminfo(files, node, "MemTotal"):
        nodes = [n for n in list_nodes(files) if read_meminfo(files, n, "MemTotal")]
        has = ", ".join(map(str, nodes))
        raise UsageError(f"{name}: there is no memory node {node}: memory has {has}")
    if outside_cpuset(files, node):
        raise BulkmmError(
            f"{name}: memory node {node} is not in this process's cpuset (cpuset(7))"
        )


def check_limits(needs: Sequence[Need]) -> None:
    """Raise where the kernel would kill this process, or refuse huge pages.

    Each is checked beside those before it, which come to be had first.
    """
    root = SystemFiles(Path("/"))
    for number, need in enumerate(needs):
        limit = limits.find_tightest(root, need, needs[:number])
        if need.missing and need.charged_bytes > limit.room:
            _refuse(need, f"{limit.name} leaves", limit.room, number)


def check_room(needs: Sequence[FileNeed]) -> None:
    """Raise if a file system lacks space; 0 blocks: it has no limit."""
    missing: defaultdict[int, int] = defaultdict(int)
    for number, need in enumerate(needs):
        if need.reserved:
            continue
        room = os.fstatvfs(need.fd)
        spare = room.f_bavail * room.f_bsize
        device = os.fstat(need.fd).st_dev
        if room.f_blocks and missing[device] + need.missing > spare:
            spare -= missing[device]
            _refuse(need, "its file system has", spare, number, " to spare")
        missing[device] += need.missing
    check_limits([need for need in needs if need.limited])


def _refuse(need: Need, source: str, room: int, number: int, end: str = "") -> None:
    have = f"{source} {max(room, 0) >> 20} MiB{end}"
    beside = " beside the files before it" if number else ""
    raise BulkmmError(
        f"{need.name}: {need.missing >> 20} MiB more needed, {have}{beside}"
    )
