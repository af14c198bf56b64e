# SPDX-License-Identifier: GPL-2.0-only
"""Man pages and completion of the command: bulkmm.1, bulkmm.4, bash, zsh, fish."""

from __future__ import annotations

import argparse
import sys
from importlib import metadata
from pathlib import Path

import commandman
import completion
from commandtree import tree

from bulkmm import cli
from bulkmm.lab.scenario import SCENARIOS

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"
# where each is installed, below PREFIX/share
PAGES = ("man/man1/bulkmm.1", "man/man4/bulkmm.4")
SHELLS = {
    "bash-completion/completions/bulkmm": completion.bash,
    "zsh/site-functions/_bulkmm": completion.zsh,
    "fish/vendor_completions.d/bulkmm.fish": completion.fish,
}


def pages() -> dict[str, str]:
    """Return every file by its place."""
    top = tree(cli.parser())
    version = metadata.version("bulkmm")
    scenarios = [one.name for one in SCENARIOS]
    text = {name: (DOCS / name).read_text("utf-8") for name in ("command.md", "abi.md")}
    source = (PROJECT / "module" / "main.c").read_text("utf-8")
    made = (
        commandman.command_page(top, text["command.md"], version),
        commandman.module_page(text["abi.md"], source, version),
    )
    shells = {name: write(top, scenarios) for name, write in SHELLS.items()}
    return {**dict(zip(PAGES, made, strict=True)), **shells}


def main() -> int:
    """Write the files below a directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    out = parser.parse_args().out
    try:
        for name, text in pages().items():
            file = out / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"commandpages: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
