# SPDX-License-Identifier: GPL-2.0-only
"""What the packages are made of says the same thing everywhere."""

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from bulkmm.control import requirements
from lab.machine import debs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()
GUEST = (ROOT / "lab" / "guest" / "packages.sh").read_text()


def test_one_version() -> None:
    """That of debian/changelog, and of pyproject.toml."""
    assert debs.read_version() == metadata.version("bulkmm")


def test_the_example_sets_parameters_that_there_are() -> None:
    text = (ROOT / "debian/examples/modprobe.d-bulkmm.conf").read_text()
    paths = {one.name for one in requirements.read_table("x86_64").paths}
    (options,) = re.findall(r"^options bulkmm (.*)$", text, re.MULTILINE)
    for word in options.split():
        assert word.partition("=")[0] in paths


def test_units_are_valid(tmp_path: Path) -> None:
    """But for their program, which is not installed here."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    units = [*(ROOT / "debian").glob("bulkmm.*.service")]
    units += (ROOT / "debian").glob("bulkmm.*.socket")
    for unit in units:
        text = unit.read_text().replace("=/usr/bin/bulkmm ", "=/usr/bin/true ")
        (tmp_path / unit.name.removeprefix("bulkmm.")).write_text(text)
    files = [str(path) for path in tmp_path.iterdir()]
    command = ["systemd-analyze", "verify", "--man=no", *files]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (len(files), result.returncode, result.stderr) == (3, 0, "")


def test_the_page_purges_what_the_guest_does() -> None:
    (purged,) = re.findall(r'^PURGED="(.*)"$', GUEST, re.MULTILINE)
    assert f"\napt purge {purged}\n" in PAGE
