# SPDX-License-Identifier: GPL-2.0-only
"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.progress import ProgressColumn


@contextmanager
def show_bar(
    text: str, columns: Sequence[ProgressColumn] = ()
) -> Iterator[Callable[[int, int], None]]:
    """Show a bar; yield what moves it, given what is done and all that is to do."""
    if not sys.stderr.isatty():  # nor is rich needed, which not every system has
        yield lambda _completed, _total: None
        return
    from rich import progress as bars
    from rich.console import Console

    count = (bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
    usual = (*bars.Progress.get_default_columns()[:2], *(columns or count))
    with bars.Progress(*usual, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text.replace("[", "\\["), total=None)
        yield lambda completed, total: bar.update(
            task, completed=completed, total=total
        )
