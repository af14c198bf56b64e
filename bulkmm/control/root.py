# SPDX-License-Identifier: GPL-2.0-only
"""Files of a running system, below / or another directory.

Some names come from the kernel and may be invalid as file names (ValueError); that
is treated as a missing file.
"""

import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Self

from bulkmm.errors import BulkmmError, UsageError


class Root:
    """A root directory: unreadable files are None, never an error."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def given(cls, path: Path) -> Self:
        """Return the root that a user names."""
        if not path.is_dir():
            raise UsageError(f"{path} is not a directory")
        return cls(path)

    def at(self, name: str) -> Path:
        """Return the path of a file such as /proc/cmdline."""
        return self.path / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """Return the stripped text of a file."""
        try:
            return self.at(name).read_text(encoding="utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return None

    def write(self, name: str, text: str) -> None:
        """Write a line to a file that exists; raise if that is refused."""
        file = self.at(name)
        try:
            file.write_text(f"{text}\n", encoding="ascii")
        except OSError as error:
            raise BulkmmError(f"{file}: {error.strerror}") from error

    def lines(self, name: str) -> Iterator[str] | None:
        """Yield the lines of a file that may be long."""
        try:
            file = self.at(name).open(encoding="utf-8", errors="replace")
            return filter(None, chain([file.readline()], file))
        except (OSError, ValueError):
            return None

    def names(self, name: str) -> list[str]:
        """Return the sorted names in a directory."""
        try:
            return sorted(path.name for path in self.at(name).iterdir())
        except (OSError, ValueError):
            return []

    def is_writable(self, name: str) -> bool:
        """Return whether a file exists with a write permission bit."""
        try:
            mode = self.at(name).stat().st_mode
        except (OSError, ValueError):
            return False
        return bool(mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))

    def is_dir(self, name: str) -> bool:
        """Return whether a directory exists and is readable."""
        try:
            return self.at(name).is_dir()
        except (OSError, ValueError):
            return False
