# SPDX-License-Identifier: GPL-2.0-only
"""The check of names and titles finds what it is for."""

import ast

import names
import pytest


@pytest.mark.parametrize(
    "source",
    [
        "said = 1",
        "def write(found): ...",
        "def read_one(*, _held=0): ...",
        "class Kept: ...",
        "for one in (): ...",
        "def _made(): ...",
        "def read(): ...",
    ],
)
def test_a_vague_name_is_refused(source: str) -> None:
    (fault,) = names.check_names(ast.parse(source), test="write(" in source)
    assert fault.startswith("1: ")


@pytest.mark.parametrize(
    "source",
    [
        "lines = [one for one in ()]",
        "def read_lines(): ...",
        "def main(): ...",
        "def _read(): ...",
        "class Pool:\n    def read(self): ...",
    ],
)
def test_a_name_of_the_field_passes(source: str) -> None:
    assert not list(names.check_names(ast.parse(source), test=False))


def test_only_members_of_json_keep_their_names() -> None:
    source = "class Check:\n    says: str\n    seen: str\nsays: str"
    faults = names.check_names(ast.parse(source), {"says"}, test=False)
    assert sorted(fault[:7] for fault in faults) == ["3: seen", "4: says"]


@pytest.mark.parametrize(
    ("title", "passes"),
    [
        ("pool, lab: Read the pool's limit first", True),
        ("scripts/check: Feed the spelling", True),
        ("lab: a guest that hangs", False),
        ("lab: The guest hangs", False),
        ("lab: Fixed the guest", False),
        ("lab: Testing", False),
        ("Read the pool", False),
    ],
)
def test_titles(title: str, *, passes: bool) -> None:
    assert names.is_imperative(title) is passes
