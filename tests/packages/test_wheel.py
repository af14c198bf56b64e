# SPDX-License-Identifier: GPL-2.0-only
"""The wheel, alone in a fresh environment: control needs no other library."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import run_program

from bulkmm import libraries
from lab.machine import debs

ROOT = Path(__file__).parents[2]
RESULT = str(next((ROOT / "results").glob("*/bench.json")))
PIP = ("-m", "pip", "-q", "--disable-pip-version-check")
UNCOMPILED = {**os.environ, "PIP_NO_COMPILE": "no"}  # as pip wants it said


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, in a directory of its own."""
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        ["make", "-C", ROOT, "wheel", f"WHEELS={place}"], check=True, timeout=300
    )
    (path,) = place.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def command(wheel: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return what runs the command as installed."""
    place = wheel.parent
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    python = place / "venv/bin/python"
    subprocess.run([python, *PIP, "install", "--no-deps", wheel], check=True)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return run_program(
            [place / "venv/bin/bulkmm", *words], cwd=place, env=environment
        )

    return run


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--version",), 0, f"bulkmm {debs.read_version()}\n"),
        (("doctor", "--json", "--root", "here"), 1, '"kind": "doctor"'),
        (("status", "--root", "here"), 0, "memmap"),
        (("lab", "run", "packages"), 3, "bulkmm: "),
        (("show", RESULT), 3, "/venv/bin/python -m pip install msgspec numpy"),
    ],
)
def test_what_it_does_alone(
    command: Callable[..., subprocess.CompletedProcess[str]],
    wheel: Path,
    words: tuple[str, ...],
    code: int,
    expected: str,
) -> None:
    home = wheel.parent / "here/sys/kernel/bulkmm/memmap"
    home.mkdir(parents=True, exist_ok=True)
    (wheel.parent / "here/proc/sys/kernel").mkdir(parents=True, exist_ok=True)
    (home.parent / "version").write_text("0.1.0\n")
    (home / "mode").write_text("off [on]\n")
    (home / "hook").write_text("0 memmap_init_zone_device: attached\n")
    result = command(*words)
    assert (result.returncode, expected in result.stdout + result.stderr) == (
        code,
        True,
    ), result
    assert result.stderr.count("\n") <= 1


def test_its_instructions_install_what_results_need(
    command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Followed as they are printed."""
    for _ in libraries.GROUPS:
        result = command("show", RESULT)
        if not result.returncode:
            break
        remedy = result.stderr.partition(" is not installed: ")[2]
        subprocess.run(["sh", "-ec", remedy], check=True, timeout=600, env=UNCOMPILED)
    assert "GB/s" in result.stdout
