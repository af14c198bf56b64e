# SPDX-License-Identifier: GPL-2.0-only
"""The loaded module as /sys/kernel/bulkmm shows it.

No path, mode, backend, counter or setting is named here: what a file is follows
from its form, so that a path that the module learns later is shown and switched
as well (docs/abi.md says which forms there are).
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from bulkmm.control.root import Root

HOME = "/sys/kernel/bulkmm"
PARAMETERS = "/sys/module/bulkmm/parameters"
OFF = "off"
HOOK = re.compile(r"(-?\d+) (\S+): (.*)")
PAIRS = re.compile(r"([a-z]\w*) (\d+)\b:?")
TWO = re.compile(r"(\d+) (\d+)")
RATE = re.compile(r"=(\d+(?:\.\d+)?)(?=\]?(?:\s|$))")


@dataclass(frozen=True)
class Choice:
    """A setting that is one of several words."""

    words: list[str]
    chosen: str | None


@dataclass(frozen=True)
class Pick:
    """Which backend serves one kind of memory or extent, and what was measured."""

    label: str
    choice: Choice
    gb_per_s: dict[str, float]


@dataclass(frozen=True)
class Backends:
    """The backends of an operation, and its picks."""

    words: list[str]
    picks: list[Pick]

    @property
    def serving(self) -> list[str]:
        """Return the backends that serve, mostly one."""
        return list(dict.fromkeys(pick.choice.chosen or "?" for pick in self.picks))


@dataclass(frozen=True)
class Hook:
    """A kernel function and whether it is hooked: 0, or a negative errno."""

    symbol: str
    errno: int
    why: str

    @property
    def attached(self) -> bool:
        """Tell if calls of the function come to the module."""
        return self.errno == 0


@dataclass
class KernelPath:
    """One family of kernel functions served by the range."""

    name: str
    mode: Choice
    hooks: list[Hook] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    fallbacks: dict[str, int] = field(default_factory=dict)
    backends: dict[str, Backends] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[dict[str, int]]] = field(default_factory=dict)

    @property
    def on(self) -> bool:
        """Tell if requests are served."""
        return self.mode.chosen not in (None, OFF)


@dataclass
class Module:
    """All that the module says of itself."""

    version: str
    paths: list[KernelPath]
    parameters: dict[str, int] = field(default_factory=dict)  # that can be changed


def loaded(root: Root) -> bool:
    """Tell if the module is loaded."""
    return root.is_dir(HOME)


def read(root: Root) -> Module | None:
    """Return what the loaded module says; None if it is not loaded."""
    version = root.read(f"{HOME}/version")
    if version is None:
        return None
    found = [_path(root, name) for name in root.names(HOME)]
    return Module(version, [path for path in found if path], _parameters(root))


def _path(root: Root, name: str) -> KernelPath | None:
    """Return a path, or None where a name is none (or has just gone)."""
    home = f"{HOME}/{name}"
    mode = choice(root.read(f"{home}/mode") or "")
    if not mode:
        return None
    path = KernelPath(name, mode, hooks=hooks(root.read(f"{home}/hook") or ""))
    for file in root.names(home):
        text = root.read(f"{home}/{file}")
        if text is not None and file not in ("mode", "hook"):
            _add(path, file, text, writable=is_writable(root.at(f"{home}/{file}")))
    for reason in root.names(f"{home}/fallbacks"):
        count = root.read(f"{home}/fallbacks/{reason}") or ""
        if count.isdecimal():
            path.fallbacks[reason] = int(count)
    return path


def _add(path: KernelPath, file: str, text: str, *, writable: bool) -> None:
    """Sort a file by its form."""
    if re.fullmatch(r"-?\d+", text):
        (path.settings if writable else path.counters)[file] = int(text)
    elif writable and (found := backends(text)):
        path.backends[file] = found
    else:
        path.tables[file] = table(text)


def choice(text: str) -> Choice | None:
    """Return "off [on]" as a choice; None if nothing is in brackets."""
    words = text.split()
    chosen = [word[1:-1] for word in words if re.fullmatch(r"\[.+\]", word)]
    if len(chosen) != 1:
        return None
    return Choice([word.strip("[]") for word in words], chosen[0])


def backends(text: str) -> Backends | None:
    """Return lines such as "node 0: generic [movnti=9.8]"; None if one is not such."""
    picks = [_pick(line) for line in text.splitlines()]
    found = [pick for pick in picks if pick]
    if not found or len(found) < len(picks):
        return None
    return Backends(found[0].choice.words, found)


def _pick(line: str) -> Pick | None:
    label, colon, said = line.partition(": ")
    words = choice(RATE.sub("", said))
    if not colon or not words:
        return None
    rated = [word.strip("[]").partition("=") for word in said.split()]
    return Pick(label, words, {name: float(rate) for name, _, rate in rated if rate})


def hooks(text: str) -> list[Hook]:
    """Return the hooks of a path, a line each."""
    found = (HOOK.fullmatch(line.strip()) for line in text.splitlines())
    return [Hook(hook[2], int(hook[1]), hook[3]) for hook in found if hook]


def table(text: str) -> list[dict[str, int]]:
    """Return lines such as "order 9: max_gap_ns 3 count 1", or "4096 7", as records."""
    return [row for line in text.splitlines() if (row := record(line))]


def record(line: str) -> dict[str, int]:
    """Return names with their numbers; of two bare numbers, of what, and how many."""
    if bare := TWO.fullmatch(line.strip()):
        return {"of": int(bare[1]), "count": int(bare[2])}
    return {name: int(value) for name, value in PAIRS.findall(line)}


def is_writable(file: Path) -> bool:
    """Tell if a file is there to be written, by whoever may."""
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
