# SPDX-License-Identifier: GPL-2.0-only
"""module/paths.def and module/compat/kernels.mk, where C and Python could differ."""

import re

from commandlib import ROOT

from bulkmm.control import requirements

MODULE = ROOT / "module"
STRUCT = re.compile(
    r"^struct bmm_path bmm_(\w+)_path = {(.*?)^};", re.DOTALL | re.MULTILINE
)
HOOKED = re.compile(r"^BMM_PATH_HOOK\((\w+), (\w+),", re.MULTILINE)


def read_structs() -> dict[str, str]:
    """Return the initializers of each path's struct bmm_path."""
    texts = (file.read_text() for file in MODULE.glob("*.c"))
    return dict(match for text in texts for match in STRUCT.findall(text))


def test_a_path_hooks_what_is_stated_in_that_order() -> None:
    stated: dict[str, dict[str, None]] = {}
    for path, hook in HOOKED.findall((MODULE / "paths.def").read_text()):
        stated.setdefault(path, {})[hook] = None
    structs = {
        path: re.findall(r"BMM_HOOK\((\w+)\)", body)
        for path, body in read_structs().items()
    }
    assert structs == {path: [*hooks] for path, hooks in stated.items()}
    assert {*structs} == {path.name for path in requirements.read_table("x86_64").paths}


def test_a_path_needs_the_hooks_of_the_path_that_the_source_names() -> None:
    lenders = {
        path: lender
        for path, body in read_structs().items()
        for lender in re.findall(r"\.needs_hooks_of = &bmm_(\w+)_path,", body)
    }
    paths = requirements.read_table("x86_64").paths
    assert lenders == {path.name: path.lender.name for path in paths if path.lender}


def test_what_can_be_tuned_is_what_the_source_makes_writable() -> None:
    """Which path has which file is seen in a guest: test_guest.py."""
    source = "".join(path.read_text() for path in MODULE.glob("*.c"))
    files = re.findall(r"(?:BMM_TUNABLE|SELECT_FILE)\((?!_)(\w+)", source)
    files += re.findall(r"__ATTR\((?!_)(\w+), 0644", source)
    parameters = re.findall(r"\nmodule_param\((?!fault)(\w+), \w+, 0644", source)
    paths = requirements.read_table("x86_64").paths
    keys = [key.rpartition(".")[2] for path in paths for key in path.settings]
    assert sorted(keys) == sorted([*files, *parameters])


def test_limits_name_the_same_kernels() -> None:
    *older, newest = requirements.read_table("x86_64").tested
    (arm64,) = requirements.read_table("aarch64").tested
    limits = (ROOT / "docs/limits.md").read_text().split("- **Kernels built")[0]
    names = re.findall(r"\b\d\.\d+\b", limits.split("- **Kernels**")[1])
    assert names == [*older, newest, arm64]
