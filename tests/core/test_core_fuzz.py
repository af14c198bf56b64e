# SPDX-License-Identifier: GPL-2.0-only
"""libFuzzer on learning for a bounded time, from the kept inputs on.

BMM_FUZZ_SECONDS is the time. To keep what a long run found, write its inputs,
merged, to fuzz_learn.json as hexadecimal numbers.
"""

import os
import shutil
from pathlib import Path

import pytest
from corelib import FUZZ, build_target, kept_inputs
from programs import run_program

SECONDS = int(os.environ.get("BMM_FUZZ_SECONDS", "3"))


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
def test_fuzz(tmp_path: Path) -> None:
    build_target(FUZZ, compiler="clang", target="bmm-fuzz")
    kept_inputs(tmp_path)
    result = run_program(
        [FUZZ / "bmm-fuzz", f"-max_total_time={SECONDS}", tmp_path],
        cwd=tmp_path,
        env={"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
        timeout=SECONDS + 60,
    )
    assert result.returncode == 0, result.stderr[-4000:]
