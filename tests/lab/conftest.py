# SPDX-License-Identifier: GPL-2.0-only
"""What the lab's tests share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judgelib import Reports

from bulkmm import cli
from bulkmm.results.model import Document
from lab import judge
from lab.scenario import Scenario

Refusal = tuple[int, str]


@pytest.fixture
def run_refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., Refusal]:
    """Return what runs the command and gives its exit code and one line."""

    def run(*argv: str) -> Refusal:
        code = cli.main(["lab", *argv])
        lines = capsys.readouterr().err.strip().splitlines()
        messages = [line for line in lines if line.startswith("bulkmm: ")]
        assert len(messages) == 1, lines
        return code, messages[0]

    return run


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Reports:
    """Return what is judged in this process: of which scenario, a guest's reports."""
    outcomes: Reports = []
    judge_outcome = judge.judge_outcome

    def record_and_judge(scenario: Scenario, *rest: Any) -> Document:
        outcomes.append((scenario, rest[-1]))
        return judge_outcome(scenario, *rest)

    monkeypatch.setattr(judge, "judge_outcome", record_and_judge)
    return outcomes


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache directory of the test's own."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("BULKMM_CACHE", str(cache))
    monkeypatch.delenv("BULKMM_GUESTS", raising=False)
    return cache
