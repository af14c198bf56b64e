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
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from . import _library
from ._buffers import locate_buffer
from ._call import CAUSES, Call, Error, Progress, Ready, Report, Slow
from ._stage import Staged, StagedFile, stage, stage_into

__all__ = [
    "CAUSES",
    "Error",
    "Memory",
    "Progress",
    "Range",
    "Ready",
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

for public in (Error, Report, Slow, Staged, StagedFile):
    public.__module__ = __name__  # in tracebacks, as programs name them

# Anything with the buffer protocol or DLPack, or (address, nbytes).
Memory: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Range:
    """A buffer for populate_ranges(), whose new pages come from one memory node."""

    buffer: Memory
    node: int | None = None


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
    call = Call(
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
    call = Call(threads=0, progress=progress)
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
    call = Call(
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


def set_library(path: str) -> None:
    """Load this file, and not the system's, where the package has no library.

    Before the first call of another function; BULKMM_LIBRARY takes precedence.
    """
    _library.fallback = path


def version() -> str:
    """Return the version of the library that is loaded."""
    text: bytes = _library.load_library().bmm_version()
    return text.decode()
