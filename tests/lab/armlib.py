# SPDX-License-Identifier: GPL-2.0-only
"""What builds programs for arm64, and what runs them."""

import os
import shutil

import pytest
from lablib import lock_root

from lab.machine import root
from lab.paths import cache_dir

GCC = "aarch64-linux-gnu-gcc"

needs_gcc = pytest.mark.skipif(
    not shutil.which(GCC), reason=f"needs {GCC}: scripts/setup tests"
)


def qemu() -> str:
    """Return the lab's QEMU, made if need be: Debian 12's own does not know MOPS."""
    program = root.locate_root(cache_dir()).path / "usr/bin/qemu-aarch64"
    if not program.exists():
        if os.geteuid() != 0:
            pytest.skip("needs the lab: bulkmm lab prepare, as root")
        with lock_root():
            pass
    return str(program)
