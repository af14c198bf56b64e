# SPDX-License-Identifier: GPL-2.0-only
"""A progress bar on stderr, on a terminal only."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import progress as bars
from rich.console import Console

Show = Callable[[int, int], None]  # done, in all
COUNT = (bars.MofNCompleteColumn(), bars.TimeRemainingColumn())


@contextmanager
def shown(text: str, columns: Sequence[bars.ProgressColumn] = ()) -> Iterator[Show]:
    """Show a bar; yield what moves it."""
    console = Console(stderr=True)
    usual = (*bars.Progress.get_default_columns()[:2], *(columns or COUNT))
    with bars.Progress(
        *usual, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(text.replace("[", "\\["), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
