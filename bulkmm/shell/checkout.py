# SPDX-License-Identifier: GPL-2.0-only
"""The source checkout, which has bench/ and lab/: they build from its sources."""

from importlib import import_module
from pathlib import Path
from typing import Any

from bulkmm.shell.errors import BulkmmError

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("bench", "lab")


def has_rooms() -> bool:
    """Tell whether this is a checkout, whose rooms its environment imports."""
    return all((ROOT / room / "command.py").is_file() for room in ROOMS)


def import_room(module: str, user: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of a room; reject where there is none."""
    need_rooms(user)
    return import_module(module)


def need_rooms(user: str) -> None:
    """Reject what runs only in a checkout."""
    if not has_rooms():
        raise BulkmmError(
            f"{user}: only in a source checkout, which builds it "
            "(docs/contributing.md): make build && .venv/bin/bulkmm ..."
        )
