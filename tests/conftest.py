# SPDX-License-Identifier: GPL-2.0-only
"""Who runs what when several processes do: see scripts/test.

And that a test finds today what it finds tomorrow, however busy the machine is.
"""

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

settings.register_profile("any-day", deadline=None, derandomize=True)
settings.load_profile("any-day")

# Guests, of which only two run at once, are the longest chain of all: one process
# boots from its first minute on, and the others do the rest before they join in.
# The longest come first, so that nobody waits for one of them at the end.
GUESTS = (
    "tests/packages/test_packages.py",
    "tests/lab/test_matrix.py::test_the_quick_matrix",
    "tests/packages/test_boot.py",
    "tests/command/test_guest.py",
    "tests/lab/",
    "tests/populate/test_populate_guest.py",
)


def rank(scope: str) -> int:
    """Return the place of what boots guests among the like; the rest comes last."""
    places = (n for n, start in enumerate(GUESTS) if scope.startswith(start))
    return next(places, len(GUESTS))


class Folders(LoadScopeScheduling):
    """A folder at a time: it shares its fixtures, and what they build.

    Tests of tests/lab share nothing but the lab, whose preparation is locked, and
    are handed out one by one.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if nodeid.startswith("tests/lab/"):
            return nodeid
        return file if file in GUESTS else file.rpartition("/")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        boots = node is self.nodes[0]
        mine = (one for one in self.workqueue if one.startswith(GUESTS) is boots)
        if first := min(mine, key=rank, default=""):
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> LoadScopeScheduling:
    """Return who hands out the tests."""
    return Folders(config, log)
