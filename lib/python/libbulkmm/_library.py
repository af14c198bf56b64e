# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The declarations of bulkmm.h that this package calls, and where the library is."""

import ctypes
import functools
import os
from pathlib import Path

SONAME = "libbulkmm.so.0"
fallback = SONAME  # where the package has no library
ON_NODE, READ, IN_ORDER, COMPACT = 1, 2, 4, 8
THP = 1  # as the page size of a memory

Progress = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)
Ready = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
)


class Options(ctypes.Structure):
    """Struct bmm_options."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("node", ctypes.c_uint32),
        ("progress", Progress),
        ("context", ctypes.c_void_p),
        ("ready", Ready),
        ("piece", ctypes.c_size_t),
    )


class RangeStruct(ctypes.Structure):
    """Struct bmm_range."""

    _fields_ = (
        ("addr", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("node", ctypes.c_uint32),
    )


class ReportStruct(ctypes.Structure):
    """Struct bmm_report."""

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
        ("huge", ctypes.c_size_t),
        ("small", ctypes.c_size_t),
    )


class FileStruct(ctypes.Structure):
    """Struct bmm_file."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("offset", ctypes.c_size_t),
        ("len", ctypes.c_size_t),
    )


class MemoryStruct(ctypes.Structure):
    """Struct bmm_memory."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("page", ctypes.c_size_t),
        ("len", ctypes.c_size_t),
        ("failed", ctypes.c_size_t),
        ("at", ctypes.c_size_t),
        ("fd", ctypes.c_int),
    )


_SIZE, _ADDRESS = ctypes.c_size_t, ctypes.c_void_p
_WORK = (ctypes.POINTER(Options), ctypes.POINTER(ReportStruct))
ARGUMENTS = {
    "bmm_populate_ranges": (ctypes.POINTER(RangeStruct), _SIZE, *_WORK),
    "bmm_stage": (
        ctypes.POINTER(MemoryStruct),
        ctypes.POINTER(FileStruct),
        _SIZE,
        *_WORK,
    ),
    "bmm_collapse": (_ADDRESS, _SIZE, *_WORK),
    "bmm_clear_parallel": (_ADDRESS, _SIZE, *_WORK),
    "bmm_report_text": (ctypes.POINTER(ReportStruct), ctypes.c_char_p, _SIZE),
    "bmm_copy": (_ADDRESS, _ADDRESS, _SIZE),
    "bmm_copy_streaming": (_ADDRESS, _ADDRESS, _SIZE),
    "bmm_fill": (_ADDRESS, ctypes.c_char_p, _SIZE, _SIZE),
    "bmm_drain": (),
    "bmm_version": (),
}
RESULTS = {
    "bmm_report_text": _SIZE,
    "bmm_copy": None,
    "bmm_copy_streaming": None,
    "bmm_drain": None,
    "bmm_version": ctypes.c_char_p,
}


def library_path() -> str:
    """Return what is loaded: BULKMM_LIBRARY, the wheel's own, or the system's."""
    bundled = Path(__file__).parent / SONAME
    return os.environ.get("BULKMM_LIBRARY") or (
        str(bundled) if bundled.exists() else fallback
    )


@functools.cache
def load_library() -> ctypes.CDLL:
    """Return the library; OSError says which file, and what to do."""
    path = library_path()
    try:
        library = ctypes.CDLL(path)
        for name, arguments in ARGUMENTS.items():
            function = getattr(library, name)
            function.argtypes = arguments
            function.restype = RESULTS.get(name, ctypes.c_int)
    except (OSError, AttributeError) as error:
        hint = (
            "BULKMM_LIBRARY names none"
            if "BULKMM_LIBRARY" in os.environ
            else "make build, libbulkmm0, or a wheel for this platform"
        )
        message = f"libbulkmm was not found ({hint}): {error}"
        raise ImportError(message) from error
    return library
