# SPDX-License-Identifier: GPL-2.0-only
"""The library and its test programs, built once for the tests of this directory."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from corelib import NATIVE, build_target


@pytest.fixture(scope="session", autouse=True)
def _build_library() -> None:
    build_target(NATIVE)


@pytest.fixture
def shm() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        yield Path(place)
