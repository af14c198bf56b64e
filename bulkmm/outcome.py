# SPDX-License-Identifier: GPL-2.0-only
"""The end of a measuring command: what it prints, writes and returns."""

import argparse
import sys
from collections.abc import Callable

from bulkmm import files
from bulkmm.errors import Exit
from bulkmm.results import Document

WHAT = "the result file"


def need_place(args: argparse.Namespace) -> None:
    """Reject files that cannot be written, before all the work."""
    files.need_place(args.output, WHAT)


def finish(
    args: argparse.Namespace, document: Document, show: Callable[[], None]
) -> int:
    """Print the result as JSON or by ``show``, write it, return the verdict.

    It is written even if printing fails: measuring may have taken hours.
    """
    try:
        if args.json:
            print(document.to_json(), end="")
        else:
            show()
    finally:
        if args.output:
            files.write(args.output, document.to_json(), WHAT)
    return verdict(document)


def verdict(document: Document) -> int:
    """Return the exit code, naming on stderr the checks that failed."""
    for check in document.failed:
        sys.stderr.write(f"bulkmm: check failed: {check.name}: {check.detail}\n")
    return Exit.VERDICT if document.failed else Exit.OK
