# SPDX-License-Identifier: GPL-2.0-only
"""Who runs what when several processes do: see scripts/test."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Guests stand in one queue; a folder shares its fixtures and what they build."""
    for item in items:
        group = "vm" if item.get_closest_marker("vm") else str(item.path.parent)
        item.add_marker(pytest.mark.xdist_group(group))
