# SPDX-License-Identifier: GPL-2.0-only
"""The end of a measuring command: what it prints, writes and returns."""

import argparse
import sys
from collections.abc import Callable

from bulkmm.results import conditions
from bulkmm.results.model import Document
from bulkmm.shell import files
from bulkmm.shell.errors import Exit

LABEL = "the result file"


def need_place(args: argparse.Namespace) -> None:
    """Reject files that cannot be written, before all the work."""
    for file in (args.output, getattr(args, "submit_file", None)):
        files.need_place(file, LABEL)


def finish_run(
    args: argparse.Namespace, document: Document, show: Callable[[], None]
) -> int:
    """Print the result as JSON or by ``show``, write it, return the verdict.

    It is written even if printing fails: measuring may have taken hours.
    """
    document.run["argv"] = [*args.argv]
    try:
        if args.json:
            print(document.to_json(), end="")
        else:
            show()
        sys.stdout.flush()
    finally:
        for warning in conditions.list_warnings(document):
            sys.stderr.write(f"bulkmm: warning: {warning}\n")
        code = report_verdict(document)
        if args.output:
            files.write_file(args.output, document.to_json(), LABEL)
        if file := getattr(args, "submit_file", None):
            from bulkmm.results import submit

            files.write_file(file, submit.anonymise_document(document).to_json(), LABEL)
    return code


def report_verdict(document: Document) -> int:
    """Return the exit code, naming on stderr the checks that failed."""
    for check in document.failed:
        sys.stderr.write(f"bulkmm: check failed: {check.name}: {check.detail}\n")
    return Exit.VERDICT if document.failed else Exit.OK
