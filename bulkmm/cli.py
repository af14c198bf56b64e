# SPDX-License-Identifier: GPL-2.0-only
"""The bulkmm command."""

from __future__ import annotations

import argparse
import sys

from bulkmm import compare, demo, plot, show
from bulkmm.bench import command as bench
from bulkmm.errors import BulkmmError, Exit
from bulkmm.lab import command as lab


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    top = argparse.ArgumentParser(
        prog="bulkmm",
        description="Bulk memory management by the range: before and after.",
    )
    sub = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lab.add_parser(sub)
    bench.add_parser(sub)
    demo.add_parser(sub)
    show.add_parser(sub)
    compare.add_parser(sub)
    plot.add_parser(sub)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command; every error is one line and a documented exit code."""
    args = parser().parse_args(argv)
    try:
        code: int = args.run(args)
    except BulkmmError as error:
        print(f"bulkmm: {error}", file=sys.stderr)
        return error.exit
    except KeyboardInterrupt:
        print("bulkmm: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.OK
    return code


if __name__ == "__main__":
    sys.exit(main())
