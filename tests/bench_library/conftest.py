# SPDX-License-Identifier: GPL-2.0-only
"""The bench program, built before the tests."""

import pytest
from corelib import NATIVE, build_target


@pytest.fixture(scope="session", autouse=True)
def _build_bench() -> None:
    build_target(NATIVE)
