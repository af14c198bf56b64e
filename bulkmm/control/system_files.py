# SPDX-License-Identifier: GPL-2.0-only
"""Files of a running system, below / or another directory.

Some names come from the kernel and may be invalid as file names (ValueError); that
is treated as a missing file.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Self

from bulkmm.shell.errors import UsageError


class SystemFiles:
    """A root directory: unreadable files are None, never an error."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def from_argument(cls, path: Path) -> Self:
        """Return the root that a user names."""
        if not path.is_dir():
            raise UsageError(f"{path} is not a directory")
        return cls(path)

    def at(self, name: str) -> Path:
        """Return the path of a file such as /proc/cmdline."""
        return self.path / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """Return the stripped text of a file."""
        with suppress(OSError, ValueError):
            return self.at(name).read_text(encoding="utf-8", errors="replace").strip()
        return None

    def write(self, name: str, text: str, *, append: bool = False) -> None:
        """Write a line to a file that exists, at once; ``append``: without emptying it.

        Python's file objects would seek first, and take EAGAIN for a write of nothing.
        """
        file = self.at(name)
        handle = os.open(file, os.O_WRONLY | (os.O_APPEND if append else os.O_TRUNC))
        try:
            os.write(handle, f"{text}\n".encode("ascii"))
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"{file}: {text}") from error
        finally:
            os.close(handle)

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file; none if it cannot be read."""
        return (self.read(name) or "").splitlines()

    def names(self, name: str) -> list[str]:
        """Return the sorted names in a directory."""
        with suppress(OSError, ValueError):
            return sorted(path.name for path in self.at(name).iterdir())
        return []

    def is_writable(self, name: str) -> bool:
        """Return whether a file exists with a write permission bit."""
        with suppress(OSError, ValueError):
            mode = self.at(name).stat().st_mode
            return bool(mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
        return False

    def is_dir(self, name: str) -> bool:
        """Return whether a directory exists and is readable."""
        with suppress(OSError, ValueError):
            return self.at(name).is_dir()
        return False
