# SPDX-License-Identifier: GPL-2.0-only
"""The library's Python package, called so that signals end the command as they should.

libbulkmm/ beside this file is lib/python/libbulkmm: the command carries the package.
"""

import mmap
from collections.abc import Callable
from pathlib import Path

from bulkmm.populate import libbulkmm
from bulkmm.shell.ending import hold_signals
from bulkmm.shell.errors import BulkmmError

BUILT_LIBRARY = Path(__file__).parents[2] / "build" / "native" / "lib" / "libbulkmm.so"


def populate_mapping(
    mapping: mmap.mmap,
    progress: Callable[[int], None],
    *,
    label: str,
    threads: int = 0,
    node: int | None = None,
) -> libbulkmm.Report:
    """Make a mapping resident; an exception of ``progress`` ends it and is raised.

    Call it on the main thread: signals end it too. BulkmmError: the library's sentence,
    after the label, or that there is no library.
    """
    if BUILT_LIBRARY.exists():
        libbulkmm.set_library(str(BUILT_LIBRARY))
    with hold_signals() as interruptible:  # what a signal raises would be lost in C

        def report_progress(nbytes: int, _whole: int) -> None:
            with interruptible():
                progress(nbytes)

        try:
            return libbulkmm.populate(
                mapping, progress=report_progress, threads=threads, node=node
            )
        except libbulkmm.Error as error:
            raise BulkmmError(f"{label}: {error}") from error
        except ImportError as error:
            raise BulkmmError(str(error)) from error
