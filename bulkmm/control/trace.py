# SPDX-License-Identifier: GPL-2.0-only
"""Latency of single requests, from the module's tracepoints.

They go to our own trace instance, invisible to other users of tracing.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bulkmm.control import tracefs
from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError

EVENT = re.compile(r": (\w+): .*\bns=(\d+)")
BUFFER_KIB = "1024"  # per CPU: events that do not fit between two reads are lost
CHUNK = 1 << 20


@dataclass(frozen=True)
class Latency:
    """Latencies of the requests between two reads."""

    n: int
    median_ns: int
    p99_ns: int
    max_ns: int


def latency(times: list[int]) -> Latency:
    """Return the summary of times in ns."""
    ordered = sorted(times)
    n = len(ordered)
    return Latency(
        n, ordered[(n - 1) // 2], ordered[-(-99 * n // 100) - 1], ordered[-1]
    )


def by_path(lines: str) -> dict[str, list[int]]:
    """Return the times in lines of a trace, by path; paths name the events."""
    found: dict[str, list[int]] = {}
    for line in lines.splitlines():
        if event := EVENT.search(line):
            found.setdefault(event[1], []).append(int(event[2]))
    return found


class Trace:
    """The pipe of a trace instance."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.rest = ""

    def read(self) -> dict[str, Latency]:
        """Return the latencies since the last read, by path."""
        text = self.rest
        while True:
            try:
                part = os.read(self.pipe, CHUNK)
            except BlockingIOError:
                break
            if not part:
                break
            text += part.decode(errors="replace")
        whole, _, self.rest = text.rpartition("\n")
        return {name: latency(times) for name, times in by_path(whole).items()}


@contextmanager
def traced(root: Root) -> Iterator[Trace]:
    """Have a trace instance with the module's tracepoints enabled."""
    place = tracefs.place(root)
    if place is None:
        raise BulkmmError(f"--trace needs tracefs, as root: {tracefs.MOUNT}")
    home = Root(root.at(place))
    with ExitStack() as held:
        try:
            name, interruptible = held.enter_context(tracefs.owned(home, "watch"))
            instance = Root(home.at(f"instances/{name}"))
            instance.write("buffer_size_kb", BUFFER_KIB)
            instance.write("events/bulkmm/enable", "1")
            pipe = os.open(instance.at("trace_pipe"), os.O_RDONLY | os.O_NONBLOCK)
            held.callback(os.close, pipe)  # else the instance could not be removed
        except OSError as error:
            message = f"--trace: {error.filename}: {error.strerror}"
            raise BulkmmError(message) from error
        with interruptible():
            yield Trace(pipe)
