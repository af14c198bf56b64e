# SPDX-License-Identifier: GPL-2.0-only
"""What doctor believes a path needs is what the module's source says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from commandlib import ROOT

from bulkmm.control import needs

if TYPE_CHECKING:
    from bulkmm.control.needs import Needs

MODULE = ROOT / "module"
DEFINE = re.compile(r"^#define\s+(\w+)\s+\"(\w+)\"", re.MULTILINE)
SYMBOL = re.compile(r"\.symbol = (\"\w+\"|\w+)")
CALLED = re.compile(r"bmm_symbol_entry\((?:\*symbol = )?(\"\w+\"|[A-Z_]+)\)")
OPTION = re.compile(r"(!?)IS_ENABLED\(CONFIG_(\w+)\)")
STRUCT = re.compile(r"^struct bmm_path (\w+) = {(.*?)^};", re.DOTALL | re.MULTILINE)
REGISTERED = re.compile(r"bmm_path \*const paths\[\] = {(.*?)};", re.DOTALL)
MACHINES = ("x86_64", "aarch64")
TABLE = {path.name: path for path in needs.read("aarch64").paths}
ARM64 = re.compile(r"^#ifdef CONFIG_ARM64$.*?^#endif$", re.DOTALL | re.MULTILINE)


def definitions() -> dict[str, set[str]]:
    """Return every value that a name is defined to, whatever the kernel."""
    found: dict[str, set[str]] = {}
    for header in MODULE.rglob("*.h"):
        for name, value in DEFINE.findall(header.read_text()):
            found.setdefault(name, set()).add(value)
    return found


def values(word: str, text: str) -> set[str]:
    """Return what a quoted symbol or the name of one stands for."""
    if word.startswith('"'):
        return {word.strip('"')}
    return set(dict(DEFINE.findall(text)).get(word, "").split()) or definitions()[word]


def sources() -> dict[str, str]:
    """Return the source of each path that the module registers: x.c, x_*.c."""
    (registered,) = REGISTERED.findall((MODULE / "main.c").read_text())
    structs = re.findall(r"&(\w+)", registered)
    assert structs
    found = {}
    for file in MODULE.glob("*.c"):
        for name, body in STRUCT.findall(file.read_text()):
            named = re.search(r"\.name = \"(\w+)\"", body)
            if name in structs and named:
                others = sorted(MODULE.glob(f"{file.stem}_*.c"))
                texts = [one.read_text() for one in (file, *others)]
                found[named[1]] = "\n".join(texts)
    assert len(found) == len(structs)
    return found


def test_every_path_is_there() -> None:
    assert set(TABLE) == set(sources())


@pytest.mark.parametrize(
    ("machine", "path"),
    [(machine, path) for machine in MACHINES for path in needs.read(machine).paths],
    ids=lambda word: getattr(word, "name", word),
)
def test_symbols_and_options(machine: str, path: Needs) -> None:
    text = sources()[path.name]
    if machine == "x86_64":
        text = ARM64.sub("", text)
    hooks = [name for word in SYMBOL.findall(text) for name in values(word, text)]
    assert list(path.hooks) == hooks  # the first is the one that it needs
    calls = [values(word, text) for word in CALLED.findall(text)]
    assert [set(group) for group in path.calls] == calls
    options = {(bool(mark), name) for mark, name in OPTION.findall(text)}
    wanted = {(False, name) for name in path.without_options}
    assert options == wanted | {(True, name) for name in path.with_options}


def test_architectures_are_those_with_a_trampoline() -> None:
    folders = {"x86": "x86_64", "arm64": "aarch64"}
    built = {
        name for at, name in folders.items() if (MODULE / at / "trampoline.S").exists()
    }
    assert set(needs.read("").architectures) == built == set(MACHINES)
