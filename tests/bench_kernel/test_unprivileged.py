# SPDX-License-Identifier: GPL-2.0-only
"""A bench of a kernel's code without root, and of what is no kernel."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from nativelib import Pair
from programs import run_program

from bench.kernel import vmlinux
from bulkmm.shell.errors import BulkmmError, Exit

pytestmark = pytest.mark.lab


@pytest.fixture
def open_to_all(older: Pair) -> Iterator[Pair]:
    """Kernel and module where every user can read them."""
    place = Path(tempfile.mkdtemp(prefix="bulkmm-test-"))
    try:
        place.chmod(0o755)
        for file in (older.kernel, older.module):
            shutil.copy(file, place)
            (place / file.name).chmod(0o644)
        kernel, module = place / older.kernel.name, place / older.module.name
        yield replace(older, kernel=kernel, module=module)
    finally:
        shutil.rmtree(place)


def as_nobody(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user who owns nothing.

    The one capability is to reach the interpreter, wherever root has it.
    """
    reach = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *reach]
    return run_program(
        [*nobody, sys.executable, "-m", "bulkmm.cli", *words],
        timeout=900,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )


def test_a_bench_without_root(open_to_all: Pair) -> None:
    words = ("bench", "kernel", "vmap", "--scenario", "vmap-1page", "--processes", "2")
    words += ("--kernel", str(open_to_all.kernel), "--module", str(open_to_all.module))
    result = as_nobody(*words, "--json")
    assert result.returncode == Exit.OK, result.stderr
    document = json.loads(result.stdout)
    assert {row["variant"] for row in document["results"]} >= {"stock", "pte"}


def test_an_image_that_root_alone_can_read(open_to_all: Pair) -> None:
    open_to_all.kernel.chmod(0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(BulkmmError, match="Permission denied: have root make a"):
            vmlinux.read_image(open_to_all.kernel)
    finally:
        os.seteuid(0)
