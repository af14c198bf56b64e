# SPDX-License-Identifier: GPL-2.0-only
"""What path prezero knows of 16 TiB of pages, and the memory for it."""

import re
import subprocess
from pathlib import Path

import pytest
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
TESTED = ROOT / "module/prezero_bitmap.c"
HEADER = TESTED.with_suffix(".h")
MODEL = ROOT / "tests/module/knownsim.c"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wno-unused-function", "-Werror"]
MOST = 1 << 20  # bytes
BROKEN = (
    ("% CHUNK_BITS", "% (CHUNK_BITS / 2)"),  # two pages share a bit
    ("atomic_long_dec(", "(void)("),  # counted for ever
    ("WRITE_ONCE(opened, false)", "WRITE_ONCE(opened, true)"),
    ("free_page((unsigned long)chunk);\n\t}", "}"),  # chunks that are left
)


def run_bits(place: Path, text: str) -> tuple[int, int]:
    """Return the bytes that the bits took, and how many answers were wrong."""
    tested, program = place / "tested.c", place / "knownsim"
    tested.write_text(text)
    (place / "linux").mkdir()
    for name in re.findall(r"#include <(.*)>", text + HEADER.read_text()):
        (place / name).touch()  # the model has what they are included for
    command = ["cc", *FLAGS, f"-I{place}", f"-I{HEADER.parent}"]
    command += [f'-DTESTED="{tested}"', str(MODEL), "-o", str(program)]
    subprocess.run(command, check=True)
    nbytes, wrong = run_program([str(program)], check=True).stdout.split()
    return int(nbytes), int(wrong)


def test_one_bit_a_page(tmp_path: Path) -> None:
    assert run_bits(tmp_path, TESTED.read_text()) == (MOST, 0)


@pytest.mark.parametrize("change", BROKEN)
def test_the_model_sees_what_is_broken(tmp_path: Path, change: tuple[str, str]) -> None:
    text = TESTED.read_text()
    assert text.count(change[0]) == 1
    assert run_bits(tmp_path, text.replace(*change))[1] > 0
