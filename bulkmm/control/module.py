# SPDX-License-Identifier: GPL-2.0-only
"""The loaded module as /sys/kernel/bulkmm shows it.

No path, mode, backend, counter or setting is named here: a file's form tells what
it is (docs/abi.md lists the forms), so that paths added to the module later work
too.
"""

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from bulkmm.control.root import Root

HOME = "/sys/kernel/bulkmm"
PARAMETERS = "/sys/module/bulkmm/parameters"
OFF = "off"
HOOK = re.compile(r"(-?\d+) (\S+): (.*)")
NUMBERED = re.compile(r"([a-z]\w*?)(\d+)")
FASTEST = "fastest"  # the choice that makes the module measure again
SERVING = "serving"  # makes a directory a pick
MB_PER_GB = 1000


@dataclass(frozen=True)
class Choice:
    """A setting with several valid words."""

    words: list[str]
    chosen: str | None


@dataclass(frozen=True)
class Pick:
    """The backend for one kind of memory or extent, and its measurements."""

    label: str
    serving: str
    gb_per_s: dict[str, float]


@dataclass(frozen=True)
class Backends:
    """The backends of an operation, the forced one, and its picks."""

    choice: Choice
    picks: list[Pick] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Return the backends that can be forced."""
        return [word for word in self.choice.words if word != FASTEST]

    @property
    def serving(self) -> list[str]:
        """Return the backends that serve, usually one."""
        return list(dict.fromkeys(pick.serving for pick in self.picks))


@dataclass(frozen=True)
class Hook:
    """A kernel function and whether it is hooked: 0, or a negative errno."""

    symbol: str
    errno: int
    why: str

    @property
    def attached(self) -> bool:
        """Return whether calls of the function reach the module."""
        return self.errno == 0


@dataclass
class KernelPath:
    """One family of kernel functions, hooked together."""

    name: str
    mode: Choice
    hooks: list[Hook] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    fallbacks: dict[str, int] = field(default_factory=dict)
    backends: dict[str, Backends] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[dict[str, int]]] = field(default_factory=dict)


@dataclass
class Module:
    """All that the module reports."""

    version: str
    paths: list[KernelPath]
    parameters: dict[str, int] = field(default_factory=dict)  # that are writable


def loaded(root: Root) -> bool:
    """Return whether the module is loaded."""
    return root.is_dir(HOME)


def read(root: Root) -> Module | None:
    """Return the loaded module's state; None if it is not loaded."""
    version = root.read(f"{HOME}/version")
    if version is None:
        return None
    found = [_path(root, name) for name in root.names(HOME)]
    return Module(version, [path for path in found if path], _parameters(root))


def _path(root: Root, name: str) -> KernelPath | None:
    """Return a path, or None if there is none of this name (any more)."""
    home = f"{HOME}/{name}"
    mode = choice(root.read(f"{home}/mode") or "")
    if not mode:
        return None
    path = KernelPath(name, mode, hooks=hooks(root.read(f"{home}/hook") or ""))
    files = root.names(home)
    for file in files:
        text = root.read(f"{home}/{file}")
        if text is not None and file not in ("mode", "hook"):
            _add(path, file, text, writable=is_writable(root.at(f"{home}/{file}")))
    path.fallbacks = _numbers(root, f"{home}/fallbacks")
    for file in files:
        if root.is_dir(f"{home}/{file}") and file != "fallbacks":
            _add_directory(root, path, file)
    for table in path.tables.values():
        table.sort(key=lambda row: next(iter(row.values())))
    return path


def _add(path: KernelPath, file: str, text: str, *, writable: bool) -> None:
    """Classify a file by its form."""
    if re.fullmatch(r"-?\d+", text):
        (path.settings if writable else path.counters)[file] = int(text)
    elif writable and (found := choice(text)):
        path.backends[file] = Backends(found)


def _add_directory(root: Root, path: KernelPath, name: str) -> None:
    """Classify a directory: a pick, or a row of a table."""
    home = f"{HOME}/{path.name}/{name}"
    numbers = _numbers(root, home)
    serving = root.read(f"{home}/{SERVING}")
    if serving is not None:
        for setting, backends in path.backends.items():
            if name.startswith(f"{setting}_"):
                rates = {key: mb / MB_PER_GB for key, mb in numbers.items() if mb}
                label = name.removeprefix(f"{setting}_")
                backends.picks.append(Pick(label, serving, rates))
    elif numbers and (found := NUMBERED.fullmatch(name)):
        row = {found[1]: int(found[2]), **numbers}
        path.tables.setdefault(found[1], []).append(row)


def _numbers(root: Root, home: str) -> dict[str, int]:
    """Return the numbers in a directory by file name."""
    texts = {name: root.read(f"{home}/{name}") or "" for name in root.names(home)}
    return {name: int(text) for name, text in texts.items() if text.isdecimal()}


def choice(text: str) -> Choice | None:
    """Parse a choice such as "off [on]"; None if nothing is in brackets."""
    words = text.split()
    chosen = [word[1:-1] for word in words if re.fullmatch(r"\[.+\]", word)]
    if len(chosen) != 1:
        return None
    return Choice([word.strip("[]") for word in words], chosen[0])


def hooks(text: str) -> list[Hook]:
    """Return the hooks of a path, one per line of text."""
    found = (HOOK.fullmatch(line.strip()) for line in text.splitlines())
    return [Hook(hook[2], int(hook[1]), hook[3]) for hook in found if hook]


def is_writable(file: Path) -> bool:
    """Return whether a file exists with a write permission bit."""
    try:
        return bool(file.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    except OSError:
        return False


def _parameters(root: Root) -> dict[str, int]:
    found = {}
    for name in root.names(PARAMETERS):
        text = root.read(f"{PARAMETERS}/{name}") or ""
        if is_writable(root.at(f"{PARAMETERS}/{name}")) and text.isdecimal():
            found[name] = int(text)
    return found
