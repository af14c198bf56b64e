# SPDX-License-Identifier: GPL-2.0-only
"""What a terminal shows of steps in steps."""

import io

import pytest
from rich.console import Console
from rich.status import Status

from bulkmm.lab.progress import Progress


def shown(progress: Progress) -> object:
    return progress.status.status if progress.status else None


def test_a_step_gives_the_line_back_to_what_it_is_in() -> None:
    progress = Progress()
    progress.console = Console(file=io.StringIO(), force_terminal=True)
    with progress.shown("measuring"):
        with progress.step("reading"):
            assert shown(progress) == "reading"
            progress.detail("reading more")
        assert shown(progress) == "measuring"
        progress.detail("process 1")
        assert shown(progress) == "process 1"
        assert isinstance(progress.status, Status)
    assert shown(progress) is None


def test_a_step_that_fails_gives_it_back_too() -> None:
    progress = Progress()
    progress.console = Console(file=io.StringIO(), force_terminal=True)
    with pytest.raises(KeyboardInterrupt), progress.step("reading"):
        raise KeyboardInterrupt
    assert shown(progress) is None
