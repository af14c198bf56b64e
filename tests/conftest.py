# SPDX-License-Identifier: GPL-2.0-only
"""Who runs what when several processes do: see scripts/test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

# They boot guests or build for them, one at a time: one queue.
LAB = ("tests/lab", "tests/packages", "tests/module", "tests/command")


class Folders(LoadScopeScheduling):
    """A folder at a time: it shares its fixtures, and what they build."""

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.partition("::")[0].rpartition("/")[0]
        return "lab" if folder in LAB else folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> LoadScopeScheduling:
    """Return who hands out the tests."""
    return Folders(config, log)
