# SPDX-License-Identifier: GPL-2.0-only
"""The conventions of docs/command.md, held by every command."""

import argparse
import re
import shlex

import pytest
from commandlib import ROOT, list_imports, walk_commands

from bulkmm import cli
from bulkmm.shell.errors import Exit

PARSER = cli.build_parser()
PARSERS = [one for _, one in walk_commands(PARSER) if one is not PARSER]
COMMANDS = [pytest.param(one, id=one.prog) for one in PARSERS]
PAGE = (ROOT / "docs" / "command.md").read_text()


@pytest.mark.parametrize("parser", COMMANDS)
def test_an_example_is_shown_and_is_valid(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    examples = re.findall(
        r"^example: (bulkmm .*)$", capsys.readouterr().out, re.MULTILINE
    )
    assert examples
    for line in examples:
        assert line.startswith(parser.prog)
        args = PARSER.parse_args(shlex.split(line)[1:])
        module, _, name = args.run.partition(":")
        assert callable(getattr(__import__(module, fromlist=[name]), name))


def test_no_help_loads_what_takes_long() -> None:
    helps = [f"{parser.prog} --help".removeprefix("bulkmm ") for parser in PARSERS]
    heavy = ("numpy", "scipy", "elftools", "rich", "jinja2", "msgspec", "subprocess")
    assert list_imports(helps, *heavy, "lab.scenario", "bulkmm.results") == []


def test_an_exit_code_has_one_meaning() -> None:
    _, _, rest = PAGE.partition("\n## Exit codes\n")
    rows = re.findall(
        r"^\| (\d+) \| (.*) \|$", rest.partition("\n## ")[0], re.MULTILINE
    )
    assert [int(code) for code, _ in rows] == [code.value for code in Exit]
    assert not [meaning for _, meaning in rows if ";" in meaning]
