# SPDX-License-Identifier: GPL-2.0-only
"""Latency of single requests, from the module's tracepoints.

They go to our own trace instance, invisible to other users of tracing.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO

from bulkmm.control import tracefs
from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError

EVENT = re.compile(r": (\w+): .*\bns=(\d+)")
BUFFER_KIB = "1024"  # per CPU: events that do not fit between two reads are lost


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


@dataclass
class Trace:
    """The pipe of a trace instance."""

    pipe: FileIO
    rest: bytes = b""

    def read(self) -> dict[str, Latency]:
        """Return the latencies since the last read, by path."""
        read = self.pipe.readall() or b""  # None: nothing to read now
        whole, _, self.rest = (self.rest + read).rpartition(b"\n")
        found = by_path(whole.decode(errors="replace"))
        return {name: latency(times) for name, times in found.items()}


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
            # closed before the instance is removed, which could not be otherwise
            reader = held.enter_context(FileIO(pipe))
        except OSError as error:
            message = f"--trace: {error.filename}: {error.strerror}"
            raise BulkmmError(message) from error
        with interruptible():
            yield Trace(reader)
