# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm stage``: files in memory, for programs that map them."""

import argparse
import json
import mmap
import os
import signal
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bulkmm.populate import libbulkmm, library, room, target
from bulkmm.populate.limits import Need
from bulkmm.populate.request import MOST_FILES, Request
from bulkmm.populate.run import BYTES, killed_first
from bulkmm.shell import bar, size
from bulkmm.shell.errors import BulkmmError, Exit, UsageError

MEMFD = "memfd"
THP: Final = "thp"
THP_BYTES = size.MIB * 2
SHMEM = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")


@dataclass(frozen=True)
class Memory:
    """A memory that has been made: its path, and what is where in it."""

    path: str
    files: tuple[libbulkmm.StagedFile, ...]
    report: libbulkmm.Report


class Stager:
    """The files of a run, their sizes, and how much of them has been read."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.huge: int | Literal["thp"] = (
            THP if args.huge == THP else _parse_huge(args.huge)
        )
        self.node: int | None = args.node
        self.threads: int = args.threads
        self.paths = [Path(word) for word in args.words]
        self.sizes = {path: _find_size(path) for path in self.paths}
        self.read_before = 0
        self.show: libbulkmm.Progress = lambda _nbytes, _whole: None

    def count_bytes(self, paths: Sequence[Path], page: int) -> int:
        """Return the bytes of the memory for some of them, in pages of a size."""
        align = THP_BYTES if self.huge == THP else page
        return sum(-(-max(self.sizes[path], 1) // align) * align for path in paths)

    def stage(self, fd: int, paths: Sequence[Path], path: str) -> tuple[int, Memory]:
        """Read some of them into a file, or, fd -1, a memfd; return its descriptor."""
        whole = sum(self.sizes.values())

        def call(progress: libbulkmm.Progress) -> tuple[int, Memory]:
            memory, files, report = libbulkmm.stage_into(
                *(fd, paths),
                page=self.huge,
                threads=self.threads,
                node=self.node,
                progress=progress,
            )
            return memory, Memory(path, files, report)

        def show(nbytes: int, _whole: int) -> None:
            self.show(min(self.read_before + nbytes, whole), whole)

        try:
            result = library.call_library(call, show)
        except libbulkmm.Error as error:
            why = str(error)
            if error.cause == "pool" and isinstance(self.huge, int) and self.huge:
                nbytes = self.count_bytes(paths, self.huge)
                why += f"; {target.describe_pool(self.huge, nbytes, self.node)}"
            raise BulkmmError(why) from error
        self.read_before += sum(self.sizes[path] for path in paths)
        return result


def stage_files(args: argparse.Namespace) -> int:
    """Read the files; keep a memfd until a signal comes."""
    if not args.words:
        raise UsageError("stage: give a FILE, or several")
    if len(args.words) > MOST_FILES:
        raise UsageError(f"{len(args.words)} files: give {MOST_FILES} at most")
    stager = Stager(args)
    if args.to != MEMFD:
        with killed_first(), bar.show_bar("stage", BYTES) as stager.show:
            memories = _stage_to_files(stager, Path(args.to))
        _print_memories(memories, args)
        return Exit.OK
    with killed_first(), bar.show_bar("stage", BYTES) as stager.show:
        memory = _stage_to_memfd(stager)
    with suppress(KeyboardInterrupt):  # which is how it ends
        _print_memories([memory], args)
        while True:
            signal.pause()
    return Exit.OK


def _parse_huge(word: str | None) -> int:
    huge = size.parse_bytes(word, "16G") if word else 0
    if huge & (huge - 1):
        raise UsageError(f"--huge {word}: not a page size")
    return huge


def _find_size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        raise BulkmmError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path} is not a file")
    return status.st_size


def _stage_to_memfd(stager: Stager) -> Memory:
    if stager.huge == THP and "[never]" in SHMEM.read_text(encoding="ascii"):
        raise BulkmmError(
            "the kernel has no transparent huge pages for memfds: "
            f"echo advise > {SHMEM}, or --huge 2M"
        )
    page = stager.huge if isinstance(stager.huge, int) else 0
    page = page or mmap.PAGESIZE
    nbytes = stager.count_bytes(stager.paths, page)
    room.check_node(MEMFD, stager.node)
    room.check_limits([Need(MEMFD, nbytes, page, stager.node)])
    fd, memory = stager.stage(-1, stager.paths, MEMFD)
    return Memory(f"/proc/{os.getpid()}/fd/{fd}", memory.files, memory.report)


def _stage_to_files(stager: Stager, to: Path) -> list[Memory]:
    """Read each into a file of a directory, or all into a new file; all or none."""
    if isinstance(stager.huge, int) and stager.huge:
        raise UsageError("--huge only applies to a memfd: files have their own pages")
    parts = {to: stager.paths}
    if to.is_dir():
        parts = {to / path.name: [path] for path in stager.paths}
    if len(parts) < len(stager.paths) and to not in parts:
        raise UsageError(f"two files of the same name cannot both be in {to}")
    for path in parts:
        if path.exists() or path.is_symlink():
            raise UsageError(f"{path} exists already: remove it, or give another")
    page = _check_place(to, to.parent if to in parts else to, stager.huge)
    requests = [
        Request(path, stager.count_bytes(paths, page), stager.node)
        for path, paths in parts.items()
    ]
    memories = []
    with target.open_files(requests) as files:
        for file in files:
            paths = parts[file.path]
            _, memory = stager.stage(file.fd, paths, file.name)
            os.fchmod(file.fd, 0o400)  # the original's directory may be closed
            memories.append(memory)
    return memories


def _check_place(to: Path, place: Path, huge: int | Literal["thp"]) -> int:
    """Return the page size of a directory for the files."""
    try:
        page, device = os.statvfs(place).f_bsize, place.stat().st_dev
    except OSError as error:
        raise BulkmmError(f"{to}: {error.strerror}") from error
    kind, _ = target.find_mount(device)
    if kind not in target.MAGIC.values():
        raise UsageError(f"{to} is on {kind}: give a place on tmpfs or hugetlbfs")
    if huge == THP and kind == "hugetlbfs":
        raise UsageError(f"{to} is on hugetlbfs, which is huge without --huge thp")
    return page


def _print_memories(memories: Sequence[Memory], args: argparse.Namespace) -> None:
    if args.json:
        records = [_make_record(memory) for memory in memories]
        print(json.dumps({"schema_version": 1, "stage": records}), flush=True)
        return
    for memory in memories:
        report = memory.report
        nbytes = sum(file.nbytes for file in memory.files)
        line = f"{nbytes >> 20} MiB in {report.seconds:.3f} s"
        line += f", {nbytes / max(report.ns, 1):.1f} GB/s"
        if args.huge == THP:
            line += f", {report.huge >> 20} MiB of it in huge pages"
        print(f"{memory.path}: {line}")
        for file in memory.files if len(memory.files) > 1 else ():
            print(f"  offset {file.offset}, {file.nbytes} bytes: {file.path}")
    if args.to == MEMFD:
        print("it is there until this command is interrupted")
    print(end="", flush=True)


def _make_record(memory: Memory) -> dict[str, object]:
    return {
        "path": memory.path,
        "ns": memory.report.ns,
        "threads": memory.report.threads,
        "huge_bytes": memory.report.huge,
        "files": [
            {"file": file.path, "offset": file.offset, "bytes": file.nbytes}
            for file in memory.files
        ],
    }
