# SPDX-License-Identifier: GPL-2.0-only
"""The switch that writes the golden files."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the golden files")
