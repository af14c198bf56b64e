# SPDX-License-Identifier: GPL-2.0-only
"""The library, installed once for the tests of this directory."""

import pytest
from corelib import NATIVE, meson
from installed import Installed, install


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    meson(NATIVE)
    return install(NATIVE, tmp_path_factory.mktemp("root"))
