# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Large buffers populated, cleared, copied and filled at the rate of the memory.

A buffer is anything with the buffer protocol that is contiguous (numpy, mmap, array,
bytearray, memoryview), a tensor with DLPack that is on the CPU, or (address, nbytes).
Its size is its bytes; stage() makes one of files. The functions free the interpreter's
lock while they work; call them from one thread for a buffer. They are those of
libbulkmm, whose manual pages have the details: bmm_populate_ranges(3),
bmm_clear_parallel(3), bmm_copy(3), bmm_fill(3), bmm_stage(3).
"""

import ctypes
import mmap
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from . import _library
from ._buffers import locate_buffer

__all__ = [
    "Error",
    "Range",
    "Report",
    "Slow",
    "Staged",
    "StagedFile",
    "clear",
    "collapse",
    "copy",
    "fill",
    "populate",
    "populate_ranges",
    "set_library",
    "stage",
    "stage_into",
    "version",
]

CAUSES = (
    "none",
    "unknown",
    "argument",
    "node",
    "hole",
    "protected",
    "special",
    "pool",
    "backing",
    "poisoned",
    "memory",
    "cancelled",
    "forked",
    "compaction",
    "reclaim",
    "guard",
    "key",
    "userfault",
    "limit",
    "kernel",
    "filter",
    "preempted",
    "range",
    "overlap",
    "ready",
    "fragmented",
    "no_huge",
    "file",
    "changed",
    "seal",
)
TEXT = 512  # bytes of an error's sentence

# Anything with the buffer protocol or DLPack, or (address, nbytes).
Memory: TypeAlias = Any
Progress = Callable[[int, int], object]
Ready = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Slow:
    """A piece that took more than eight times as long as the others."""

    address: int
    nbytes: int
    seconds: float
    usual_seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was done: bytes, and up to which address all of it.

    threads: the most that worked at once; touched: page by page, as the kernel is older
    than 5.14 or forbids MADV_POPULATE_WRITE; huge: bytes in huge pages, as far as the
    kernel tells; small: bytes that have small ones, as memory was compacted in vain;
    text: the library's sentence, which piece was slow and why, or empty.
    """

    nbytes: int
    reached: int
    ns: int
    threads: int
    touched: bool
    huge: int
    small: int
    slow: Slow | None
    text: str

    @property
    def seconds(self) -> float:
        """Return the time it took."""
        return self.ns / 1e9


class Error(OSError):
    """A failure; cause is a word of bmm_populate(3), and report what was done.

    failed: address and bytes of the page, range or piece in question, or None.
    """

    def __init__(
        self,
        errno: int,
        text: str,
        cause: str,
        failed: tuple[int, int] | None,
        report: Report,
    ) -> None:
        super().__init__(errno, text)
        self.cause = cause
        self.failed = failed
        self.report = report

    def __str__(self) -> str:
        """Return the library's own sentence."""
        return str(self.strerror)


@dataclass(frozen=True, slots=True)
class Range:
    """A buffer for populate_ranges(), whose new pages come from one memory node."""

    buffer: Memory
    node: int | None = None


def _cause_name(number: int) -> str:
    return CAUSES[number] if number < len(CAUSES) else "unknown"


