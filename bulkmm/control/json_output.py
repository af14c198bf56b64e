# SPDX-License-Identifier: GPL-2.0-only
"""What the commands print with --json; `bulkmm status --schema` describes it.

New members may be added; others keep their meaning while the version is the same.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Literal

VERSION: Literal[1] = 1
# the modules of all records
FROM = (
    *("control.doctor", "control.switch", "control.watch"),
    *("pool.run", "pool.take", "worth.report"),
)


@dataclass(frozen=True, kw_only=True)
class Record:
    """One document on standard output."""

    schema_version: Literal[1] = VERSION

    def to_json(self, indent: int | None = 1) -> str:
        """Return the document."""
        import json

        return json.dumps(asdict(self), indent=indent)

    def print_output(self, lines: Iterable[str], *, as_json: bool) -> None:
        """Print the document, or what it says as text."""
        for line in [self.to_json()] if as_json else lines:
            print(line)


@dataclass(frozen=True)
class Failure:
    """The line on standard error, and the exit code."""

    message: str
    exit_code: int


@dataclass(frozen=True, kw_only=True)
class Error(Record):
    """Printed instead of any other when a command that was given --json fails."""

    error: Failure


@dataclass(frozen=True)
class ScenarioRecord:
    """A scenario; kernels by architecture, seconds about, under TCG."""

    name: str
    family: str
    about: str  # what is measured, or done
    measures: str  # empty: nothing
    checks: str
    published: list[str]
    memory_mib: int
    seconds: int
    takes: list[str]  # options of lab run that apply
    runs_on: dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Scenarios(Record):
    """Printed by lab list."""

    kind: Literal["scenarios"] = "scenarios"
    scenarios: list[ScenarioRecord]
    kernels: dict[str, list[str]]  # by architecture, what --kernel takes by name


def make_schema() -> dict[str, Any]:
    """Return the JSON schema of all documents."""
    from msgspec.json import schema_components

    for name in FROM:
        import_module(f"bulkmm.{name}")
    kinds = Record.__subclasses__()
    schemas, parts = schema_components(kinds, ref_template="#/$defs/{name}")
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "oneOf": list(schemas), "$defs": parts}
