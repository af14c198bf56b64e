# SPDX-License-Identifier: GPL-2.0-only
"""Which requests the entries hand to the module, and what they leave alone.

The module's own assembly, between functions and a caller that knows what it is
meant to look at. Each filter is asked 20 000 times, mostly about its edges.
"""

import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import armlib
import pytest
from kernelstub import write_headers
from programs import run_program

from lab.paths import PROJECT

MODULE = PROJECT / "module"
TESTS = PROJECT / "tests/module"


@dataclass(frozen=True)
class Machine:
    """How to build for it and run on it."""

    folder: str
    config: str
    compiler: str
    hooks: int


MACHINES = {
    "x86": Machine("x86", "CONFIG_X86_64", "gcc", 13),
    "arm64": Machine("arm64", "CONFIG_ARM64", armlib.GCC, 14),
}


def find_machine(folder: str) -> Machine:
    """Return the machine; skip the test where it cannot be built for or run."""
    machine = MACHINES[folder]
    if machine.folder == "x86" and platform.machine() != "x86_64":
        pytest.skip("runs on x86-64 alone")
    if not shutil.which(machine.compiler):
        pytest.skip(f"needs {machine.compiler}: scripts/setup tests")
    return machine


def run_trampoline(place: Path, machine: Machine, trampoline: str) -> tuple[int, str]:
    """Build the program with this trampoline; return its exit code and words."""
    write_headers(place)
    (place / machine.folder).mkdir()
    (place / machine.folder / "trampoline.S").write_text(trampoline)
    program = str(place / "program")
    shutil.copy(MODULE / "trampolines.S", place)
    sources = [str(TESTS / "filters.c"), str(place / "trampolines.S")]
    flags = ["-O2", "-Wall", "-Werror", "-static", "-Wl,-z,noexecstack"]
    flags += [f"-D{machine.config}", f"-I{place}"]
    argv = [machine.compiler, *flags, "-o", program, *sources]
    subprocess.run(argv, check=True, timeout=60)
    runner = [armlib.qemu()] if machine.folder == "arm64" else []
    result = run_program([*runner, program])
    return result.returncode, result.stdout


def write_source(machine: Machine) -> str:
    return (MODULE / machine.folder / "trampoline.S").read_text()


@pytest.mark.parametrize("folder", MACHINES)
def test_each_request_goes_where_it_is_meant_to(tmp_path: Path, folder: str) -> None:
    machine = find_machine(folder)
    code, output = run_trampoline(tmp_path, machine, write_source(machine))
    assert code == 0, output
    ways = re.findall(r"(\d+) to the body, (\d+) to the handler", output)
    assert len(ways) == machine.hooks
    assert all(int(count) > 100 for way in ways for count in way), output


@pytest.mark.parametrize(
    ("folder", "old", "new"),
    [
        ("x86", "jb	1f", "jl	1f"),
        ("x86", "jb	1f", "jbe	1f"),
        ("x86", "or	\\other, %rax", "nop"),
        ("x86", "test	$(PMD_SIZE - 1)", "test	$(PMD_SIZE)"),
        ("x86", "mov	\\arg, %rax", "mov	\\arg, %rcx"),
        ("arm64", "b.lo	1f", "b.lt	1f"),
        ("arm64", "cmp	\\arg, w16", "cmp	x1, x16"),
        ("arm64", "orr	x17, x17, \\other", "nop"),
        ("arm64", "#0, ne", "#0, eq"),
        ("arm64", "#0, eq", "#2, eq"),
        ("arm64", "sub	x17, \\arg, \\from", "sub	x3, \\arg, \\from"),
    ],
)
def test_a_wrong_filter_shows(tmp_path: Path, folder: str, old: str, new: str) -> None:
    machine = find_machine(folder)
    right = write_source(machine)
    assert old in right
    code, output = run_trampoline(tmp_path, machine, right.replace(old, new))
    assert code == 1, output
    assert " instead of " in output
