# SPDX-License-Identifier: GPL-2.0-only
"""Files of a running system, below / or below another directory.

Some names are made of what the kernel says, and may be no file names at all
(ValueError); that is the same as a file that is not there.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path


class Root:
    """A file system's root: what cannot be read is None, never an error."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def at(self, name: str) -> Path:
        """Return where a file such as /proc/cmdline lies."""
        return self.path / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """Return the text of a file without white space around it."""
        try:
            return self.at(name).read_text(encoding="utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return None

    def lines(self, name: str) -> Iterator[str] | None:
        """Return the lines of a file that may be long."""
        try:
            file = self.at(name).open(encoding="utf-8", errors="replace")
            return filter(None, chain([file.readline()], file))
        except (OSError, ValueError):
            return None

    def names(self, name: str) -> list[str]:
        """Return what a directory holds, sorted."""
        try:
            return sorted(path.name for path in self.at(name).iterdir())
        except (OSError, ValueError):
            return []

    def is_dir(self, name: str) -> bool:
        """Return whether there is such a directory that may be looked into."""
        try:
            return self.at(name).is_dir()
        except (OSError, ValueError):
            return False
