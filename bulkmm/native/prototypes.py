# SPDX-License-Identifier: GPL-2.0-only
"""A kernel's prototypes of the functions that a path hooks and calls."""

from bulkmm.control.needs import Needs
from bulkmm.native.btf import Types

Prototypes = dict[str, list[str]]  # by function


def against(path: Needs, types: Types, wanted: Prototypes) -> list[str]:
    """Return why a path cannot attach to this kernel; see paths.def."""
    said = []
    for group in path.needed:
        there = {name: types.prototypes(name) for name in group}
        if not any(there.values()):
            said.append(f"{' or '.join(group)}: none")
        said += _others(there, wanted)
    return said + lacking(path, types, wanted)[1]


def lacking(
    path: Needs, types: Types, wanted: Prototypes
) -> tuple[list[str], list[str]]:
    """Return which other hooks are missing, and which have other types."""
    missing, others = [], []
    for group in path.optional:
        there = {name: types.prototypes(name) for name in group}
        if not any(there.values()):
            missing.append(" or ".join(group))
        others += _others(there, wanted)
    return missing, others


def _others(there: Prototypes, wanted: Prototypes) -> list[str]:
    return [
        f"{name}: {found}"
        for name, prototypes in there.items()
        for found in prototypes
        if found not in wanted[name]
    ]
