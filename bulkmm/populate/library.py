# SPDX-License-Identifier: GPL-2.0-only
"""The library's Python package, called so that signals end the command as they should.

libbulkmm/ beside this file is lib/python/libbulkmm: the command carries the package.
"""

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bulkmm.populate import libbulkmm
from bulkmm.shell.ending import hold_signals
from bulkmm.shell.errors import BulkmmError

Result = TypeVar("Result")
BUILT_LIBRARY = Path(__file__).parents[2] / "build" / "native" / "lib" / "libbulkmm.so"


@dataclass(frozen=True)
class Mapping:
    """A mapped file, what messages call it, and the node for its pages."""

    label: str
    memory: mmap.mmap
    node: int | None

    def has_address(self, address: int) -> bool:
        """Return whether an address is in it."""
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        return start <= address < start + len(self.memory)


def name_mapping(mappings: Sequence[Mapping], address: int | None) -> str:
    """Return the label of the mapping that has an address, or all labels."""
    labels = [
        mapping.label
        for mapping in mappings
        if address is None or mapping.has_address(address)
    ]
    return ", ".join(labels)


def find_library() -> None:
    """Load the library; BulkmmError: there is none."""
    if BUILT_LIBRARY.exists():
        libbulkmm.set_library(str(BUILT_LIBRARY))
    try:
        libbulkmm.version()
    except ImportError as error:
        raise BulkmmError(str(error)) from error


def populate_mappings(
    mappings: Sequence[Mapping],
    progress: Callable[[int, int], None],
    *,
    threads: int = 0,
) -> libbulkmm.Report:
    """Make mappings resident; an exception of ``progress`` ends it and is raised.

    BulkmmError: the library's sentence, after the label of the mapping in question.
    """
    try:
        return call_library(
            lambda report_progress: libbulkmm.populate_ranges(
                [libbulkmm.Range(each.memory, each.node) for each in mappings],
                progress=report_progress,
                threads=threads,
            ),
            progress,
        )
    except libbulkmm.Error as error:
        address = error.failed[0] if error.failed else None
        label = name_mapping(mappings, address)
        raise BulkmmError(f"{label}: {error}") from error


def call_library(
    call: Callable[[libbulkmm.Progress], Result],
    progress: Callable[[int, int], None],
) -> Result:
    """Call the library with a progress that signals end, too, on the main thread."""
    find_library()
    with hold_signals() as interruptible:  # what a signal raises would be lost in C

        def report_progress(nbytes: int, whole: int) -> None:
            with interruptible():
                progress(nbytes, whole)

        return call(report_progress)
