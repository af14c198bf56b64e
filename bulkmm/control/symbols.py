# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's functions: their names, and who traces them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bulkmm.control import tracefs
from bulkmm.control.system_files import SystemFiles

KALLSYMS = "/proc/kallsyms"
FUNCTION = "tTwW"  # how kallsyms marks functions
CLONE = re.compile(r"\.(?:isra|constprop|part)\.\d+")
# In enabled_functions: a direct trampoline, and IP modification (live patches). Two
# such cannot share a function; callbacks can.
FLAGS = re.compile(r"\S+ \(\d+\)(?P<flags>[ A-Z]*)")
DIRECT = re.compile(r"direct-->(\S+)(?: \[(\w+)\])?")
MODULE = "bulkmm"  # the module that contains our trampolines


@dataclass
class Symbol:
    """What is known of one function; None: unknown."""

    name: str
    count: int | None = 0  # functions of this name in the kernel itself
    clones: list[str] = field(default_factory=list)  # the compiler's variants
    traceable: bool | None = None
    taken_by: str | None = None  # who else hooks it

    @property
    def absent(self) -> str | None:
        """Return why the function cannot be found, if so."""
        if self.count is None or self.count == 1:
            return None
        if self.count > 1:
            return f"the kernel has {self.count} functions of this name"
        if self.clones:
            return f"the compiler changed it to {', '.join(self.clones)}"
        return "the kernel has no such function (renamed, or inlined)"

    @property
    def refusal(self) -> str | None:
        """Return why the function cannot be hooked, if so."""
        if self.absent:
            return self.absent
        if self.traceable is False:
            return "the kernel does not allow tracing it"
        return f"{self.taken_by} is attached to it" if self.taken_by else None

    @property
    def remedy(self) -> str:
        """Return what to do about it, if anything can be done."""
        if self.absent is None and self.taken_by:
            return f"detach {self.taken_by} from {self.name}, then: bulkmm on PATH"
        return ""

    @property
    def unknown(self) -> str | None:
        """Return what is unknown about it, if anything."""
        if self.count is None:
            return f"{KALLSYMS} cannot be read"
        if self.traceable is None:
            return "only root can list what can be traced (is tracefs mounted?)"
        return None


def look_up(root: SystemFiles, names: Iterable[str]) -> dict[str, Symbol]:
    """Return what is known of some functions."""
    symbols = {name: Symbol(name) for name in names}
    _read_names(root.read(KALLSYMS), symbols)
    if place := tracefs.find_tracefs(root):
        _read_traceable(root.lines(f"{place}/available_filter_functions"), symbols)
        _read_hooks(root.lines(f"{place}/enabled_functions"), symbols)
    return symbols


def _read_names(text: str | None, symbols: dict[str, Symbol]) -> None:
    if not text:
        for symbol in symbols.values():
            symbol.count = None
        return
    # a module's functions have its name behind theirs; what begins with a blank is
    # searched several times as fast as what begins with a line
    names = "|".join(map(re.escape, symbols))
    pattern = rf" [{FUNCTION}] (({names})(\.\S+)?)$"
    for name, base, suffix in re.findall(pattern, text, re.MULTILINE):
        symbol = symbols[base]
        if not suffix:
            symbol.count = (symbol.count or 0) + 1
        elif CLONE.search(suffix):
            symbol.clones.append(name)


def _read_traceable(lines: list[str], symbols: dict[str, Symbol]) -> None:
    names = {line.partition(" ")[0] for line in lines}
    for symbol in symbols.values() if lines else ():
        symbol.traceable = symbol.name in names


def _read_hooks(lines: list[str], symbols: dict[str, Symbol]) -> None:
    """Read who hooks what: a line per function, its trampolines on the lines after."""
    symbol = None
    for line in lines:
        if not line[:1].isspace():
            symbol = symbols.get(line.partition(" ")[0])
            flags = FLAGS.match(line)
            if symbol and flags and "I" in flags["flags"]:
                symbol.taken_by = "a live patch"
        if symbol and (direct := DIRECT.search(line)):
            is_ours = direct[2] == MODULE
            symbol.taken_by = None if is_ours else f"the direct trampoline {direct[1]}"
