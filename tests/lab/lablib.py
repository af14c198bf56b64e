# SPDX-License-Identifier: GPL-2.0-only
"""The lab's command, run as its users do."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bulkmm.errors import Exit
from bulkmm.lab.families import hotplug
from bulkmm.lab.machine import kernels

LAB = [sys.executable, "-m", "bulkmm.cli", "lab", "run"]
# s; below pytest's own limit of a test, which would not show what the lab said
LONGEST = 1100
Rows = Iterable[tuple[str, ...]]


def tiers(push: Rows, release: Rows) -> list[Any]:
    """Return what every push shows, and what a release shows besides."""
    later = [pytest.param(row, marks=pytest.mark.release) for row in release]
    return [*push, *later]


def series(push: str) -> list[Any]:
    """Return every series; a push shows one of them."""
    others = [name for name in kernels.SERIES if name != push]
    return [push, *(pytest.param(name, marks=pytest.mark.release) for name in others)]


def lab(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a scenario, whatever comes of it."""
    return subprocess.run(
        [*LAB, *argv], capture_output=True, text=True, check=False, timeout=LONGEST
    )


def passed(place: Path, *argv: str) -> dict[str, Any]:
    """Run a scenario, all of whose checks must pass; return its document."""
    file = place / "result.json"
    done = lab(*argv, "-o", str(file))
    assert done.returncode == Exit.OK, done.stderr
    document: dict[str, Any] = json.loads(file.read_text())
    assert document["checks"]
    assert all(check["ok"] for check in document["checks"])
    return document


def whole_operations(document: dict[str, Any]) -> None:
    """Both operations by function in each arm, which online as much."""
    graphs = document["run"]["breakdown"]
    assert {(g["operation"], g["variant"]) for g in graphs} == {
        (operation, arm) for operation in ("plug", "unplug") for arm in hotplug.ARMS
    }
    calls = {g["functions"]["online_pages"]["calls"] for g in graphs[::2]}
    assert len(calls) == 1
