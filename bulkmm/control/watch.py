# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm watch``: activity between two reads of the counters.

Latencies of single requests are those of the module's tracepoints, which go to a trace
instance of our own, invisible to other users of tracing.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from io import FileIO
from itertools import zip_longest
from typing import Literal

from bulkmm.control import module as modules
from bulkmm.control import tracefs
from bulkmm.control.format import align_columns, format_duration, format_number
from bulkmm.control.json_output import Record
from bulkmm.control.module import KernelPath
from bulkmm.control.status import select_paths
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell import streams
from bulkmm.shell.errors import BulkmmError, Exit

CLEAR = "\x1b[H\x1b[2J"  # the screen
INFLIGHT = "inflight"  # rises and falls
TIMES = ("mean", "median", "p99", "worst")  # all but the mean by --trace
EVENT = re.compile(r": (\w+): .*\bns=(\d+)")
BUFFER_KIB = "1024"  # per CPU: events that do not fit between two reads are lost


@dataclass(frozen=True)
class Latency:
    """Latencies of the requests between two reads."""

    n: int
    median_ns: int
    p99_ns: int
    max_ns: int


@dataclass(frozen=True)
class Rates:
    """What a path did between two reads, per second."""

    name: str
    mode: str
    requests_per_s: float
    bytes_per_s: float
    mean_ns: float | None  # None: no request was served
    inflight: int
    fallbacks_per_s: dict[str, float]
    latency: Latency | None  # None: not traced, or no request was seen


@dataclass(frozen=True, kw_only=True)
class Sample(Record):
    """Printed by watch, one a line: what paths did in so many seconds up to then."""

    kind: Literal["sample"] = "sample"
    time: str  # UTC
    seconds: float
    paths: list[Rates]


