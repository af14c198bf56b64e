# SPDX-License-Identifier: GPL-2.0-only
"""The result document: what a lab or bench run leaves behind as JSON.

Schema version 1. ``results`` holds every raw sample; ``ratios`` are always
time of the base / time of the variant, so above 1 is faster than the base.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bulkmm.errors import BulkmmError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 1


@dataclass
class Result:
    """One arm of one scenario, with every raw sample in order taken."""

    scenario: str
    variant: str
    unit: str  # "ns"
    bytes: int  # bytes written by one operation
    samples: list[float]
    median: float
    ci95: tuple[float, float]


@dataclass
class Ratio:
    """Time of the base divided by time of the variant."""

    scenario: str
    base: str
    variant: str
    ratio: float
    ci95: tuple[float, float]
    significant: bool


@dataclass
class Check:
    """A correctness check: name, verdict, and what was seen."""

    name: str
    ok: bool
    detail: str


@dataclass
class Document:
    """Everything one run leaves behind."""

    machine: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> str:
        """Return the document as indented JSON, keys in a stable order."""
        ordered = {"schema_version": self.schema_version, **asdict(self)}
        return json.dumps(ordered, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> Document:
        """Return the document in a file; say what is wrong with any other."""
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            if held["schema_version"] != SCHEMA_VERSION:
                version = held["schema_version"]
                raise BulkmmError(f"{path}: schema version {version} is not known")
            return cls(
                machine=held["machine"],
                results=[Result(**r) for r in held["results"]],
                ratios=[Ratio(**r) for r in held["ratios"]],
                checks=[Check(**c) for c in held["checks"]],
                run=held["run"],
            )
        except OSError as error:
            raise BulkmmError(f"{path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BulkmmError(f"{path}: not a bulkmm result: {error}") from error

    def write(self, path: Path) -> None:
        """Write the document in one step, so that no half file is left."""
        part = path.with_name(path.name + ".part")
        part.write_text(self.to_json(), encoding="utf-8")
        part.replace(path)
