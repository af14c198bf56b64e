# SPDX-License-Identifier: GPL-2.0-only
"""Files that are there whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError

if TYPE_CHECKING:
    from pathlib import Path


def write(file: Path, text: str, what: str) -> None:
    """Write a file in one step; ``what`` is how an error speaks of it."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        message = f"{what} {file} cannot be written: {error.strerror}"
        raise BulkmmError(message) from error


def need_place(file: Path | None, what: str) -> None:
    """Refuse a file that cannot be written, before all the work."""
    if file is None:
        return
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise BulkmmError(f"{what} {file} cannot be written: no such directory")
