# SPDX-License-Identifier: GPL-2.0-only
"""Every command in the blocks of docs/command.md is run as it stands.

Those of the bench and the lab, on other pages, take minutes and have tests of
their own: here it is made sure that there are such commands and options.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import made
import pytest
from commandlib import ROOT
from fakekernel import Fake, kernel, load

from bulkmm import cli
from bulkmm.lab import scenario

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "command.md").read_text()
BLOCK = re.compile(r"^```\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
COMMANDS = [line for block in BLOCK.findall(PAGE) for line in block.splitlines()]
RESULTS = ("show", "compare", "plot", "report")
CONTROL = set(cli.PARTS["bulkmm.control.command"])
# The module is a directory here; a file of the system lies below it.
SHELL = """
bulkmm() { "$PYTHON" -m bulkmm.cli "$@" --root "$ROOT"; }
"""


def words(line: str) -> str:
    return line.split()[1]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return load(kernel(tmp_path / "root"))


@pytest.mark.parametrize("line", [x for x in COMMANDS if words(x) in CONTROL])
def test_a_command_of_control(fake: Fake, line: str) -> None:
    collector = fake.root / "var/lib/prometheus/node-exporter"
    collector.mkdir(parents=True)
    line = line.replace("/var/lib/", f"{fake.root}/var/lib/")
    done = subprocess.run(
        ["bash", "-euc", SHELL + line],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHON": sys.executable, "ROOT": str(fake.root)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout or list(collector.iterdir())


@pytest.mark.parametrize("line", [x for x in COMMANDS if words(x) in RESULTS])
def test_a_command_about_results(tmp_path: Path, line: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    documents = {"demo-native": made.native(), "demo-guest": made.guest()}
    documents |= {"a": made.sweep(), "b": made.sweep()}
    for name, document in documents.items():
        document.write(out / f"{name}.json")
    done = subprocess.run(
        ["bash", "-euc", f'bulkmm() {{ "$PYTHON" -m bulkmm.cli "$@"; }}; {line}'],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    for name in re.findall(r"-o (\S+)", line):
        assert (tmp_path / name).stat().st_size > 1000


def shown() -> list[str]:
    """Return every bulkmm command in a block of any page."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    blocks = [block for page in pages for block in BLOCK.findall(page.read_text())]
    lines = [line.removeprefix(".venv/bin/") for x in blocks for line in x.splitlines()]
    return sorted({line for line in lines if line.startswith("bulkmm ")})


@pytest.mark.parametrize("line", shown())
def test_a_command_of_any_page_can_be_given(line: str) -> None:
    _, *given = shlex.split(line, comments=True)
    args = cli.parser().parse_args(given)
    assert callable(args.run)
    if getattr(args, "scenario", None):
        scenario.find(args.scenario)


def test_every_command_is_run() -> None:
    assert {words(line) for line in COMMANDS} <= CONTROL | {*RESULTS}


def test_the_table_names_every_command_and_no_other() -> None:
    rows = re.findall(r"^\| (`bulkmm .*?) \|", PAGE, re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`bulkmm (\w+)", row)}
    assert named == {name for names in cli.PARTS.values() for name in names}