class _Call:
    """One call of the library: options, callbacks, report."""

    def __init__(
        self,
        *,
        threads: int,
        flags: int = 0,
        node: int | None = None,
        piece: int = 0,
        progress: Progress | None = None,
        ready: Ready | None = None,
    ) -> None:
        if threads < 0 or piece < 0 or (node is not None and node < 0):
            message = "threads, piece and node may not be negative"
            raise ValueError(message)
        self.raised: list[BaseException] = []
        self.progress, self.ready = progress, ready
        self.options = _library.Options(
            size=ctypes.sizeof(_library.Options),
            flags=flags | (0 if node is None else _library.ON_NODE),
            threads=threads,
            node=node or 0,
            piece=piece,
        )
        # without a callback the main thread would not see Ctrl-C
        if progress or threading.current_thread() is threading.main_thread():
            self.options.progress = _library.Progress(self._report_progress)
        if ready:
            self.options.ready = _library.Ready(self._pass_piece)
        self.report = _library.ReportStruct(size=ctypes.sizeof(_library.ReportStruct))

    def _call_back(
        self, function: Callable[[int, int], object] | None, first: int, second: int
    ) -> int:
        """Call the program; what it raises must not go through C, and stops it."""
        try:
            if function and not self.raised:
                function(first, second)
        except BaseException as error:  # noqa: BLE001
            self.raised.append(error)
        return len(self.raised)

    def _report_progress(self, _context: object, nbytes: int, whole: int) -> int:
        return self._call_back(self.progress, nbytes, whole)

    def _pass_piece(self, _context: object, address: int, nbytes: int) -> int:
        return self._call_back(self.ready, address, nbytes)

    def _make_report(self) -> Report:
        c = self.report
        text = ctypes.create_string_buffer(TEXT)
        _library.load_library().bmm_report_text(ctypes.byref(c), text, TEXT)
        slow = None
        if c.slow_len:
            slow = Slow(
                c.slow or 0,
                c.slow_len,
                c.slow_ns / 1e9,
                c.usual_ns / 1e9,
                _cause_name(c.slow_cause),
            )
        return Report(
            nbytes=c.done,
            reached=c.reached or 0,
            ns=c.ns,
            threads=c.threads,
            touched=bool(c.touched),
            huge=c.huge,
            small=c.small,
            slow=slow,
            text=text.value.decode(),
        )

    def finish(self, error: int) -> Report:
        """Return the report; raise what a callback raised, or the failure."""
        if self.raised:
            raise self.raised[0]
        report = self._make_report()
        if not error:
            return report
        failed = (self.report.failed or 0, self.report.failed_len)
        raise Error(
            -error,
            report.text or os.strerror(-error),
            _cause_name(self.report.cause),
            failed if failed[1] else None,
            report,
        )


def _whole_pages(located: list[tuple[int, int, int | None]]) -> list[tuple[int, int]]:
    """Return the pages of each buffer; a page that two share is the first one's.

    Buffers that overlap stay so: the library says which.
    """
    pages = [(address & -mmap.PAGESIZE, 0) for address, _, _ in located]
    end = page_end = 0
    for number in sorted(range(len(located)), key=lambda number: located[number][0]):
        address, nbytes, _ = located[number]
        if not nbytes:
            continue
        start = address & -mmap.PAGESIZE
        if end <= address:
            start = max(start, page_end)
        stop = (address + nbytes + mmap.PAGESIZE - 1) & -mmap.PAGESIZE
        pages[number] = (start, max(stop - start, 0))
        end = max(end, address + nbytes)
        page_end = max(page_end, stop)
    return pages


def populate_ranges(
    buffers: Iterable[Memory | Range],
    *,
    threads: int = 0,
    node: int | None = None,
    read: bool = False,
    progress: Progress | None = None,
    ready: Ready | None = None,
    piece: int = 0,
    in_order: bool = False,
    compact: bool = False,
) -> Report:
    """Make several buffers resident and writable, by the same threads.

    A buffer that is a Range may have a node of its own. threads: the most at once, 0
    as many as help. read: shared files stay clean. progress(done, total) and
    ready(address, nbytes) are called on this thread, ready with each piece of at most
    piece bytes (0: 256 MiB) that is resident, in ascending order if in_order; what
    they raise stops the rest and is raised. compact: go on compacting memory for huge
    pages, even if it is in vain, for as long as it takes. Whole pages are populated;
    contents do not change.

    Error: the library's sentence, with the report of what was done.
    """
    flags = (_library.READ if read else 0) | (_library.IN_ORDER if in_order else 0)
    flags |= _library.COMPACT if compact else 0
    call = _Call(
        threads=threads,
        flags=flags,
        node=node,
        piece=piece,
        progress=progress,
        ready=ready,
    )
    library = _library.load_library()
    with ExitStack() as stack:
        located = []
        for item in buffers:
            wanted = item if isinstance(item, Range) else Range(item)
            place = stack.enter_context(locate_buffer(wanted.buffer, writable=not read))
            located.append((*place, wanted.node))
        ranges = (_library.RangeStruct * len(located))(
            *(
                _library.RangeStruct(
                    address, nbytes, 0 if home is None else _library.ON_NODE, home or 0
                )
                for (address, nbytes), (_, _, home) in zip(
                    _whole_pages(located), located, strict=True
                )
            )
        )
        error = library.bmm_populate_ranges(
            ranges, len(located), ctypes.byref(call.options), ctypes.byref(call.report)
        )
    return call.finish(error)


