# SPDX-License-Identifier: GPL-2.0-only
"""The bench program, built before the tests of this directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    build = ROOT / "build" / "native"
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    steps = [["meson", "compile", "-C", build]]
    if not (build / "build.ninja").exists():
        steps.insert(0, ["meson", "setup", build, ROOT])
    for step in steps:
        subprocess.run(step, check=True, env=environment, capture_output=True)
