# SPDX-License-Identifier: GPL-2.0-only
"""One way to populate from Python, in a process of its own, as bmm-populate does it.

    python -m bench.populate_python SCENARIO KIND SIZE WAY-THREADS

prints the events of the bench. ``python`` is libbulkmm.populate() of memory as
bmm-populate maps it; ``python-fill`` fills an array of numpy.empty() with zeros, whose
pages are huge by numpy's own advice, and that same memory where it is a memfd or of
hugetlbfs. Only the call is timed, with the library loaded.
"""

import json
import mmap
import os
import resource
import sys
import time
from typing import Any

import numpy as np

from bench import program
from bulkmm.populate import libbulkmm
from bulkmm.populate.library import BUILT_LIBRARY
from bulkmm.shell.size import MIB, PAGE

MAP_HUGETLB = 0x40000
HUGE = 2 * MIB
OWN_FAULTS = 8  # that Python may take beside those of the memory
Array = np.ndarray[Any, np.dtype[np.uint8]]


def map_memory(kind: str, size: int) -> Array:
    """Return memory that is not resident, at an address that splits no huge page."""
    if kind == "memfd":
        file = os.memfd_create("bmm-populate")
        os.ftruncate(file, size)
        return np.frombuffer(mmap.mmap(file, size), np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if kind == "hugetlb":
        return np.frombuffer(mmap.mmap(-1, size, flags | MAP_HUGETLB), np.uint8)
    mapping = mmap.mmap(-1, size + HUGE, flags)
    if kind == "thp":
        mapping.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(mapping, np.uint8)
    start = -whole.ctypes.data % HUGE
    return whole[start : start + size]


def time_fill(kind: str, size: int) -> tuple[int, Array]:
    """Fill an array with zeros; return the ns that it takes, and the array."""
    if kind in ("4k", "thp"):
        array = np.empty(size, np.uint8)
    else:
        array = map_memory(kind, size)
    start = time.monotonic_ns()
    array.fill(0)
    return time.monotonic_ns() - start, array


def time_library(kind: str, size: int, threads: int) -> tuple[int, Array]:
    """Populate by the library; return the ns that it takes, and the memory."""
    array = map_memory(kind, size)
    libbulkmm.version()  # loads it
    start = time.monotonic_ns()
    libbulkmm.populate(array, threads=threads)
    return time.monotonic_ns() - start, array


def is_populated(array: Array) -> bool:
    """Return whether writing to a page takes no fault, and every byte is zero."""
    touch_pages(np.zeros(PAGE, np.uint8))  # numpy's code itself faults at first
    before = count_faults()
    touch_pages(array)
    faults = count_faults() - before
    return faults <= OWN_FAULTS and not array.view(np.uint64).any()


def touch_pages(array: Array) -> None:
    """Write to a byte of each page what it holds."""
    pages = array[::PAGE]
    pages |= 0


def count_faults() -> int:
    """Return the page faults of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def main(scenario: str, kind: str, size_text: str, way: str) -> None:
    """Print the sample and the verdict."""
    size, (name, _, threads) = int(size_text), way.rpartition("-")
    if kind != "thp":
        program.disable_huge_pages()
    if BUILT_LIBRARY.exists():
        libbulkmm.set_library(str(BUILT_LIBRARY))
    if name == program.FILL:
        ns, array = time_fill(kind, size)
    else:
        ns, array = time_library(kind, size, int(threads))
    labels = {"scenario": scenario, "variant": way}
    print(json.dumps({"event": "sample", **labels, "bytes": size, "ns": ns}))
    print(json.dumps({"event": "verified", **labels, "ok": is_populated(array)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
