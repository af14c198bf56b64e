# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm on``, ``off`` and ``tune``; with --persist also what holds at module load.

All changes are checked before the first is written. Valid words are those that sysfs
lists, not a list of this program. Only the kernel knows the bounds of numbers: it
refuses, and its log says what is valid.
"""

import argparse
import errno
import re
from dataclasses import dataclass
from typing import Literal

from bulkmm.control import module as modules
from bulkmm.control import status
from bulkmm.control.format import align_columns
from bulkmm.control.json_output import Record
from bulkmm.control.module import Module
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell import files
from bulkmm.shell.errors import BulkmmError, Exit, UsageError, unknown_word

NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+)|[0-9]+")
LARGEST = (1 << 64) - 1  # the largest number that the kernel parses
FILE = "/etc/modprobe.d/bulkmm.conf"
CONTINUED = "\\\n"  # a backslash at the end of a line
DEFAULT = "the module's default"
NEW = """\
# What the module is loaded with; written by bulkmm on|off --persist.
"""


@dataclass(frozen=True)
class Change:
    """A file to write."""

    key: str
    file: str
    before: str
    after: str

    def describe(self, *, dry: bool) -> str:
        """Describe the change, done or planned."""
        was = f" (was {self.before})" if self.before != self.after else " (as before)"
        if dry:
            return f"would write {self.after} to {self.file}{was}"
        return f"{self.key}: {self.after}{was}"


# at once, so that they wait together
ALL_OFF = Change("every mode", f"{modules.HOME}/off", "", "1")


@dataclass(frozen=True, kw_only=True)
class Changes(Record):
    """Printed by on, off and tune; dry_run: nothing was written."""

    kind: Literal["change"] = "change"
    dry_run: bool
    changes: list[Change]


@dataclass(frozen=True)
class Setting:
    """A file that can be written: one of the choices, or if there is none a number."""

    key: str
    file: str
    value: str
    choices: list[str]


@dataclass(frozen=True, kw_only=True)
class Settings(Record):
    """Printed by tune without settings."""

    kind: Literal["settings"] = "settings"
    settings: list[Setting]


def switch_path(args: argparse.Namespace) -> int:
    """Switch a path on or off, or all off; with --persist at every load, too."""
    root = SystemFiles.from_argument(args.root)
    mode = getattr(args, "mode", modules.OFF)
    module = modules.read_module(root)
    names = [args.path] if args.path else []
    # words are checked first: loading the module would not mend them
    for name, words in status.read_modes(root, module, names).items():
        if name in names:
            _choose_mode(name, words, mode)
    if not args.persist:
        modules.need_module(root, module)
    paths = status.select_paths(root, module, names)
    changes = [
        Change(
            f"{path.name}.mode",
            f"{modules.HOME}/{path.name}/mode",
            path.mode,
            _choose_mode(path.name, path.modes, mode),
        )
        for path in paths
    ]
    conf, at_load = (
        _at_load(root, module, args.path, mode) if args.persist else ("", [])
    )
    if module and not args.dry_run:
        _write_changes(root, changes if args.path else [ALL_OFF])
    if args.persist and not args.dry_run:
        file = root.at(FILE)
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_file(file, conf, "the file of options")
    return _print_changes(args, [*changes, *at_load])


def tune_settings(args: argparse.Namespace) -> int:
    """Change settings, or list them."""
    root = SystemFiles.from_argument(args.root)
    module = modules.read_module(root)
    for pair in args.settings:
        _check_pair(root, module, pair)
    module = modules.need_module(root, module)
    if args.settings:
        changes = [_to_value(module, pair) for pair in args.settings]
        if not args.dry_run:
            _write_changes(root, changes)
        return _print_changes(args, changes)
    settings = list(_list_settings(module).values())
    rows = [(one.key, one.value, " ".join(one.choices)) for one in settings]
    rows.insert(0, ("key", "value", "choices"))
    Settings(settings=settings).print_output(align_columns(rows), as_json=args.json)
    return Exit.OK


def _print_changes(args: argparse.Namespace, changes: list[Change]) -> int:
    """Print what was changed, or what would be."""
    lines = (one.describe(dry=args.dry_run) for one in changes)
    Changes(dry_run=args.dry_run, changes=changes).print_output(
        lines, as_json=args.json
    )
    return Exit.OK


def _choose_mode(path: str, words: list[str], mode: str | None) -> str:
    """Return the requested mode, or the path's first that is not off."""
    wanted = mode or next((word for word in words if word != modules.OFF), modules.OFF)
    if wanted not in words:
        valid = ", ".join(words)
        raise UsageError(f"unknown mode {wanted}: path {path} has {valid}")
    return wanted


def _at_load(
    root: SystemFiles, module: Module | None, path: str | None, mode: str | None
) -> tuple[str, list[Change]]:
    """Return what the file is to say, and the changed modes, of one path or of all."""
    modes = status.read_modes(root, module, ())
    file = root.at(FILE)
    conf = file.read_text("utf-8", files.FOREIGN) if file.exists() else NEW
    changes = []
    for name in [path] if path else modes:
        wanted = _choose_mode(name, modes[name], mode)
        conf, before = _edit_options(conf, name, wanted)
        changes.append(Change(f"{name} at load", FILE, before, wanted))
    return conf, changes


