# SPDX-License-Identifier: GPL-2.0-only
"""The options of all commands, as tables: one meaning for each.

docs/command.md states the conventions; tests/command/test_conventions.py checks
every command.
"""

import argparse
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import dedent, fill, wrap
from typing import Any, TypeAlias

# argparse has no public name, and the class is not subscriptable at run time
Subparsers: TypeAlias = "argparse._SubParsersAction[Any]"  # noqa: SLF001
Read: TypeAlias = Callable[[str], object]
Reads: TypeAlias = Mapping[str, Read]
TYPES: Reads = {"N": int, "SECONDS": int}  # by metavar
PATHS = {"--output", "--root", "--json-dir", "--submit-file", "--compare"}
MANY = {"...": "*", "+": "+", "]": "?"}  # nargs by the end of a word
RANGE = re.compile(r"(\w+)<([\d.]+?)\.\.([\d.]*)>(\|auto)?")
WIDTH = 78  # of what --help says above the example, which users copy
# Options of several commands.
JSON = "--json  print the result as JSON, and errors too"
MARKDOWN = "--markdown  print it in Markdown"
SAMPLES = "-o, --output FILE  write the result, all samples as JSON, to this file"
RESULTS = "results:RESULT.json+  read this kept result; several make one"
DRY_RUN = "--dry-run  show what would be written, and write nothing"
ALL_ROWS = "--all-rows  show every backend and limit too"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """What --help says, without names that are cut at their hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width, break_on_hyphens=False)


def add_all(commands: str, sub: Subparsers) -> dict[str, argparse.ArgumentParser]:
    """Add the commands of a text, an empty line after each; return them by their words.

    The first line of one has its words, what runs ("module:function" below bulkmm,
    imported only then: --help and other commands do not wait for it), and what those
    below it are called, if any. Indented lines follow: what it does, an example, more
    about it; and then its arguments (see take).
    """
    groups, parsers = {"": sub}, {}
    for block in re.split(r"\n\n+", commands.strip()):
        first, does, *lines = block.splitlines()
        words, run, *below = first.split(": ")
        fields = {"example": "", "usage": ""}
        about = ""
        while lines and lines[0].startswith(" "):
            line = lines.pop(0).strip()
            name, _, value = line.partition(": ")
            if name in fields:
                fields[name] = value
            else:
                about += f"{line} "
        above, _, name = words.rpartition(" ")
        paragraph = fill(about, WIDTH, break_on_hyphens=False)
        example = f"example: bulkmm {words} {fields['example']}".rstrip()
        parser = parsers[words] = groups[above].add_parser(
            name,
            help=does.strip(),
            description=f"{paragraph}\n\n{example}" if about else None,
            formatter_class=HelpFormatter,
        )
        parser.set_defaults(run=run)
        parser.usage = f"%(prog)s [-h] {fields['usage']}" if fields["usage"] else None
        add_arguments(parser, "\n".join(lines))
        if below:
            groups[words] = parser.add_subparsers(
                dest="action", required=not run, metavar=below[0]
            )
    return parsers


def add_arguments(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    table: str,
    reads: Reads = TYPES,
) -> list[argparse.Action]:
    """Add and return arguments: one entry per line, two spaces before its help.

    ``--flag``; ``--option VALUE``, ``{one,of,these}``; ``WORD``, ``[WORD]`` if it
    may be left out, ``-o!`` if it may not; ``...``: any number of times, ``+``: at
    least once.
    ``name:WORD`` sets another name of the attribute. ``N<1..8>``, ``N<1..>``: a number
    in this range; ``N<1..>|auto``: or auto, which is 0. `` = VALUE``: the default.
    ``reads``: what reads values, by metavar.
    """
    actions = []
    for entry in filter(None, re.split(r"\n(?! )", dedent(table).strip("\n"))):
        spec, text = re.split(r"  +", entry, maxsplit=1)
        spec, _, default = spec.partition(" = ")
        how: dict[str, Any] = {"help": " ".join(text.split())}
        if default:
            how |= {"default": default, "help": f"{how['help']} (default: %(default)s)"}
        if "!" in spec:
            how["required"] = True
        words = spec.replace("!", "").replace(", -", " -").split()
        flags = [word for word in words if word.startswith("-")]
        name, _, value = "".join(words[len(flags) :]).rpartition(":")
        many = next((n for end, n in MANY.items() if value.endswith(end)), None)
        value = value.strip("[].+")
        value, how["type"] = _read_as(value, flags, reads)
        if value.startswith("{"):
            how["choices"] = value.strip("{}").split(",")
        elif value:
            how["metavar"] = value
        if flags and name:
            how["dest"] = name
        if flags and not value:
            how = {"help": how["help"], "action": "store_true"}
        elif flags and many == "*":
            how["action"] = "append"
        elif many:
            how["nargs"] = many
        names = flags or [name.strip("[") or value.lower()]
        actions.append(parser.add_argument(*names, **how))
    return actions


def _read_as(value: str, flags: list[str], reads: Reads) -> tuple[str, Read]:
    """Return how --help writes a value, and what reads it."""
    if bounds := RANGE.fullmatch(value):
        name, least, most, auto = bounds.groups(default="")
        kind = float if "." in least else int
        ends = kind(least), kind(most) if most else None
        return name + auto, partial(_parse_number, kind, *ends, auto)
    if PATHS & {*flags} or (not flags and value.endswith(".json")):
        return value, Path
    return value, reads.get(value, str)


def _parse_number(
    kind: type[float], least: float, most: float | None, auto: str, text: str
) -> float:
    """Return the number on a command line; reject one out of range."""
    if auto and text == "auto":
        return 0
    span = f"{least} or more" if most is None else f"{least} to {most:g}"
    wanted = f"{text}: give {span}{', or auto' if auto else ''}"
    try:
        value = kind(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(wanted) from error
    if not (value >= least and (most is None or value <= most)):  # nor NaN
        raise argparse.ArgumentTypeError(wanted)
    return value
