# SPDX-License-Identifier: GPL-2.0-only
"""Shares of an operation's time by function, from the lab's traces."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from bulkmm.control import needs
from bulkmm.results import Document
from bulkmm.sheet import Sheet

BEFORE, AFTER = "absent", "on"
MOST = 9  # functions with their own line
REST = "all else"
UNREACHED = "not by this module"
HEADINGS = ("function", "served by", "without the module", "with it")


@cache
def paths() -> dict[str, str]:
    """Return the path that hooks each function."""
    return {
        function: path.name
        for path in needs.read("").paths
        for group in path.hooks.values()
        for function in group
    }


def sheets(document: Document) -> Iterator[tuple[str, Sheet]]:
    """Return a table for each operation traced both without and with the module."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for one in document.run.get("breakdown", ()):
        found.setdefault(one["operation"], {})[one["variant"]] = one
    for name, arms in found.items():
        if BEFORE in arms and AFTER in arms and arms[BEFORE]["ns"]:
            yield name, Sheet(HEADINGS, _rows(arms[BEFORE], arms[AFTER]), HEADINGS[2:])


def _rows(before: dict[str, Any], after: dict[str, Any]) -> list[list[str]]:
    """Return the functions of most time, the rest, and the whole, in per cent."""
    arms, whole = (before, after), before["ns"]
    own = [{n: f["own_ns"] for n, f in one["functions"].items()} for one in arms]
    names = sorted({*own[0], *own[1]}, key=lambda n: -own[0].get(n, 0))[:MOST]
    times = {(n, paths().get(n, UNREACHED)): [f.get(n, 0) for f in own] for n in names}
    parts = [sum(column) for column in zip(*times.values(), strict=True)] or [0, 0]
    rest = [max(one["ns"] - part, 0) for one, part in zip(arms, parts, strict=True)]
    times |= {(REST, ""): rest, ("the whole", ""): [one["ns"] for one in arms]}
    return [
        [*name, *(f"{100 * ns / whole:.1f} %" for ns in both)]
        for name, both in times.items()
    ]
