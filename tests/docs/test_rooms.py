# SPDX-License-Identifier: GPL-2.0-only
"""Imports go one way: from the rooms of a checkout to what is installed."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("bulkmm", "bench", "lab")


def room_of(module: str) -> str:
    """Return the room of a module: lab, bench, or a package of bulkmm."""
    room, _, rest = module.partition(".")
    package = rest.partition(".")[0]
    inside = room == "bulkmm" and (ROOT / "bulkmm" / package).is_dir()
    return f"{room}.{package}" if inside and package else room


def list_imports(file: Path) -> set[str]:
    """Return the rooms that a file imports."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {room_of(name) for name in modules if name.split(".")[0] in ROOMS}


def map_imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    arrows: dict[str, set[str]] = {}
    for top in ROOMS:
        for file in (ROOT / top).rglob("*.py"):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            room = room_of(name)
            arrows.setdefault(room, set()).update(list_imports(file) - {room})
    return arrows


def test_no_room_imports_itself_by_way_of_others() -> None:
    arrows = map_imports()
    while free := {room for room in arrows if not arrows[room] & arrows.keys()}:
        for room in free:
            del arrows[room]
    assert not arrows


def test_what_is_installed_imports_no_room_of_a_checkout() -> None:
    arrows = map_imports()
    assert {"bench", "lab"} <= arrows.keys()
    for room, targets in arrows.items():
        if room.startswith("bulkmm"):
            assert not targets & {"bench", "lab"}, room
    assert "bench" not in arrows["lab"]
