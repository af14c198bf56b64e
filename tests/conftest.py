# SPDX-License-Identifier: GPL-2.0-only
"""Who runs what when several processes do, and where: see scripts/test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

from bulkmm.lab import paths

if TYPE_CHECKING:
    from xdist.remote import Producer

CACHES = 2  # guests at once: each has two CPUs


class Folders(LoadScopeScheduling):
    """A folder at a time: it shares its fixtures, and what they build.

    Those of tests/lab share nothing: whoever has nothing to do takes the next.
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


def pytest_configure() -> None:
    """Give every other process a cache beside the usual one, which is locked."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if number % CACHES:
        os.environ["BULKMM_CACHE"] = f"{paths.cache_dir()}-beside"
