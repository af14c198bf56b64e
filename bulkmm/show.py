# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm show``: print the table of stored results."""

import argparse

from bulkmm import options
from bulkmm.errors import Exit, UsageError


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
    kept = "results:RESULT.json...  read this kept result; several make one"
    table = """
        --full  print a row for every median and its interval
        --schema  print the JSON schema of a result, and no table
        """
    for one in (kept, options.MARKDOWN, table, options.ALL_ROWS):
        options.take(show, one)


def run_show(args: argparse.Namespace) -> int:
    """Print one table of all the files, or the schema of such files."""
    from bulkmm import results, table
    from bulkmm.results import Document

    if args.schema:
        print(results.schema())
        return Exit.OK
    if not args.results:
        raise UsageError("name a RESULT.json, or ask for --schema")
    documents = [Document.read(path) for path in args.results]
    wanted = table.Show(full=args.full, all_rows=args.all_rows)
    if args.markdown:
        print(table.markdown(*documents, show=wanted), end="")
    else:
        table.print_documents(documents, show=wanted)
    return Exit.OK