def summarize_times(times: list[int]) -> Latency:
    """Return the summary of times in ns."""
    ordered = sorted(times)
    n = len(ordered)
    return Latency(
        n, ordered[(n - 1) // 2], ordered[-(-99 * n // 100) - 1], ordered[-1]
    )


def times_by_path(lines: str) -> dict[str, list[int]]:
    """Return the times in lines of a trace, by path; paths name the events."""
    paths: dict[str, list[int]] = {}
    for line in lines.splitlines():
        if event := EVENT.search(line):
            paths.setdefault(event[1], []).append(int(event[2]))
    return paths


@dataclass
class Trace:
    """The pipe of a trace instance."""

    pipe: FileIO
    rest: bytes = b""

    def read(self) -> dict[str, Latency]:
        """Return the latencies since the last read, by path."""
        read = self.pipe.readall() or b""  # None: nothing to read now
        whole, _, self.rest = (self.rest + read).rpartition(b"\n")
        paths = times_by_path(whole.decode(errors="replace"))
        return {name: summarize_times(times) for name, times in paths.items()}


@contextmanager
def trace_requests(root: SystemFiles) -> Iterator[Trace]:
    """Have a trace instance with the module's tracepoints enabled."""
    place = tracefs.find_tracefs(root)
    if place is None:
        raise BulkmmError(f"--trace needs tracefs, as root: {tracefs.MOUNT}")
    home = SystemFiles(root.at(place))
    with ExitStack() as stack:
        try:
            name, interruptible = stack.enter_context(
                tracefs.own_instance(home, "watch")
            )
            instance = SystemFiles(home.at(f"instances/{name}"))
            instance.write("buffer_size_kb", BUFFER_KIB)
            instance.write("events/bulkmm/enable", "1")
            pipe = os.open(instance.at("trace_pipe"), os.O_RDONLY | os.O_NONBLOCK)
            # closed before the instance is removed, which could not be otherwise
            reader = stack.enter_context(FileIO(pipe))
        except OSError as error:
            message = f"--trace: {error.filename}: {error.strerror}"
            raise BulkmmError(message) from error
        with interruptible():
            yield Trace(reader)


def compute_rates(
    before: KernelPath, now: KernelPath, seconds: float, latency: Latency | None
) -> Rates:
    """Return what a path did between two reads, or since a reload between them."""
    if _was_reloaded(before, now):
        before = replace(before, counters={}, fallbacks={})
    hits = _count_between(before.counters, now.counters, "hits")
    ns = _count_between(before.counters, now.counters, "ns")
    return Rates(
        name=now.name,
        mode=now.mode,
        requests_per_s=hits / seconds,
        bytes_per_s=_count_between(before.counters, now.counters, "bytes") / seconds,
        mean_ns=ns / hits if hits and "ns" in now.counters else None,
        inflight=now.counters.get(INFLIGHT, 0),
        fallbacks_per_s={
            reason: _count_between(before.fallbacks, now.fallbacks, reason) / seconds
            for reason in now.fallbacks
        },
        latency=latency,
    )


def _was_reloaded(before: KernelPath, now: KernelPath) -> bool:
    """Return whether the counters began at 0 in between: one that only grows fell."""
    old, new = ({**one.fallbacks, **one.counters} for one in (before, now))
    return any(new.get(k, 0) < n for k, n in old.items() if k != INFLIGHT)


def _count_between(before: dict[str, int], now: dict[str, int], name: str) -> int:
    return now.get(name, 0) - before.get(name, 0)


def take_samples(
    root: SystemFiles, args: argparse.Namespace, trace: Trace | None
) -> Iterator[Sample]:
    """Yield a sample after each interval."""
    before, then = _read_paths(root, args.path), time.monotonic()
    count = 0
    while args.count is None or count < args.count:
        count += 1
        time.sleep(max(0.0, then + args.interval - time.monotonic()))
        now, at = _read_paths(root, args.path), time.monotonic()
        times = trace.read() if trace else {}
        paths = [
            compute_rates(before.get(name, path), path, at - then, times.get(name))
            for name, path in now.items()
        ]
        clock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        yield Sample(time=clock, seconds=round(at - then, 6), paths=paths)
        before, then = now, at


def _read_paths(root: SystemFiles, wanted: list[str]) -> dict[str, KernelPath]:
    module = modules.read_module(root)
    if module is None:
        raise BulkmmError("the module was unloaded")
    return {path.name: path for path in select_paths(root, module, wanted)}


def watch_paths(args: argparse.Namespace) -> int:
    """Show samples until there are enough or the user stops it."""
    root = SystemFiles.from_argument(args.root)
    module = modules.read_module(root)
    select_paths(root, module, args.path)
    modules.need_module(root, module)
    with trace_requests(root) if args.trace else nullcontext() as trace:
        try:
            for sample in take_samples(root, args, trace):
                print(render_sample(sample, args), flush=True)
                if streams.is_unread():
                    break
        except KeyboardInterrupt:
            if args.count is not None:  # fewer samples than requested
                raise
    return Exit.OK


def render_sample(sample: Sample, args: argparse.Namespace) -> str:
    """Return a sample: JSON, a table that fills a terminal, or lines elsewhere."""
    if args.json:
        return sample.to_json(None)
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return "\n".join(format_lines(sample))
    return CLEAR + "\n".join(format_table(sample, traced=args.trace))


def format_cells(path: Rates) -> dict[str, str]:
    """Return the cells of a path's row by heading; empty: nothing to show."""
    summary = path.latency
    times = (
        path.mean_ns,
        *((summary.median_ns, summary.p99_ns, summary.max_ns) if summary else ()),
    )
    return {
        "mode": path.mode,
        "requests/s": format_number(path.requests_per_s),
        "GB/s": format_number(path.bytes_per_s / 1e9),
        **{
            name: "" if ns is None else format_duration(ns)
            for name, ns in zip_longest(TIMES, times)
        },
        "fallbacks/s": " ".join(
            f"{reason} {format_number(rate)}"
            for reason, rate in path.fallbacks_per_s.items()
            if rate
        ),
    }


def format_lines(sample: Sample) -> list[str]:
    """Return a line for each path."""
    clock = time.strftime("%H:%M:%S")
    output = []
    for path in sample.paths:
        fields = (f"{name} {cell}" for name, cell in format_cells(path).items() if cell)
        output.append(f"{clock} {path.name} {', '.join(fields)}")
    return output


def format_table(sample: Sample, *, traced: bool) -> list[str]:
    """Return a table for the terminal."""
    hidden = () if traced else TIMES[1:]
    rows = [
        {"path": path.name}
        | {
            name: cell
            for name, cell in format_cells(path).items()
            if name not in hidden
        }
        for path in sample.paths
    ]
    return align_columns([[*row] for row in rows[:1]] + [[*r.values()] for r in rows])
