# SPDX-License-Identifier: GPL-2.0-only
"""Latency of single requests, from the module's tracepoints.

They go to our own trace instance, invisible to other users of tracing, which is
removed however the command ends.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError

PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
EVENT = re.compile(r": (\w+): .*\bns=(\d+)")
BUFFER_KIB = "1024"  # per CPU: events that do not fit between two reads are lost
CHUNK = 1 << 20


def tracefs(root: Root) -> str | None:
    """Return where tracefs is mounted."""
    for place in PLACES:
        if root.at(f"{place}/trace").exists():
            return place
    return None


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
    """A trace instance with the module's tracepoints enabled."""

    def __init__(self, root: Root) -> None:
        place = tracefs(root)
        if place is None:
            mount = f"mount -t tracefs tracefs {PLACES[0]}"
            raise BulkmmError(f"--trace needs tracefs, as root: {mount}")
        self.home = root.at(f"{place}/instances/bulkmm-{os.getpid()}")
        self.pipe = -1
        self.rest = ""

    def __enter__(self) -> Self:
        """Create the instance."""
        try:
            self.home.mkdir()
            _write(self.home / "buffer_size_kb", BUFFER_KIB)
            _write(self.home / "events/bulkmm/enable", "1")
            self.pipe = os.open(self.home / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self._remove()
            message = f"--trace: {error.filename}: {error.strerror}"
            raise BulkmmError(message) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the instance."""
        self._remove()

    def _remove(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1
        if self.home.is_dir():
            self.home.rmdir()  # tracefs: rmdir() despite the files in it

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


def _write(file: Path, text: str) -> None:
    with file.open("r+", encoding="ascii") as held:
        held.write(text)
