# SPDX-License-Identifier: GPL-2.0-only
"""The order of tests, and that a test finds today what it finds tomorrow."""

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("any-day", deadline=None, derandomize=True)
settings.load_profile("any-day")

# Lines are as wide as where there is no terminal, however wide the shell's is.
os.environ.pop("COLUMNS", None)

# Background jobs of a shell or of nohup, as CI may be, are born with these ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Guests are the longest chain, as few run at once. So the first process (scripts/test
# gives each a part of the list) begins with them while the others do the rest, and
# what takes longest is not left to the end.
FIRST = (
    "tests/packages/test_packages.py",
    "tests/packages/test_boot.py",
    "tests/command/test_guest.py",
)


def rank(test: pytest.Item) -> int:
    """Return the place of a test among those that boot guests; the rest is last."""
    places = (n for n, file in enumerate(FIRST) if test.nodeid.startswith(file))
    return next(places, len(FIRST) + (test.get_closest_marker("vm") is None))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that boot guests first."""
    items.sort(key=rank)
