# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm show``: the table of results that were kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.errors import Exit
from bulkmm.results import Document

if TYPE_CHECKING:
    import argparse


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``show`` to the parser of the whole command."""
    show = sub.add_parser("show", help="print the table of kept results")
    show.add_argument("results", nargs="+", type=Path, metavar="FILE", help="a result")
    show.add_argument("--markdown", action="store_true", help="as a Markdown table")
    show.add_argument("--brief", action="store_true", help="Markdown, main rows only")
    show.add_argument(
        "--full", action="store_true", help="a row for every median and its interval"
    )
    show.add_argument(
        "--all-rows", action="store_true", help="show every backend and limit too"
    )
    show.set_defaults(run=run_show)


def run_show(args: argparse.Namespace) -> int:
    """Print one table of all the files."""
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast

    documents = [Document.read(path) for path in args.results]
    wanted = table.Show(full=args.full, all_rows=args.all_rows)
    if args.markdown or args.brief:
        print(table.markdown(*documents, brief=args.brief, show=wanted), end="")
    else:
        table.print_documents(documents, show=wanted)
    return Exit.OK
