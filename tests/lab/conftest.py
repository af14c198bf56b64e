# SPDX-License-Identifier: GPL-2.0-only
"""What the lab's tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from judgelib import Heard

from bulkmm import cli
from bulkmm.results.model import Document
from lab import run as lab_run
from lab.machine.vm import Outcome

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
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """Return what is judged in this process: of which scenario, a guest's reports."""
    found: Heard = []
    judge = lab_run._judged

    def judged(request: lab_run.Request, outcome: Outcome) -> Document:
        found.append((request.scenario, outcome))
        return judge(request, outcome)

    monkeypatch.setattr(lab_run, "_judged", judged)
    return found


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache directory of the test's own."""
    made = tmp_path / "cache"
    made.mkdir()
    monkeypatch.setenv("BULKMM_CACHE", str(made))
    monkeypatch.delenv("BULKMM_GUESTS", raising=False)
    return made
