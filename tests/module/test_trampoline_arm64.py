# SPDX-License-Identifier: GPL-2.0-only
"""The entry on arm64 where text is guarded: Debian's kernels are not (BTI)."""

import subprocess
from pathlib import Path

import armlib
import pytest
from kernelstub import write_headers

from lab.paths import PROJECT

MODULE = PROJECT / "module"
SOURCE = PROJECT / "tests/module/trampoline_arm64.S"
SIGILL = 128 + 4

pytestmark = [pytest.mark.lab, armlib.needs_gcc]


def run_trampoline(place: Path, trampoline: str, cpu: str = "max") -> int:
    """Build the program with this trampoline and return its exit code."""
    write_headers(place)
    (place / "arm64").mkdir()
    (place / "arm64/trampoline.S").write_text(trampoline)
    program = str(place / "program")
    flags = ["-nostdlib", "-static", f"-I{place}"]
    subprocess.run([armlib.GCC, *flags, "-o", program, SOURCE], check=True, timeout=60)
    code = subprocess.run(
        [armlib.qemu(), "-cpu", cpu, program], check=False, timeout=60
    ).returncode
    return 128 - code if code < 0 else code


@pytest.fixture
def trampoline() -> str:
    return (MODULE / "arm64/trampoline.S").read_text()


@pytest.mark.parametrize("cpu", ["max", "cortex-a72"])
def test_body_and_handler_are_reached(
    tmp_path: Path, trampoline: str, cpu: str
) -> None:
    assert run_trampoline(tmp_path, trampoline, cpu) == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ret	x16", "br	x16"),  # to a body without a landing pad
        ("hint	34", "nop"),  # the way back is called through a pointer
    ],
)
def test_landing_pads_are_checked(
    tmp_path: Path, trampoline: str, old: str, new: str
) -> None:
    assert old in trampoline
    assert run_trampoline(tmp_path, trampoline.replace(old, new)) == SIGILL
