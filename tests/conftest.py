# SPDX-License-Identifier: GPL-2.0-only
"""Who runs what when several processes do: see scripts/test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer


class Folders(LoadScopeScheduling):
    """A folder at a time: it shares its fixtures, and what they build.

    Those of tests/lab share nothing but the lab, whose preparation is locked:
    whoever has nothing to do takes the next, so the folders go first.
    """

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.partition("::")[0].rpartition("/")[0]
        return nodeid if folder == "tests/lab" else folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> LoadScopeScheduling:
    """Return who hands out the tests."""
    return Folders(config, log)
