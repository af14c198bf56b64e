# SPDX-License-Identifier: GPL-2.0-only
"""The chooser as it is built: by many threads at once, needing no library."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from choosesim import SOURCES, compile_with


def concurrent(sanitizer: str) -> subprocess.CompletedProcess[str]:
    """Run four threads on one chooser under a sanitizer."""
    source = Path(__file__).with_name("chooseconcurrent.c")
    how = [f"-fsanitize={sanitizer}", "-pthread"]
    made = compile_with("concurrent", str(source), *SOURCES, *how)
    done = subprocess.run(
        [str(made)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={"TSAN_OPTIONS": "halt_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1"},
    )
    shutil.rmtree(made.parent)
    return done


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_concurrent_use(sanitizer: str) -> None:
    done = concurrent(sanitizer)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout == "0 wrong, best 0\n"


ALONE = ["-nostdlib", "-Wl,--no-undefined"]


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_needs_nothing_of_its_host() -> None:
    """Neither a library function nor, on any CPU, atomics from a library."""
    for level in ("-O0", "-O2", "-Os", "-O3"):
        made = compile_with("choose.so", "-shared", "-fPIC", level, *SOURCES, *ALONE)
        listing = subprocess.run(
            ["nm", "-u", str(made)], check=True, capture_output=True, text=True
        )
        shutil.rmtree(made.parent)
        assert not listing.stdout
