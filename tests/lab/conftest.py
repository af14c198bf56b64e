# SPDX-License-Identifier: GPL-2.0-only
"""What the lab's tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bulkmm import cli

Refused = tuple[int, str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., Refused]:
    """Return what runs the command and gives its exit code and one line."""

    def run(*argv: str) -> Refused:
        code = cli.main(["lab", *argv])
        said = capsys.readouterr().err.strip().splitlines()
        ours = [line for line in said if line.startswith("bulkmm: ")]
        assert len(ours) == 1, said
        return code, ours[0]

    return run


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache directory of the test's own."""
    monkeypatch.setenv("BULKMM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
