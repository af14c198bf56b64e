# SPDX-License-Identifier: GPL-2.0-only
"""docs/command.md names every command; tests/docs runs those that it shows."""

import re

from commandlib import ROOT

from bulkmm import cli

PAGE = (ROOT / "docs" / "command.md").read_text()


def test_the_table_names_every_command_and_no_other() -> None:
    rows = re.findall(r"^\| (`bulkmm .*?) \|", PAGE, re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`bulkmm (\w+)", row)}
    assert named == {name for names in cli.PARTS.values() for name in names}
