# SPDX-License-Identifier: GPL-2.0-only
"""The pages of the book and their commands."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOOK = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGES.md", *BOOK]
# Blocks of commands have no language, or "sh"; those of anything else name it.
COMMANDS = ("", "sh")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"(?:^|\s+)#.*$", re.MULTILINE)


def name_page(page: Path) -> str:
    """Return how a page is called in a test's name."""
    return str(page.relative_to(ROOT))


def list_lines(page: Path) -> list[str]:
    """Return the lines of a page's blocks, without comments, continued ones as one."""
    blocks = FENCED.findall(page.read_text())
    text = "".join(block for language, block in blocks if language in COMMANDS)
    text = COMMENT.sub("", text).replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.strip()]


def list_commands(page: Path) -> list[str]:
    """Return each command of a page: a line may have several."""
    parts = [part.strip() for line in list_lines(page) for part in line.split("&&")]
    return [command.removeprefix(".venv/bin/") for command in parts]
