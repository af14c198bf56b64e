# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""One call of the library: its options and callbacks, its report, its failure."""

import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from . import _library

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
    "size",
    "newer",
    "flags",
    "option",
    "count",
    "page",
    "fd",
    "total",
)
TEXT = 512  # bytes of an error's sentence

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


def _cause_name(number: int) -> str:
    return CAUSES[number] if number < len(CAUSES) else "unknown"


class Call:
    """Options, callbacks and report of a call."""

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
