# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor --measure``: without root, and what is in its way."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from nativelib import Pair

from bulkmm import cli
from bulkmm.errors import BulkmmError, Exit
from bulkmm.native import command, vmlinux

pytestmark = pytest.mark.lab

SCHEMA = Path(__file__).parents[2] / "docs" / "result.schema.json"


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
    return subprocess.run(
        [*nobody, sys.executable, "-m", "bulkmm.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )


def test_doctor_measures_without_root(open_to_all: Pair) -> None:
    words = ("doctor", "--measure", "--kernel", str(open_to_all.kernel))
    done = as_nobody(*words, "--module", str(open_to_all.module), "--json")
    assert done.returncode == Exit.OK, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert {row["variant"] for row in document["results"]} >= {"stock", "bulkmm", "pte"}


def test_doctor_measures_the_kernel_alone(open_to_all: Pair) -> None:
    words = ("doctor", "--measure", "--kernel", str(open_to_all.kernel))
    done = as_nobody(*words, "--module", "none")
    assert done.returncode == Exit.OK, done.stderr
    first, *lines = done.stdout.splitlines()
    assert "kernel 6.12." in first
    for path in command.SUBJECTS:
        assert any(re.match(rf"{path}: .* at most \d+\.\d\d", line) for line in lines)
    assert any(line.startswith("No bulkmm.ko") for line in lines)


def test_an_image_that_root_alone_can_read(open_to_all: Pair) -> None:
    open_to_all.kernel.chmod(0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(BulkmmError, match="Permission denied: have root make a"):
            vmlinux.read(open_to_all.kernel)
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--kernel", "x"], Exit.USAGE, "say what to --measure"),
        (["--measure", "--kernel", "./none"], Exit.ENVIRONMENT, "no such file"),
        (["--measure", "--kernel", "5.10"], Exit.USAGE, "unknown kernel 5.10"),
        (["--measure", "--kernel", __file__], Exit.ENVIRONMENT, "not a kernel image"),
    ],
)
def test_what_doctor_refuses(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", *words]) == code
    assert said in capsys.readouterr().err


def test_the_running_kernel_without_an_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tmp_path / "proc/sys/kernel/osrelease"
    release.parent.mkdir(parents=True)
    release.write_text("7.3.99-odd")
    assert cli.main(["doctor", "--measure", "--root", str(tmp_path)]) == (
        Exit.ENVIRONMENT
    )
    assert "/boot/vmlinuz-7.3.99-odd" in capsys.readouterr().err
