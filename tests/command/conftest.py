# SPDX-License-Identifier: GPL-2.0-only
"""What the command's tests share: a kernel of their own, and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fakekernel
import jsonschema
import pytest

from bulkmm import cli

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


@pytest.fixture
def kernel(tmp_path: Path) -> fakekernel.Fake:
    """Return a kernel without the module."""
    return fakekernel.kernel(tmp_path / "root")


@pytest.fixture
def loaded(kernel: fakekernel.Fake) -> fakekernel.Fake:
    """Return a kernel with the module."""
    return fakekernel.load(kernel)


@pytest.fixture
def bulkmm(kernel: fakekernel.Fake, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return what runs a command on that kernel; never more than a line of errors."""

    def run(command: str, *words: str) -> Done:
        code = cli.main([command, *words, "--root", str(kernel.root)])
        said = capsys.readouterr()
        assert said.err.count("\n") <= 1, said.err
        assert "Traceback" not in said.err
        return Done(code, said.out, said.err.strip())

    return run
