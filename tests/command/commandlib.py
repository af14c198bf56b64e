# SPDX-License-Identifier: GPL-2.0-only
"""What a command left behind, and the schema it must keep to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "control.schema.json").read_text())


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Return the one document on stdout, as the schema describes it."""
        held: dict[str, Any] = json.loads(self.out)
        valid(held)
        return held


def valid(held: dict[str, Any]) -> None:
    """Check a document against the schema that the docs have."""
    checker = jsonschema.FormatChecker()
    jsonschema.validate(held, SCHEMA, format_checker=checker)


Command = Callable[..., Done]
