# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm on`` and ``off``: switch paths now, and with --persist at module load."""

import argparse
import re

from bulkmm import files
from bulkmm.control import change, status
from bulkmm.control import module as modules
from bulkmm.control.change import Change
from bulkmm.control.module import Module
from bulkmm.control.root import Root
from bulkmm.errors import UsageError

# at once, so that they wait together
ALL_OFF = Change("every mode", f"{modules.HOME}/off", "", "1")
FILE = "/etc/modprobe.d/bulkmm.conf"
CONTINUED = "\\\n"  # a backslash at the end of a line
DEFAULT = "the module's default"
NEW = """\
# What the module is loaded with; written by bulkmm on|off --persist.
"""


def on(args: argparse.Namespace) -> int:
    """Switch a path on or off, or all off; with --persist at every load, too."""
    root = Root.given(args.root)
    mode = getattr(args, "mode", modules.OFF)
    module = modules.read(root) if args.persist else modules.need(root)
    paths = status.select(root, module, [args.path] if args.path else [])
    changes = [
        Change(
            f"{path.name}.mode",
            f"{modules.HOME}/{path.name}/mode",
            path.mode,
            _mode(path.name, path.modes, mode),
        )
        for path in paths
    ]
    text, kept = _at_load(root, module, args.path, mode) if args.persist else ("", [])
    if module and not args.dry_run:
        change.apply(root, changes if args.path else [ALL_OFF])
    if args.persist and not args.dry_run:
        file = root.at(FILE)
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(file, text, "what the module is loaded with")
    return change.show(args, [*changes, *kept])


off = on


def _mode(path: str, words: list[str], mode: str | None) -> str:
    """Return the requested mode, or the path's first that is not off."""
    wanted = mode or next((word for word in words if word != modules.OFF), modules.OFF)
    if wanted not in words:
        valid = ", ".join(words)
        raise UsageError(f"unknown mode {wanted}: path {path} has {valid}")
    return wanted


def _at_load(
    root: Root, module: Module | None, path: str | None, mode: str | None
) -> tuple[str, list[Change]]:
    """Return what the file is to say, and the changed modes, of one path or of all."""
    modes = status.known(root, module, ())
    file = root.at(FILE)
    text = file.read_text("utf-8", files.FOREIGN) if file.exists() else NEW
    changes = []
    for name in [path] if path else modes:
        wanted = _mode(name, modes[name], mode)
        text, before = _edited(text, name, wanted)
        changes.append(Change(f"{name} at load", FILE, before, wanted))
    return text, changes


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
