# SPDX-License-Identifier: GPL-2.0-only
"""The library, installed once for the tests of this directory."""

import pytest
from corelib import NATIVE, build_target
from installed import Installed, install_build


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    build_target(NATIVE)
    return install_build(NATIVE, tmp_path_factory.mktemp("root"))
