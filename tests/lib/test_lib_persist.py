# SPDX-License-Identifier: GPL-2.0-only
"""bmm_persist(): which lines it writes back, and where it says that it cannot."""

import platform
from pathlib import Path

import pytest
from corelib import NATIVE, build_target
from programs import run_program


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")
@pytest.mark.parametrize("instruction", ["clwb", "clflushopt", "clflush"])
def test_every_line_is_written_back_once_and_then_fenced(instruction: str) -> None:
    if f" {instruction} " not in Path("/proc/cpuinfo").read_text():
        pytest.skip(f"this CPU has no {instruction}")
    build_target(NATIVE, target="bmm-persisted")
    result = run_program([NATIVE / "bmm-persisted", instruction])
    wanted = f"{instruction}: 200 ranges, 0 wrong\n"
    assert (result.returncode, result.stdout) == (0, wanted)
