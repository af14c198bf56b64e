# SPDX-License-Identifier: GPL-2.0-only
"""Every copy that path copy may select, whichever this CPU is fastest with."""

import platform
import subprocess
from pathlib import Path

import pytest
from kernelstub import write_headers
from programs import run_program

from lab.paths import PROJECT

COPIES = PROJECT / "module/x86/copy.S"
PROGRAM = PROJECT / "tests/module/copies.c"
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-Wl,-z,noexecstack"]
SCRIPT = """SECTIONS { .extable : {
  extable = .; KEEP(*(.rodata.extable)) extable_end = .; } } INSERT AFTER .rodata;
"""
BROKEN = 4 * 13 * 8  # functions, pages, words of a line

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="runs on x86-64 alone"
)


def run_filter(place: Path, text: str) -> tuple[int, str]:
    """Return the exit code and the words of the program with this assembly."""
    write_headers(place)
    (place / "copy.S").write_text(text)
    (place / "extable.ld").write_text(SCRIPT)
    program = place / "copies"
    sources = [str(PROGRAM), str(place / "copy.S"), "-T", str(place / "extable.ld")]
    command = ["gcc", *FLAGS, f"-I{place}", *sources, "-o", str(program)]
    subprocess.run(command, check=True)
    result = run_program([str(program)])
    return result.returncode, result.stdout


def test_copies_are_right_and_end_where_a_page_is_broken(tmp_path: Path) -> None:
    text = COPIES.read_text()
    assert text.count("BMM_COPY_STREAMING bmm_") + text.count("SYM_FUNC_END(bmm_") == 4
    assert run_filter(tmp_path, text) == (0, f"{BROKEN} 0\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\tsub\t$4 * 4096, %rax", "\tsub\t$5 * 4096, %rax"),
        ("movnti\t%r11, \\at+24(%rdi)", "movnti\t%r10, \\at+24(%rdi)"),
        ("\tBMM_LOAD \\at+16, %r10", "\tmov\t\\at+16(%rsi), %r10"),
        ("\tBMM_LOAD \\at, %r8", "\tmov\t\\at(%rsi), %r8"),
    ],
)
def test_a_copy_that_is_wrong_is_seen(tmp_path: Path, old: str, new: str) -> None:
    text = COPIES.read_text()
    assert text.count(old) == 1
    assert run_filter(tmp_path, text.replace(old, new)) != (0, f"{BROKEN} 0\n")
