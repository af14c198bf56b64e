# SPDX-License-Identifier: GPL-2.0-only
"""The command's parser as a tree: what man page and completion are made of."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


@dataclass(frozen=True)
class Argument:
    """An option, or a word that stands for itself."""

    flags: tuple[str, ...]  # none: a word
    value: str  # how its value is spoken of; "" if it has none
    about: str
    words: tuple[str, ...] = ()  # the valid ones, if few
    optional: bool = False
    many: bool = False

    def synopsis(self) -> str:
        """Return how it is written, such as [--json FILE] or PATH..."""
        value = f"{self.value}..." if self.many else self.value
        said = f"{self.flags[-1]} {value}".strip() if self.flags else value
        return f"[{said}]" if self.optional else said


@dataclass
class Command:
    """A command, what it takes, and the commands below it."""

    words: tuple[str, ...]  # from the program's name on
    about: str
    description: str
    arguments: list[Argument] = field(default_factory=list)
    below: list[Command] = field(default_factory=list)

    @property
    def options(self) -> list[Argument]:
        """Return what begins with a hyphen."""
        return [one for one in self.arguments if one.flags]

    @property
    def positionals(self) -> list[Argument]:
        """Return what does not."""
        return [one for one in self.arguments if not one.flags]

    def walk(self) -> Iterator[Command]:
        """Return it and all below it."""
        yield self
        for one in self.below:
            yield from one.walk()


def tree(parser: argparse.ArgumentParser, about: str = "") -> Command:
    """Return a parser as a tree."""
    made = Command(tuple(parser.prog.split()), about, parser.description or "")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            made.below = list(_below(action))
        else:
            made.arguments.append(_argument(action))
    return made


def _below(action: Subparsers) -> Iterator[Command]:
    helps = {one.dest: one.help or "" for one in action._choices_actions}
    for name, parser in action.choices.items():
        yield tree(parser, helps[name])


def _argument(action: argparse.Action) -> Argument:
    words = tuple(map(str, action.choices or ()))
    value = ""
    if action.nargs != 0:
        dest = action.dest if not action.option_strings else action.dest.upper()
        value = str(action.metavar or ("|".join(words) if words else dest.upper()))
    return Argument(
        flags=tuple(action.option_strings),
        value=value,
        about=(action.help or "").replace("%%", "%"),
        words=words,
        optional=not action.required or action.nargs in ("?", "*"),
        many=action.nargs in ("*", "+"),
    )
