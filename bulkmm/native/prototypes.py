# SPDX-License-Identifier: GPL-2.0-only
"""A kernel's prototypes of the functions that a path hooks and calls."""

from collections.abc import Iterable

from bulkmm.control.needs import Needs
from bulkmm.native.btf import Types

Prototypes = dict[str, list[str]]  # by function


def against(path: Needs, types: Types, wanted: Prototypes) -> list[str]:
    """Return why a path cannot attach to this kernel; see paths.def."""
    missing, others = compared(path.needed, types, wanted)
    none = [f"{names}: none" for names in missing]
    return [*none, *others, *compared(path.optional, types, wanted)[1]]


def compared(
    groups: Iterable[Iterable[str]], types: Types, wanted: Prototypes
) -> tuple[list[str], list[str]]:
    """Return which functions are missing, and which have other types."""
    missing, others = [], []
    for group in groups:
        there = {name: types.prototypes(name) for name in group}
        if not any(there.values()):
            missing.append(" or ".join(there))
        others += [
            f"{name}: {found}"
            for name, prototypes in there.items()
            for found in prototypes
            if found not in wanted[name]
        ]
    return missing, others
