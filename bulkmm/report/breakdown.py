# SPDX-License-Identifier: GPL-2.0-only
"""Shares of an operation's time by function, from the lab's traces."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from bulkmm.control import needs
from bulkmm.results import Document

BEFORE, AFTER = "absent", "on"
MOST = 9  # functions with their own line
REST = "all else"
UNREACHED = "not by this module"


@dataclass(frozen=True)
class Line:
    """One function: its share of the operation's time without the module."""

    function: str
    reached: str  # the path that serves it, if any
    before: float  # per cent
    after: float

    @property
    def label(self) -> str:
        """Return the function and who serves it."""
        return f"{self.function} ({self.reached})" if self.reached else self.function


@dataclass(frozen=True)
class Operation:
    """One operation without and with the module."""

    name: str
    lines: list[Line]

    @property
    def after(self) -> float:
        """Return its remaining time, in per cent."""
        return sum(line.after for line in self.lines)


@cache
def paths() -> dict[str, str]:
    """Return the path that hooks each function."""
    return {hook: path.name for path in needs.read("").paths for hook in path.hooks}


def operations(document: Document) -> Iterator[Operation]:
    """Return the operations traced both without and with the module."""
    traced = document.run.get("breakdown")
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for one in traced if isinstance(traced, list) else ():
        found.setdefault(one["operation"], {})[one["variant"]] = one
    for name, arms in found.items():
        if BEFORE in arms and AFTER in arms and arms[BEFORE]["ns"]:
            yield Operation(name, _lines(arms[BEFORE], arms[AFTER]))


def _lines(before: dict[str, Any], after: dict[str, Any]) -> list[Line]:
    whole = before["ns"]
    shares = [
        {name: 100 * f["own_ns"] / whole for name, f in one["functions"].items()}
        for one in (before, after)
    ]
    names = sorted({*shares[0], *shares[1]}, key=lambda n: -shares[0].get(n, 0))[:MOST]
    lines = [
        Line(n, paths().get(n, UNREACHED), *(share.get(n, 0.0) for share in shares))
        for n in names
    ]
    rest = (
        100 * one["ns"] / whole - sum(share.get(n, 0.0) for n in names)
        for one, share in zip((before, after), shares, strict=True)
    )
    return [*lines, Line(REST, "", *(max(part, 0.0) for part in rest))]
