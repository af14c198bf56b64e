# SPDX-License-Identifier: GPL-2.0-only
"""Progress on stderr: a spinner on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # loading it takes long
    from rich.status import Status

Item = TypeVar("Item")
Observer = Callable[[dict[str, Any]], None]
SLOW = 1.0  # seconds; quicker steps get no line
LONG = 100  # seconds; from there on minutes are told


class Progress:
    """Shows steps and their durations."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        # rich shows nothing at all that moves on a dumb terminal
        self.live = self.console.is_terminal and not self.console.is_dumb_terminal
        self.status: Status | None = None

    def note(self, text: str) -> None:
        """Print a permanent line."""
        self.console.print(text, markup=False)

    def detail(self, text: str) -> None:
        """Show the running step's progress (on a terminal only)."""
        if self.status:
            self.status.update(text)

    def count_items(
        self, word: str, items: Sequence[Item], name: Callable[[Item], str]
    ) -> Iterator[Item]:
        """Yield items; print of each which it is, and how long the rest takes.

        The mean is of those that were slow: others were resumed, or failed at once.
        """
        elapsed, complete = 0.0, 0
        for number, item in enumerate(items, 1):
            rest = len(items) - number + 1
            estimate = estimate_left(elapsed, complete, complete + rest)
            self.note(f"{word} {number} of {len(items)}: {name(item)}{estimate}")
            start = time.monotonic()
            yield item
            if (duration := time.monotonic() - start) > SLOW:
                elapsed, complete = elapsed + duration, complete + 1

    @contextmanager
    def show_status(self, text: str) -> Iterator[None]:
        """Show a spinner with this text; if nested, the outer one shows it."""
        if not self.live:
            yield
        elif self.status:
            before = self.status.status
            self.status.update(text)
            try:
                yield
            finally:
                self.status.update(before)
        else:
            try:
                with self.console.status(text) as self.status:
                    yield
            finally:
                self.status = None

    @contextmanager
    def follow_events(
        self, text: str, name: str, total: int, kinds: int = 1
    ) -> Iterator[Observer]:
        """Show a spinner with this text, then what is measured and how far it is.

        ``total``: the processes that will run. Each is told of by an event "process".
        ``kinds``: of processes, which take turns; the mean is of whole turns.
        """
        number, start, whole, rest = 0, 0.0, 0.0, ""

        def observe(event: dict[str, Any]) -> None:
            nonlocal number, start, whole, rest
            arm = ""
            if event["event"] == "process":
                now = time.monotonic()
                if not number:
                    start = now
                elif number % kinds == 0:
                    whole = (now - start) * total / number
                number += 1
                rest = format_left(whole - (now - start)) if whole else ""
            elif event["event"] in ("sample", "verified"):
                arm = f": {event['scenario']} {event['variant']}"
            else:
                return
            self.detail(f"{name}: process {number} of {total}{rest}{arm}")

        with self.show_status(text):
            yield observe

    @contextmanager
    def step(self, text: str, expected: str = "") -> Iterator[None]:
        """Show a step while it runs, then its duration unless it was quick.

        ``expected``: in words, how long it takes.
        """
        start = time.monotonic()
        before = f"{text} ({expected})" if expected else text
        with self.show_status(before):
            if not self.live:
                self.note(f"{before} ...")
            yield
        duration = time.monotonic() - start
        if duration > SLOW:
            self.note(f"{text}: {duration:.1f} s")


def estimate_left(elapsed: float, complete: int, total: int) -> str:
    """Return in words how long the rest takes, if each item takes the mean.

    Nothing before the first is complete.
    """
    if not complete:
        return ""
    return format_left(elapsed / complete * (total - complete))


def format_left(seconds: float) -> str:
    """Return how long something still takes, as the end of a line."""
    return f", {format_estimate(max(0, seconds))} left"


def format_estimate(seconds: float) -> str:
    """Return about how long something takes, in words."""
    if seconds < LONG:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min"