def populate(
    buffer: Memory,
    *,
    threads: int = 0,
    node: int | None = None,
    read: bool = False,
    progress: Progress | None = None,
    ready: Ready | None = None,
    piece: int = 0,
    in_order: bool = False,
    compact: bool = False,
) -> Report:
    """Make one buffer resident and writable; arguments as of populate_ranges()."""
    return populate_ranges(
        [buffer],
        threads=threads,
        node=node,
        read=read,
        progress=progress,
        ready=ready,
        piece=piece,
        in_order=in_order,
        compact=compact,
    )


def collapse(buffer: Memory, *, progress: Progress | None = None) -> Report:
    """Replace resident small pages of a buffer by transparent huge ones, where it can.

    Later, from a thread that has time, for memory that was fragmented when it was
    populated. The report has how much is huge now. Contents do not change.

    Error: fragmented, if it ended early; no_huge, if the mapping allows none.
    """
    call = _Call(threads=0, progress=progress)
    library = _library.load_library()
    with locate_buffer(buffer, writable=False) as (address, nbytes):
        start = (address + mmap.PAGESIZE - 1) & -mmap.PAGESIZE
        error = library.bmm_collapse(
            start,
            max(address + nbytes - start, 0),
            ctypes.byref(call.options),
            ctypes.byref(call.report),
        )
    return call.finish(error)


def clear(
    buffer: Memory,
    *,
    threads: int = 0,
    progress: Progress | None = None,
    ready: Ready | None = None,
    piece: int = 0,
    in_order: bool = False,
) -> Report:
    """Zero a buffer, with several threads from 64 MiB on; arguments as populate()."""
    flags = _library.IN_ORDER if in_order else 0
    call = _Call(
        threads=threads, flags=flags, piece=piece, progress=progress, ready=ready
    )
    library = _library.load_library()
    with locate_buffer(buffer) as (address, nbytes):
        error = library.bmm_clear_parallel(
            address, nbytes, ctypes.byref(call.options), ctypes.byref(call.report)
        )
    return call.finish(error)


def copy(to: Memory, source: Memory, *, streaming: bool = False) -> None:
    """Copy a buffer of the same bytes; streaming bypasses the cache.

    ValueError: the sizes differ, or the buffers overlap.
    """
    library = _library.load_library()
    with (
        locate_buffer(to) as (address, nbytes),
        locate_buffer(source, writable=False) as (start, available),
    ):
        if nbytes != available:
            message = f"{available} bytes do not fill a buffer of {nbytes}"
            raise ValueError(message)
        if address < start + nbytes and start < address + nbytes:
            message = "the buffers overlap"
            raise ValueError(message)
        if streaming:
            library.bmm_copy_streaming(address, start, nbytes)
            library.bmm_drain()
        else:
            library.bmm_copy(address, start, nbytes)


def fill(buffer: Memory, pattern: bytes) -> None:
    """Repeat a pattern over a buffer, bypassing the cache; the last may be cut.

    ValueError: the pattern is empty.
    """
    if not pattern:
        message = "the pattern is empty"
        raise ValueError(message)
    library = _library.load_library()
    with locate_buffer(buffer) as (address, nbytes):
        library.bmm_fill(address, pattern, len(pattern), nbytes)
        library.bmm_drain()


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
    call = _Call(threads=threads, node=node, progress=progress)
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


def set_library(path: str) -> None:
    """Load this file, and not the system's, where the package has no library.

    Before the first call of another function; BULKMM_LIBRARY takes precedence.
    """
    _library.fallback = path


def version() -> str:
    """Return the version of the library that is loaded."""
    text: bytes = _library.load_library().bmm_version()
    return text.decode()
