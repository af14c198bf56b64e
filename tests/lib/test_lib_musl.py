# SPDX-License-Identifier: GPL-2.0-only
"""The library without glibc: static programs, as virtual machine monitors often are."""

import os
import shutil
from pathlib import Path

import pytest
from corelib import ROOT, build_target
from installed import STRICT, run_checked

BUILD = ROOT / "build" / "musl"
# musl-gcc leaves out where <linux/…> is on Debian.
HEADERS = [f"-idirafter{at}" for at in ("/usr/include", "/usr/include/{}-linux-gnu")]


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="scripts/setup tests")
def test_a_static_program_populates_with_two_threads(tmp_path: Path) -> None:
    headers = [header.format(os.uname().machine) for header in HEADERS]
    build_target(
        BUILD,
        f"-Dc_args={' '.join(headers)}",
        compiler="musl-gcc",
        target="lib/libbulkmm.a",
    )
    program = tmp_path / "musl"
    source = ROOT / "tests" / "lib" / "musl.c"
    include = [f"-I{ROOT / 'core'}", f"-I{ROOT / 'lib'}"]
    words = [source, "-o", program, BUILD / "lib" / "libbulkmm.a"]
    run_checked("musl-gcc", *STRICT, "-static", *include, *words)
    assert "INTERP" not in run_checked("readelf", "-l", program)
    threads, failure = run_checked(program).splitlines()
    assert threads == f"threads: {min(2, len(os.sched_getaffinity(0)))}"
    assert "nothing is mapped there (Out of memory)" in failure
