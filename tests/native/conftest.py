# SPDX-License-Identifier: GPL-2.0-only
"""The bench program, built before the tests; the command that runs it."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from corelib import NATIVE, ROOT, meson
from eventlib import Bench, FailedWith, Fake
from programs import completed

from bulkmm.bench import measure, subjects
from bulkmm.results import Document


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    meson(NATIVE)


@pytest.fixture(scope="session")
def bench() -> Bench:
    """Run ``bulkmm bench`` with these words and environment."""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return completed(
            [sys.executable, "-m", "bulkmm.cli", "bench", *words],
            env={**os.environ, **environment},
        )

    return run


@pytest.fixture(scope="module")
def small(request: pytest.FixtureRequest) -> Document:
    """Measure what the module of the test calls SMALL."""
    return measure.run_bench(request.module.SMALL)


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """Write a program that stands for the bench program; return its path."""

    def write(lines: list[dict[str, Any]], code: int) -> str:
        said = "\n".join(json.dumps(line) for line in lines)
        path = tmp_path / "bench"
        path.write_text(
            "#!/bin/sh\n"
            '[ "$1" = --list ] && echo generic && exit\n'
            f"cat <<'END'\n{said}\nEND\nexit {code}\n"
        )
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture
def failed_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailedWith:
    """Run with a line of the subject's file replaced; return the checks that fail."""

    def run(edit: str, request: subjects.Request) -> set[str]:
        old, new = edit.split(" => ")
        source = tmp_path / "bench"
        shutil.copytree(ROOT / "bench", source)
        file = source / f"{request.subject.name}.c"
        text = file.read_text()
        assert text.count(old) == 1
        file.write_text(text.replace(old, new))
        program = tmp_path / "bmm-bench"
        core = sorted(NATIVE.glob("libbmm*.a"))
        command = ["cc", "-O2", "-D_GNU_SOURCE", "-pthread"]
        command += [f"-I{ROOT / 'core'}", f"-I{ROOT / 'lib'}", "-o", program]
        if platform.machine() in ("x86_64", "aarch64"):
            command.append("-mgeneral-regs-only")
        others = {source / "populate.c"}  # has a main() of its own
        command += [*sorted({*source.glob("*.c")} - others), *core]
        subprocess.run(command, check=True, capture_output=True)
        monkeypatch.setenv("BULKMM_BENCH", str(program))
        document = measure.run_bench([request])
        assert not document.run["libpmem2"]  # the library is not linked here
        return {check.name for check in document.checks if not check.ok}

    return run
