# SPDX-License-Identifier: GPL-2.0-only
"""What a diagnosis says, by name."""

from typing import Any


def paths_of(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return verdict and reasons by path."""
    return {
        p["name"]: (p["verdict"], "; ".join(p["reasons"])) for p in document["paths"]
    }


def states_of(document: dict[str, Any]) -> dict[str, str]:
    """Return the states of what was checked."""
    return {check["name"]: check["state"] for check in document["checks"]}
