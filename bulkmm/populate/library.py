# SPDX-License-Identifier: GPL-2.0-only
"""bmm_populate() of libbulkmm, called from Python."""

import ctypes
import mmap
import os
from collections.abc import Callable
from pathlib import Path

from bulkmm.shell.ending import undisturbed
from bulkmm.shell.errors import BulkmmError

BUILT_LIBRARY = Path(__file__).parents[2] / "build" / "native" / "lib" / "libbulkmm.so"
SONAME = "libbulkmm.so.0"
ON_NODE = 1
LINE = 512  # bytes of an error

_Progress = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class _Options(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("node", ctypes.c_uint32),
        ("progress", _Progress),
        ("context", ctypes.c_void_p),
    )


class Report(ctypes.Structure):
    """The outcome for a mapping; error: 0 if all is resident."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("done", ctypes.c_size_t),
        ("reached", ctypes.c_void_p),
        ("failed", ctypes.c_void_p),
        ("failed_len", ctypes.c_size_t),
        ("ns", ctypes.c_uint64),
        ("slow", ctypes.c_void_p),
        ("slow_len", ctypes.c_size_t),
        ("slow_ns", ctypes.c_uint64),
        ("usual_ns", ctypes.c_uint64),
        ("error", ctypes.c_int),
        ("cause", ctypes.c_int),
        ("slow_cause", ctypes.c_int),
        ("threads", ctypes.c_uint32),
        ("touched", ctypes.c_uint32),
    )


def _load() -> ctypes.CDLL:
    override = os.environ.get("BULKMM_LIBRARY")
    path = override or (str(BUILT_LIBRARY) if BUILT_LIBRARY.exists() else SONAME)
    try:
        library = ctypes.CDLL(path)
        library.bmm_populate.argtypes = (
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.POINTER(_Options),
            ctypes.POINTER(Report),
        )
        library.bmm_report_text.argtypes = (
            ctypes.POINTER(Report),
            ctypes.c_char_p,
            ctypes.c_size_t,
        )
    except (OSError, AttributeError) as error:
        hint = "BULKMM_LIBRARY names none" if override else "make build, or libbulkmm0"
        raise BulkmmError(f"libbulkmm was not found ({hint}): {error}") from error
    return library


def populate(
    mapping: mmap.mmap,
    progress: Callable[[int], None],
    *,
    threads: int = 0,
    node: int | None = None,
) -> tuple[Report, str]:
    """Make a mapping resident; an exception of ``progress`` ends it and is raised.

    Call it on the main thread: signals end it too. The text says what failed, or which
    piece was slow.
    """
    library = _load()
    raised: list[BaseException] = []

    def report_progress(_context: object, nbytes: int, _length: int) -> int:
        try:
            with interruptible():
                progress(nbytes)
        except BaseException as error:  # noqa: BLE001 - not through C
            raised.append(error)
        return len(raised)

    options = _Options(
        size=ctypes.sizeof(_Options),
        flags=0 if node is None else ON_NODE,
        threads=threads,
        node=node or 0,
        progress=_Progress(report_progress),
    )
    report = Report(size=ctypes.sizeof(Report))
    # no view that is kept: it would keep the mapping open
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    with undisturbed() as interruptible:  # what a signal raises would be lost in C
        library.bmm_populate(address, len(mapping), options, report)
    if raised:
        raise raised[0]
    line = ctypes.create_string_buffer(LINE)
    library.bmm_report_text(report, line, LINE)
    return report, line.value.decode()
