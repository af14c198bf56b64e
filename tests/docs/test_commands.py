# SPDX-License-Identifier: GPL-2.0-only
"""Every command of every page can be given: words, options, goals, files.

Nothing is run: that is for the tests of what it does.
"""

import os
import re
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from docpages import PAGES, ROOT, list_commands
from programs import run_program

from bench.kernel import callers
from bulkmm import cli
from lab import run
from lab.commands import matrix, prepare

TABLE = re.compile(r"^\| (`bulkmm .*?) \|", re.MULTILINE)


def find_commands(begin: str = "") -> list[str]:
    """Return every command that begins like this."""
    distinct = sorted({command for page in PAGES for command in list_commands(page)})
    return [command for command in distinct if command.startswith(begin)]


def run_bash(line: str, *options: str) -> None:
    """Have bash read a line, or run it."""
    result = run_program(["bash", *options, "-euc", line], cwd=ROOT)
    assert result.returncode == 0, result.stderr


def test_blocks_are_read() -> None:
    """A block that is not recognised would be a command that nobody tests."""
    readme = list_commands(ROOT / "README.md")
    assert {"make demo", "make module", "rmmod bulkmm", "bulkmm off"} <= {*readme}
    assert len(find_commands()) > 50


def test_the_table_names_every_command_and_no_other() -> None:
    rows = TABLE.findall((ROOT / "docs" / "command.md").read_text())
    words = {word for row in rows for word in re.findall(r"`bulkmm (\w+)", row)}
    assert words == {name for names in cli.PARTS.values() for name in names}


def test_the_shell_can_read_them() -> None:
    run_bash("\n".join(find_commands()), "-n")


@pytest.mark.parametrize("command", find_commands("bulkmm "))
def test_the_parser_can_read_it(command: str) -> None:
    words = shlex.split(command)[1:]
    args = cli.build_parser(words[0]).parse_args(words)
    module, _, name = args.run.partition(":")
    assert callable(getattr(import_module(module), name))


class TouchesTheMachineError(Exception):
    """All that can be refused has been looked at."""


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what gives a command of the lab, up to where the machine comes in."""

    def stop(*_: Any) -> None:
        raise TouchesTheMachineError

    def give(command: str) -> None:
        args = cli.build_parser("lab").parse_args(shlex.split(command)[1:])
        module, _, name = args.run.partition(":")
        getattr(import_module(module), name)(args)

    for part in (run, prepare, matrix, callers):
        monkeypatch.setattr(part, "need_sources", stop)
    return give


@pytest.mark.parametrize("command", find_commands("bulkmm lab "))
def test_a_run_of_the_lab(far: Callable[[str], None], command: str) -> None:
    with pytest.raises(TouchesTheMachineError):
        far(command)


@pytest.mark.parametrize("command", find_commands("make"))
def test_a_goal_of_make(tmp_path: Path, command: str) -> None:
    """Without its recipes; a kernel's own Makefile is asked for modules only."""
    (tmp_path / "Makefile").write_text("modules:\n")
    run_bash(f"{command} -n KDIR={tmp_path}")


def test_what_is_run_is_there() -> None:
    scripts = [*find_commands("scripts/"), *find_commands("python scripts/")]
    files = [command.removeprefix("python ").split()[0] for command in scripts]
    words = [
        word for command in find_commands("pytest") for word in shlex.split(command)
    ]
    for file in [*files, *(word for word in words if "/" in word)]:
        assert os.access(ROOT / file, os.R_OK if file.endswith(".py") else os.X_OK)
