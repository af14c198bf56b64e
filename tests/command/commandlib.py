# SPDX-License-Identifier: GPL-2.0-only
"""What a command left behind, and the schema it must keep to."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from programs import run_program

from bulkmm.control.json_output import make_schema

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Return what is on stdout without the ends of its lines."""
        return " ".join(self.out.split())

    @property
    def json(self) -> dict[str, Any]:
        """Return the one document on stdout, as the schema describes it."""
        document: dict[str, Any] = json.loads(self.out)
        check_schema(document)
        return document


@cache
def make_validator() -> jsonschema.protocols.Validator:
    """Return what checks documents; checking the schema itself takes longer."""
    schema = make_schema()
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return validator(schema)


def check_schema(document: dict[str, Any]) -> None:
    """Check a document against the schema that `bulkmm status --schema` prints."""
    make_validator().validate(document)


Command = Callable[..., Result]


def list_imports(lines: Sequence[str], *modules: str) -> list[str]:
    """Return which of these modules any of the commands imports."""
    script = (
        "import shlex, sys; from bulkmm import cli;"
        "[cli.main(shlex.split(line)) for line in sys.argv[1:]];"
        f"print('imported', *{{*{modules}}} & {{*sys.modules}})"
    )
    last = run_program([sys.executable, "-c", script, *lines]).stdout.splitlines()[-1]
    return last.split()[1:]


def walk_commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Return every command, those that have others below them too."""
    yield tuple(parser.prog.split()), parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from walk_commands(subparser)
