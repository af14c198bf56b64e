# SPDX-License-Identifier: GPL-2.0-only
"""What the parsers of all commands share: one meaning for each option.

docs/command.md states the conventions; tests/command/test_conventions.py walks
every command for them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

Subparsers = argparse._SubParsersAction  # noqa: SLF001 - argparse has no other name


class Help(argparse.HelpFormatter):
    """Wraps all but the line with the example, which is to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        wrapped = [super(Help, self)._fill_text(one, width, indent) for one in parts]
        kept = [
            indent + one if one.startswith("example: ") else filled
            for one, filled in zip(parts, wrapped, strict=True)
        ]
        return "\n\n".join(kept)


def add(
    sub: Subparsers[Any], name: str, does: str, more: str, *, run: str, example: str
) -> argparse.ArgumentParser:
    """Add a command.

    ``run`` is "module:function", imported only when the command runs: neither
    --help nor another command waits for it.
    """
    one: argparse.ArgumentParser = sub.add_parser(
        name,
        help=does,
        description=f"{more}\n\nexample: {example}",
        formatter_class=Help,
    )
    one.set_defaults(run=run)
    return one


def add_json(parser: argparse.ArgumentParser, what: str = "the result") -> None:
    """Add --json: on stdout, errors too."""
    parser.add_argument(
        "--json", action="store_true", help=f"print {what} as JSON, and errors too"
    )


def add_output(
    parser: argparse.ArgumentParser,
    what: str,
    *,
    metavar: str = "FILE",
    required: bool = False,
) -> None:
    """Add -o: a file, written in one step."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar=metavar,
        required=required,
        help=f"write {what} to this file",
    )


def add_markdown(parser: argparse.ArgumentParser, what: str = "a table") -> None:
    """Add --markdown: on stdout, or where -o says."""
    parser.add_argument(
        "--markdown", action="store_true", help=f"print {what} in Markdown"
    )


def add_results(parser: argparse.ArgumentParser, metavar: str = "RESULT.json") -> None:
    """Add the kept results that a command reads."""
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar=metavar,
        help="read this kept result; may be given again",
    )


def add_root(parser: argparse.ArgumentParser) -> None:
    """Add --root: another system's files."""
    parser.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="read /sys, /proc and /boot (--persist: /etc) below DIR (default: /)",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add --dry-run."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be written, and write nothing",
    )
