# SPDX-License-Identifier: GPL-2.0-only
"""libFuzzer on the core for a bounded time, from the kept corpus on.

BMM_FUZZ_SECONDS is the time for each target. To keep what a long run found,
write its inputs, merged, to corpus/TARGET.json as hexadecimal numbers.
"""

import os
import shutil
from pathlib import Path

import pytest
from corelib import CORPUS, FUZZ_TARGETS, ROOT, kept_inputs, meson
from programs import completed

FUZZ = ROOT / "build" / "fuzz"
SECONDS = int(os.environ.get("BMM_FUZZ_SECONDS", "3"))


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize("target", FUZZ_TARGETS)
def test_fuzz(target: str, tmp_path: Path) -> None:
    program = f"fuzz-{target}"
    options = ("-Db_sanitize=address,undefined", "-Db_lundef=false")
    meson(FUZZ, *options, compiler="clang", target=program)
    kept_inputs(target, tmp_path)
    done = completed(
        [FUZZ / program, f"-max_total_time={SECONDS}", tmp_path],
        cwd=tmp_path,
        env={"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
        timeout=SECONDS + 60,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_target_has_a_corpus() -> None:
    programs = {p.stem for p in (CORPUS.parent / "fuzz").glob("*.c")} - {"replay"}
    assert {p.stem for p in CORPUS.glob("*.json")} == programs == set(FUZZ_TARGETS)
