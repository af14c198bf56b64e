# SPDX-License-Identifier: GPL-2.0-only
"""The options of all commands, as tables: one meaning for each.

docs/command.md states the conventions; tests/command/test_conventions.py checks
every command.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeAlias

from bulkmm.errors import UsageError

# argparse has no public name, and the class is not subscriptable at run time
Subparsers: TypeAlias = "argparse._SubParsersAction[Any]"  # noqa: SLF001
TYPES = {"N": int, "SECONDS": int}  # by metavar
PATHS = {"--output", "--root", "--json-dir", "--submit-file", "--compare"}
MANY = {"...": "*", "+": "+", "]": "?"}  # nargs by the end of a word
RANGE = re.compile(r"(\w+)<([\d.]+?)\.\.([\d.]*)>(\|auto)?")
# Options of several commands.
JSON = "--json  print the result as JSON, and errors too"
MARKDOWN = "--markdown  print it in Markdown"
SAMPLES = "-o, --output FILE  write the result, all samples as JSON, to this file"
RESULTS = "results:RESULT.json+  read this kept result; several make one"
DRY_RUN = "--dry-run  show what would be written, and write nothing"
ALL_ROWS = "--all-rows  show every backend and limit too"


class Help(argparse.HelpFormatter):
    """Wraps all but the example, which users copy."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        wrapped = [super(Help, self)._fill_text(one, width, indent) for one in parts]
        kept = [
            indent + one if one.startswith("example: ") else filled
            for one, filled in zip(parts, wrapped, strict=True)
        ]
        return "\n\n".join(kept)


def add_all(commands: str, sub: Subparsers) -> dict[str, argparse.ArgumentParser]:
    """Add the commands of a text, an empty line after each; return them by their words.

    The first line of one has its words, what runs ("module:function" below bulkmm,
    imported only then: --help and other commands do not wait for it), and what those
    below it are called, if any. Indented lines follow: what it does, an example, more
    about it; and then its arguments (see take).
    """
    groups, made = {"": sub}, {}
    for block in re.split(r"\n\n+", commands.strip()):
        first, does, *lines = block.splitlines()
        words, run, *below = first.split(": ")
        told = {"example": "", "usage": ""}
        about = ""
        while lines and lines[0].startswith(" "):
            line = lines.pop(0).strip()
            name, _, value = line.partition(": ")
            if name in told:
                told[name] = value
            else:
                about += f"{line} "
        above, _, name = words.rpartition(" ")
        example = f"example: bulkmm {words} {told['example']}".rstrip()
        one = made[words] = groups[above].add_parser(
            name,
            help=does.strip(),
            description=f"{about}\n\n{example}" if about else None,
            formatter_class=Help,
        )
        one.set_defaults(run=run and f"bulkmm.{run}")
        one.usage = f"%(prog)s [-h] {told['usage']}" if told["usage"] else None
        take(one, "\n".join(lines))
        if below:
            groups[words] = one.add_subparsers(
                dest="action", required=not run, metavar=below[0]
            )
    return made


def take(parser: argparse.ArgumentParser | argparse._ArgumentGroup, table: str) -> None:
    """Add a command's arguments: one entry per line, two spaces before its help.

    ``--flag``; ``--option VALUE``, ``{one,of,these}``; ``WORD``, ``[WORD]`` if it
    may be left out, ``-o!`` if it may not; ``...``: any number of times, ``+``: at
    least once.
    ``name:WORD`` sets another name of the attribute. ``N<1..8>``, ``N<1..>``: a number
    in this range; ``N<1..>|auto``: or auto, which is 0. `` = VALUE``: the default.
    """
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
        value, how["type"] = _read_as(value, flags)
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
        parser.add_argument(*(flags or [name.strip("[") or value.lower()]), **how)


def _read_as(value: str, flags: list[str]) -> tuple[str, Callable[[str], object]]:
    """Return how --help writes a value, and what reads it."""
    if bounds := RANGE.fullmatch(value):
        name, least, most, auto = bounds.groups(default="")
        kind = float if "." in least else int
        ends = kind(least), kind(most) if most else None
        return name + auto, partial(_number, kind, *ends, auto)
    if PATHS & {*flags} or (not flags and value.endswith(".json")):
        return value, Path
    return value, TYPES.get(value, str)


def _number(
    kind: type[float], least: float, most: float | None, auto: str, text: str
) -> float:
    """Return the number on a command line; reject one out of range."""
    if auto and text == "auto":
        return 0
    wanted = f"{text}: give {_span(least, most)}{', or auto' if auto else ''}"
    try:
        value = kind(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(wanted) from error
    if _outside(value, least, most):
        raise argparse.ArgumentTypeError(wanted)
    return value


def _outside(value: float, least: float, most: float | None) -> bool:
    return not (value >= least and (most is None or value <= most))  # nor NaN


def _span(least: float, most: float | None) -> str:
    return f"{least} or more" if most is None else f"{least} to {most:g}"


@dataclass(frozen=True)
class Opt:
    """An option that is a field of a dataclass (see opt)."""

    help: str
    value: str = ""  # as --help has it; "": a flag, or one of the choices
    read: Callable[[str], object] = str
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    group: str = ""  # the heading that begins here
    flag: str = ""  # "": as the field is called

    def check(self, name: str, value: Any) -> None:  # noqa: ANN401
        """Reject a value out of range."""
        if self.least is None or value is None:
            return
        if _outside(value, self.least, self.most):
            wanted = _span(self.least, self.most)
            raise UsageError(f"{flag_of(name, self)} {value}: give {wanted}")


def opt(default: object, says: str, value: str = "", **more: Any) -> Any:  # noqa: ANN401
    """Return a dataclass field that is an option; () as default: any number of times.

    ``default`` may be a function that returns it.
    """
    if value in TYPES:
        more.setdefault("read", TYPES[value])
    about = {"opt": Opt(says, value, **more)}
    if callable(default):
        return field(default_factory=default, metadata=about)
    return field(default=default, metadata=about)


def flag_of(name: str, one: Opt) -> str:
    """Return the option of a field."""
    return one.flag or f"--{name.replace('_', '-')}"


def flags_of(kind: type) -> dict[str, str]:
    """Return the option of each field of a dataclass."""
    return {one.name: flag_of(one.name, one.metadata["opt"]) for one in fields(kind)}


def add_fields(parser: argparse.ArgumentParser, kind: type) -> None:
    """Add the options that a dataclass declares; None: not given."""
    group: argparse._ActionsContainer = parser
    for one in fields(kind):
        declared: Opt = one.metadata["opt"]
        if declared.group:
            group = parser.add_argument_group(declared.group)
        how: dict[str, Any] = {"help": declared.help, "dest": one.name}
        if not declared.value and not declared.choices:
            how |= {"action": "store_const", "const": True}
        else:
            how |= {"type": declared.read, "metavar": declared.value or None}
            how |= {"choices": declared.choices or None}
            how |= {"action": "append"} if one.default == () else {}
        group.add_argument(flag_of(one.name, declared), **how)


def given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """Return the fields of a dataclass that a command line sets."""
    found = {one.name: getattr(args, one.name) for one in fields(kind)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in found.items()
        if value is not None
    }
