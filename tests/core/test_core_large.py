# SPDX-License-Identifier: GPL-2.0-only
"""Lengths beyond 4 GiB: real ones, over the same 2 MiB of memory again and again."""

import subprocess

from corelib import NATIVE, backend_names, meson


def test_no_backend_cuts_a_length() -> None:
    meson(NATIVE, target="bmm-large")
    done = subprocess.run(
        [str(NATIVE / "bmm-large")],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    wanted = [f"{name}: 0 wrong" for name in backend_names()]
    assert (done.stdout.splitlines(), done.stderr) == (wanted, "")
    assert done.returncode == 0
