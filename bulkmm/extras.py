# SPDX-License-Identifier: GPL-2.0-only
"""Libraries that only some commands need."""


def missing(library: str) -> str:
    """Return what to do about a library that is not there."""
    return f"{library} is not installed: pip install 'bulkmm[report]'"
