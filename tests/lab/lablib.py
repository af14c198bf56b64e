# SPDX-License-Identifier: GPL-2.0-only
"""The lab's command, run as its users do."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from programs import run_program

from bulkmm import cli
from bulkmm.shell.errors import Exit
from bulkmm.shell.progress import Progress
from lab import paths
from lab.machine import kernels, root
from lab.machine.arch import X86_64, Arch
from lab.machine.kernels import Kernel
from lab.machine.root import DebianRoot

LAB = [sys.executable, "-m", "bulkmm.cli", "lab", "run"]
Rows = Iterable[tuple[Any, ...]]


def tiers(push: Rows, release: Rows) -> list[Any]:
    """Return what every push shows, and what a release shows besides."""

    def param(row: Any, *marks: pytest.MarkDecorator) -> Any:
        whole = row if isinstance(row[0], tuple) else (row,)
        return pytest.param(*whole, marks=marks)

    return [*map(param, push), *(param(row, pytest.mark.release) for row in release)]


def series(push: str, *without: str) -> list[Any]:
    """Return every series but those without; a push shows one of them."""
    rest = [name for name in kernels.SERIES if name not in (push, *without)]
    return [push, *(pytest.param(name, marks=pytest.mark.release) for name in rest)]


@contextmanager
def lock_root() -> Iterator[DebianRoot]:
    """Give the lab's root, made if need be, with the cache locked meanwhile."""
    with paths.lock_cache(Progress()) as cache:
        yield root.ensure_root(cache, Progress())


@contextmanager
def lock_kernel(name: str, arch: Arch = X86_64) -> Iterator[Kernel]:
    """Give a kernel of the lab, with the cache locked meanwhile."""
    with lock_root() as lab_root:
        yield kernels.fetch_kernel(lab_root, name, Progress(), arch)


def lab(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a scenario, whatever comes of it."""
    return run_program([*LAB, *argv])


def passed(place: Path, *argv: str) -> dict[str, Any]:
    """Run a scenario, all of whose checks must pass; return its document."""
    file = place / "result.json"
    assert cli.main(["lab", "run", *argv, "-o", str(file)]) == Exit.OK
    document: dict[str, Any] = json.loads(file.read_text())
    assert document["checks"]
    assert all(check["ok"] for check in document["checks"])
    return document


def whole(document: dict[str, Any], rounds: int) -> None:
    """Every arm was measured, as often as there were rounds, or in every function."""
    name = document["run"]["scenario"]
    assert document["schema_version"] == 2
    assert document["machine"]["guest"]["accelerator"] in {"KVM", "TCG"}
    assert 0 < document["run"]["peak_rss_bytes"] < 6_000_000_000
    arms = {(r["scenario"], r["variant"]): r["samples"] for r in document["results"]}
    pairs = {(r["base"], r["variant"]) for r in document["ratios"]}
    if name.startswith(("pmem-fsdax", "pmem-devdax")):
        name = min(
            (scenario for scenario, _ in arms), key=len
        )  # by the size of the run
        for scenario in (name, f"{name}-bind"):
            for arm in ("absent", "off", "on"):
                assert len(arms[scenario, arm]) == rounds
                assert min(arms[scenario, arm]) > 0
        assert len(arms[f"{name}-first", "absent"]) == 1
        assert pairs >= {("off", "on"), ("absent", "on"), ("absent", "off")}
    if name == "vmap-check":
        checked = document["run"]["checked"]
        large = {e["arm"]: e["large"] for e in checked if e["label"] == "random"}
        assert large["block"] > 20  # PMD mappings were among them
