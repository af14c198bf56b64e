# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Files read into one memory: bmm_stage(3)."""

import ctypes
import mmap
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from . import _library
from ._call import Call, Error, Progress, Report


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file in a memory: where it begins, and its bytes."""

    path: str
    offset: int
    nbytes: int


class Staged(mmap.mmap):
    """Files in memory, a buffer that cannot be written, and where each is.

    fd: the descriptor of the memory, for reading, closed with the buffer; what maps
    files maps its path, too: /proc/PID/fd/FD.
    """

    fd: int
    files: tuple[StagedFile, ...]
    report: Report

    def close(self) -> None:
        """Unmap it; the memory is freed with its last user."""
        super().close()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def __del__(self) -> None:
        """Close the descriptor; a mapping in use stays."""
        if getattr(self, "fd", -1) >= 0:
            os.close(self.fd)


def stage_into(
    fd: int,
    paths: Iterable[str | os.PathLike[str]],
    *,
    page: int | Literal["thp"] = 0,
    threads: int = 0,
    node: int | None = None,
    progress: Progress | None = None,
) -> tuple[int, tuple[StagedFile, ...], Report]:
    """Read files into a file on tmpfs or hugetlbfs that has no pages; fd -1: a memfd.

    Return the descriptor of the memory, where each file is, and the report. Arguments
    and errors as of stage().
    """
    call = Call(threads=threads, node=node, progress=progress)
    names = [os.fsencode(path) for path in paths]
    files = (_library.FileStruct * len(names))(
        *(_library.FileStruct(path=name) for name in names)
    )
    memory = _library.MemoryStruct(
        size=ctypes.sizeof(_library.MemoryStruct),
        page=_library.THP if page == "thp" else page,
        failed=len(names),
        fd=fd,
    )
    error = _library.load_library().bmm_stage(
        ctypes.byref(memory),
        files,
        len(names),
        ctypes.byref(call.options),
        ctypes.byref(call.report),
    )
    try:
        report = call.finish(error)
    except BaseException as failure:
        if not error and fd < 0:  # progress raised when there was nothing left to end
            os.close(memory.fd)
        if isinstance(failure, Error) and memory.failed < len(names):
            name = os.fsdecode(names[memory.failed])
            at = f" (at byte {memory.at})" if memory.at else ""
            failure.strerror = f"{name}{at}: {failure.strerror}"
        raise
    placed = (StagedFile(os.fsdecode(f.path), f.offset, f.len) for f in files)
    return memory.fd, tuple(placed), report


def stage(
    paths: Iterable[str | os.PathLike[str]],
    *,
    page: int | Literal["thp"] = 0,
    threads: int = 0,
    node: int | None = None,
    progress: Progress | None = None,
) -> Staged:
    """Read files into one sealed memory, as fast as the disk allows: a buffer.

    page: bytes of its huge pages, as 2 << 20; "thp": transparent ones; 0: pages of the
    usual size. node: its only memory node. progress(done, total) is called on this
    thread; what it raises ends it and is raised. numpy.frombuffer(staged, ...) uses
    the buffer; a file of it is memoryview(staged)[offset : offset + nbytes].

    Error: the library's sentence after the name of the file; cause file: it cannot be
    read; changed: it did meanwhile; pool: too few huge pages are free.
    """
    fd, files, report = stage_into(
        *(-1, paths), page=page, threads=threads, node=node, progress=progress
    )
    try:
        staged = Staged(fd, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    except BaseException:
        os.close(fd)
        raise
    staged.fd, staged.files, staged.report = fd, files, report
    return staged
