# SPDX-License-Identifier: GPL-2.0-only
"""The pages of the book, their commands, and what they say in backticks."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOOK = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGES.md", *BOOK]
# Blocks of commands have no language, or "sh"; those of anything else name it.
COMMANDS = ("", "sh")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
COMMENT = re.compile(r"(?:^|\s+)#.*$", re.MULTILINE)


def name(page: Path) -> str:
    """Return how a page is called in a test's name."""
    return str(page.relative_to(ROOT))


def lines(page: Path) -> list[str]:
    """Return the lines of a page's blocks, without comments, continued ones as one."""
    found = FENCED.findall(page.read_text())
    text = "".join(block for language, block in found if language in COMMANDS)
    text = COMMENT.sub("", text).replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.strip()]


def commands(page: Path) -> list[str]:
    """Return each command of a page: a line may have several."""
    found = [part.strip() for line in lines(page) for part in line.split("&&")]
    return [command.removeprefix(".venv/bin/") for command in found]


def spans(page: Path) -> list[str]:
    """Return what stands in backticks in running text."""
    return SPAN.findall(FENCED.sub("", page.read_text()))


@cache
def tracked() -> list[str]:
    """Return the files that git knows or would know."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
    return [file for file in said.splitlines() if (ROOT / file).is_file()]


@cache
def source(file: str) -> str:
    """Return the text of a file, "" if it is none."""
    try:
        return (ROOT / file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
