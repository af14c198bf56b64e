# SPDX-License-Identifier: GPL-2.0-only
"""Files that are written atomically."""

import json
import os
from pathlib import Path
from stat import S_IMODE
from typing import Any

from bulkmm.shell.errors import BulkmmError, UsageError

FOREIGN = "surrogateescape"  # bytes that are not ours to understand stay as they are


def write_file(file: Path, text: str, label: str) -> None:
    """Write a file atomically; ``label`` names it in errors.

    A link stays: its target is replaced. A pipe or a device is written to.
    """
    try:
        if _is_special(file):
            file.write_text(text, encoding="utf-8", errors=FOREIGN)
        else:
            _replace_file(_real_path(file), text)
    except OSError as error:
        raise _explain_refusal(file, label, error.strerror) from error


def _replace_file(file: Path, text: str) -> None:
    """Replace a file, which keeps its mode, by one of a name that nobody else has."""
    part = file.with_name(f".bulkmm-{os.urandom(8).hex()}.part")
    try:
        with part.open("x", encoding="utf-8", errors=FOREIGN) as stream:
            stream.write(text)
        if file.exists():
            part.chmod(S_IMODE(file.stat().st_mode))
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def read_json(file: Path) -> dict[str, Any]:
    """Return a file's object; empty if the file is missing or corrupt."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def need_command(word: str) -> None:
    """Reject a command that cannot be run, before all the work."""
    import shutil  # takes longer than most commands

    if not shutil.which(word):
        raise UsageError(f"{word}: there is no such command")


def need_place(file: Path | None, label: str) -> None:
    """Reject a file that cannot be written, before all the work."""
    if file is None:
        return
    special = _is_special(file)
    place = file if special else _real_path(file).parent
    if file.is_dir():
        raise _explain_refusal(file, label, "it is a directory")
    if not (special or place.is_dir()):
        raise _explain_refusal(file, label, "no such directory")
    rights = os.W_OK if special else os.W_OK | os.X_OK
    if not os.access(place, rights, effective_ids=True):
        raise _explain_refusal(file, label, f"no permission to write to {place}")


def _is_special(file: Path) -> bool:
    """Return whether a path is something that must not be replaced by a file."""
    return file.exists() and not file.is_file()


def _real_path(file: Path) -> Path:
    return Path(os.path.realpath(file))


def _explain_refusal(file: Path, label: str, why: str | None) -> BulkmmError:
    return BulkmmError(f"{label} {file} cannot be written: {why}")