def _edit_options(conf: str, name: str, mode: str) -> tuple[str, str]:
    """Set one parameter by a line at the end, as the last one given counts."""
    words = [line.split() for line in conf.replace(CONTINUED, "").splitlines()]
    options = [
        word for line in words if line[:2] == ["options", "bulkmm"] for word in line
    ]
    values = [word.partition("=")[2] for word in options if word.startswith(f"{name}=")]
    conf = re.sub(rf"^options bulkmm {name}=\S+\n", "", conf, flags=re.MULTILINE)
    conf = conf.rstrip("\\\n")
    return f"{conf}\noptions bulkmm {name}={mode}\n", values[-1] if values else DEFAULT


def _list_settings(module: Module) -> dict[str, Setting]:
    """Return each tunable by its key."""
    settings: dict[str, Setting] = {}

    def add_setting(path: str, name: str, value: str, choices: list[str]) -> None:
        key = f"{path}.{name}"
        settings[key] = Setting(key, f"{modules.HOME}/{path}/{name}", value, choices)

    for path in module.paths:
        for name, backends in path.backends.items():
            add_setting(path.name, name, backends.chosen, backends.choices)
        for name, choice in path.choices.items():
            add_setting(path.name, name, choice.chosen, choice.words)
        for name, value in path.settings.items():
            add_setting(path.name, name, str(value), [])
    for name, value in module.parameters.items():
        file = f"{modules.PARAMETERS}/{name}"
        settings[name] = Setting(name, file, str(value), [])
    return settings


def _check_pair(root: SystemFiles, module: Module | None, pair: str) -> None:
    """Reject what is wrong with KEY=VALUE, loaded or not, but for the value."""
    key, _, value = pair.partition("=")
    if not value:
        raise UsageError(f"bad setting {pair}: give KEY=VALUE")
    path, dot, name = key.partition(".")
    if dot and name == "mode":
        raise UsageError(f"to set {key}: bulkmm on PATH MODE, bulkmm off PATH")
    if dot:
        status.read_modes(root, module, [path])
    keys = _list_settings(module) if module else status.list_keys(root)
    if key not in keys:
        raise unknown_word("setting", key, keys)


def _to_value(module: Module, pair: str) -> Change:
    """Return the change for KEY=VALUE."""
    key, _, value = pair.partition("=")
    setting = _list_settings(module)[key]
    if setting.choices and value not in setting.choices:
        valid = ", ".join(setting.choices)
        raise UsageError(f"bad value {value} of {key}: valid are {valid}")
    if not setting.choices and not _is_number(value):
        raise UsageError(f"bad value {value} of {key}: a number from 0 is needed")
    return Change(key, setting.file, setting.value, value)


def _is_number(value: str) -> bool:
    """Return whether the kernel would parse it as a number, bounds aside."""
    match = NUMBER.fullmatch(value)
    return bool(match) and int(value, 16 if match and match[1] else 10) <= LARGEST


def _write_changes(root: SystemFiles, changes: list[Change]) -> None:
    """Write all changes in order; if one is refused, report which were made."""
    for i, change in enumerate(changes):
        try:
            root.write(change.file, change.after)
        except OSError as error:
            progress = "".join(f"; {made.key} is changed" for made in changes[:i])
            raise BulkmmError(
                _explain_refusal(root, change, error) + progress
            ) from error


def _explain_refusal(root: SystemFiles, change: Change, error: OSError) -> str:
    problem = f"{change.key} cannot be set to {change.after}"
    if change.file == f"{modules.HOME}/off":
        problem = "not every path is unhooked"
    if error.errno == errno.EINPROGRESS:
        return f"{problem}: off, but still detaching: it goes on by itself (dmesg)"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        # a container's sysfs is read-only for root, too
        where = "on the host" if error.errno == errno.EROFS else "as root"
        return f"{problem}: {error.strerror}: run it {where}"
    # A mode's file exists, and reports it, if a function is missing.
    if error.errno == errno.ENOENT and not root.at(change.file).exists():
        return f"{problem}: {change.file} has gone: was the module unloaded?"
    if why := _why_not(root, change, error):
        return f"{problem}: {why}"
    if error.errno in (errno.EINVAL, errno.ERANGE):
        return (
            f"{problem}: the kernel refuses it, and its log says what is valid (dmesg)"
        )
    return f"{problem}: {error.strerror}"


def _why_not(root: SystemFiles, change: Change, error: OSError) -> str:
    """Return why a path cannot be switched, from the state of its hooks."""
    home, _, file = change.file.rpartition("/")
    on = file == "mode" and change.after != modules.OFF
    if file not in ("mode", "off") or not (on or error.errno == errno.EBUSY):
        return ""
    if file == "mode":
        hooks = modules.parse_hooks(root.read(f"{home}/hook") or "")
    else:
        module = modules.read_module(root)
        hooks = [hook for path in module.paths for hook in path.hooks] if module else []
    return "; ".join(f"{h.symbol}: {h.why}" for h in hooks if h.attached is not on)
