# SPDX-License-Identifier: GPL-2.0-only
"""The conventions of docs/command.md, held by every command."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest
from commandlib import ROOT, leaves

from bulkmm import cli
from bulkmm.errors import Exit

PARSER = cli.parser()
LEAVES = [pytest.param(one, id=" ".join(words)) for words, one in leaves(PARSER)]
PAGE = (ROOT / "docs" / "command.md").read_text()
FLAGS = {  # one meaning everywhere: how many values, and what they are called
    "--json": (0, ""),
    "--markdown": (0, ""),
    "--quick": (0, ""),
    "--dry-run": (0, ""),
    "--all-rows": (0, ""),
    "--resume": (0, ""),
    "--output": (None, "FILE"),
    "--root": (None, "DIR"),
    "--json-dir": (None, "DIR"),
    "--size": (None, "SIZE"),
    "--rounds": (None, "N"),
    "--processes": (None, "N"),
    "--seed": (None, "N"),
    "--threads": (None, "N"),
}


def arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Return what a command takes, --help apart."""
    for action in parser._actions:
        helps = isinstance(action, argparse._HelpAction)
        if not helps and not isinstance(action, argparse._SubParsersAction):
            yield action


@pytest.mark.parametrize("parser", LEAVES)
def test_an_example_is_shown_and_is_valid(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    shown = re.findall(r"^example: (bulkmm .*)$", capsys.readouterr().out, re.MULTILINE)
    assert shown
    for line in shown:
        assert line.startswith(parser.prog)
        args = PARSER.parse_args(shlex.split(line)[1:])
        module, _, name = args.run.partition(":")
        assert callable(getattr(__import__(module, fromlist=[name]), name))


@pytest.mark.parametrize("parser", LEAVES)
def test_an_option_means_the_same_everywhere(parser: argparse.ArgumentParser) -> None:
    for action in arguments(parser):
        for flag in action.option_strings:
            if flag in FLAGS:
                nargs, what = FLAGS[flag]
                assert action.nargs == nargs, flag
                assert str(action.metavar or "").startswith(what), flag
        short = {flag for flag in action.option_strings if len(flag) == 2}
        assert short <= {"-o"}
        assert ("-o" in short) == ("--output" in action.option_strings)


def test_an_exit_code_has_one_meaning() -> None:
    _, _, rest = PAGE.partition("\n## Exit codes\n")
    rows = re.findall(
        r"^\| (\d+) \| (.*) \|$", rest.partition("\n## ")[0], re.MULTILINE
    )
    assert [int(code) for code, _ in rows] == [code.value for code in Exit]
    assert not [meaning for _, meaning in rows if ";" in meaning]
