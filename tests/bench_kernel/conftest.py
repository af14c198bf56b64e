# SPDX-License-Identifier: GPL-2.0-only
"""Kernels and modules of the lab, made ready for the harness."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from corelib import NATIVE, build_target
from nativelib import SESSION, Pair, pair_of, prepared

from lab.machine.arch import X86_64


@pytest.fixture(scope="session", autouse=True)
def harness_session() -> Iterator[None]:
    """Build the harness, for none to build it meanwhile; remove what it was given."""
    build_target(NATIVE)
    with SESSION:
        yield


@pytest.fixture(scope="session", params=X86_64.series)
def pair(request: pytest.FixtureRequest) -> Pair:
    """One kernel after the other."""
    return pair_of(request.param)


@pytest.fixture(scope="session")
def older() -> Pair:
    """Return the kernel whose per-CPU addresses count from GS."""
    return pair_of(X86_64.series[0])


@pytest.fixture
def ready(older: Pair, tmp_path: Path) -> Iterator[Path]:
    """Return a directory of the harness, to be tampered with."""
    original = prepared(older.kernel, older.module, "off").path
    directory = shutil.copytree(original, tmp_path / "ready")
    yield directory
    shutil.rmtree(directory)
