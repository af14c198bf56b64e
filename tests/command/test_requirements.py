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


def test_a_path_hooks_what_is_stated_in_that_order() -> None:
    stated: dict[str, dict[str, None]] = {}
    for path, hook in HOOKED.findall((MODULE / "paths.def").read_text()):
        stated.setdefault(path, {})[hook] = None
    structs = {
        path: re.findall(r"BMM_HOOK\((\w+)\)", body)
        for file in MODULE.glob("*.c")
        for path, body in STRUCT.findall(file.read_text())
    }
    assert structs == {path: [*hooks] for path, hooks in stated.items()}
    assert {*structs} == {path.name for path in requirements.read_table("x86_64").paths}


def test_limits_name_the_same_kernels() -> None:
    *older, newest = requirements.read_table("x86_64").tested
    (arm64,) = requirements.read_table("aarch64").tested
    limits = (ROOT / "docs/limits.md").read_text().split("- **Kernels built")[0]
    names = re.findall(r"\b\d\.\d+\b", limits.split("- **Kernels**")[1])
    assert names == [*older, newest, arm64]
