# SPDX-License-Identifier: GPL-2.0-only
"""``on --persist``, ``off --persist``: set the mode at module load."""

import re
from dataclasses import dataclass

from bulkmm import files
from bulkmm.control import change, status
from bulkmm.control.module import Module
from bulkmm.control.root import Root

FILE = "/etc/modprobe.d/bulkmm.conf"
CONTINUED = "\\\n"  # a backslash at the end of a line
DEFAULT = "the module's default"
NEW = """\
# What the module is loaded with; written by bulkmm on|off --persist.
"""


@dataclass(frozen=True)
class Kept:
    """The new content of the file, and its changes."""

    text: str
    changes: list[change.Change]


def plan(root: Root, module: Module | None, path: str | None, mode: str | None) -> Kept:
    """Return the file with changed modes of one path or of all."""
    modes = status.known(root, module, [path] if path else [])
    text = _read(root)
    changes = []
    for name in [path] if path else modes:
        wanted = change.mode_of(name, modes[name], mode)
        text, before = _edited(text, name, wanted)
        changes.append(change.Change(f"{name} at load", FILE, before, wanted))
    return Kept(text, changes)


def _read(root: Root) -> str:
    """Return the file's content; raise if it exists but cannot be read."""
    file = root.at(FILE)
    return file.read_text("utf-8", files.FOREIGN) if file.exists() else NEW


def _edited(text: str, name: str, mode: str) -> tuple[str, str]:
    """Set one parameter by a line at the end, as the last one given counts."""
    words = [line.split() for line in text.replace(CONTINUED, "").splitlines()]
    ours = [
        word for line in words if line[:2] == ["options", "bulkmm"] for word in line
    ]
    given = [word.partition("=")[2] for word in ours if word.startswith(f"{name}=")]
    text = re.sub(rf"^options bulkmm {name}=\S+\n", "", text, flags=re.MULTILINE)
    text = text.rstrip("\\\n")
    return f"{text}\noptions bulkmm {name}={mode}\n", given[-1] if given else DEFAULT


def write(root: Root, kept: Kept) -> None:
    """Write the file atomically."""
    file = root.at(FILE)
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write(file, kept.text, "what the module is loaded with")
