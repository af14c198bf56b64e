# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm show``: print the table of stored results."""

import argparse

from bulkmm import options
from bulkmm.errors import Exit
from bulkmm.results import Document


def add_parser(sub: options.Subparsers) -> None:
    """Add ``show`` to the parser of the whole command."""
    show = options.add(
        sub,
        "show",
        "print the table of kept results",
        "Print one table of kept results; those of one machine share its lines.",
        run="bulkmm.show:run_show",
        example="bulkmm show out/demo-native.json --markdown",
    )
    table = """
        --brief  print Markdown, main rows only
        --full  print a row for every median and its interval
        """
    for one in (options.RESULTS, options.MARKDOWN, table, options.ALL_ROWS):
        options.take(show, one)


def run_show(args: argparse.Namespace) -> int:
    """Print one table of all the files."""
    from bulkmm import table

    documents = [Document.read(path) for path in args.results]
    wanted = table.Show(full=args.full, all_rows=args.all_rows)
    if args.markdown or args.brief:
        print(table.markdown(*documents, brief=args.brief, show=wanted), end="")
    else:
        table.print_documents(documents, show=wanted)
    return Exit.OK
