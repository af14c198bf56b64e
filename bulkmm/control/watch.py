# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm watch``: activity between two reads of the counters."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bulkmm.control import module as modules
from bulkmm.control import text
from bulkmm.control.status import SCHEMA_VERSION, select
from bulkmm.errors import BulkmmError, Exit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from rich.table import Table

    from bulkmm.control.module import KernelPath
    from bulkmm.control.root import Root
    from bulkmm.control.trace import Latency, Trace

HEADINGS = ("path", "mode", "requests/s", "GB/s", "mean", "fallbacks/s")
TRACED = ("median", "p99", "worst")


@dataclass(frozen=True)
class Rates:
    """What a path did between two reads, per second."""

    name: str
    mode: str | None
    requests_per_s: float
    bytes_per_s: float
    mean_ns: float | None  # None: no request was served
    inflight: int
    fallbacks_per_s: dict[str, float]
    latency: Latency | None  # None: not traced, or no request was seen


@dataclass(frozen=True)
class Sample:
    """What all paths did between two reads."""

    when: float  # seconds since 1970
    seconds: float
    paths: list[Rates]

    def json(self) -> str:
        """Return the sample on one line, as in docs/control.schema.json."""
        held: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "kind": "sample",
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.when)),
            "seconds": round(self.seconds, 6),
            "paths": [asdict(path) for path in self.paths],
        }
        return json.dumps(held)


def rates(
    before: KernelPath, now: KernelPath, seconds: float, latency: Latency | None
) -> Rates:
    """Return what a path did between two reads."""
    hits = _moved(before.counters, now.counters, "hits")
    spent = _moved(before.counters, now.counters, "ns")
    return Rates(
        name=now.name,
        mode=now.mode.chosen,
        requests_per_s=hits / seconds,
        bytes_per_s=_moved(before.counters, now.counters, "bytes") / seconds,
        mean_ns=spent / hits if hits and "ns" in now.counters else None,
        inflight=now.counters.get("inflight", 0),
        fallbacks_per_s={
            reason: _moved(before.fallbacks, now.fallbacks, reason) / seconds
            for reason in now.fallbacks
        },
        latency=latency,
    )


def _moved(before: dict[str, int], now: dict[str, int], name: str) -> int:
    """Return a counter's increase; one that fell was reset."""
    value, old = now.get(name, 0), before.get(name, 0)
    return value - old if value >= old else value


def samples(
    root: Root, args: argparse.Namespace, trace: Trace | None
) -> Iterator[Sample]:
    """Yield a sample after each interval."""
    before, then = _look(root, args.path), time.monotonic()
    seen = 0
    while args.count is None or seen < args.count:
        seen += 1
        time.sleep(max(0.0, then + args.interval - time.monotonic()))
        now, at = _look(root, args.path), time.monotonic()
        times = trace.read() if trace else {}
        paths = [
            rates(before.get(name, path), path, at - then, times.get(name))
            for name, path in now.items()
        ]
        yield Sample(time.time(), at - then, paths)
        before, then = now, at


def _look(root: Root, wanted: list[str]) -> dict[str, KernelPath]:
    module = modules.read(root)
    if module is None:
        raise BulkmmError("the module was unloaded")
    return {path.name: path for path in select(module, wanted)}


def run(root: Root, args: argparse.Namespace) -> int:
    """Show samples until there are enough or the user stops it."""
    with ExitStack() as held:
        trace = None
        if args.trace:
            from bulkmm.control.trace import Trace

            trace = held.enter_context(Trace(root))
        show = _shower(args, held)
        try:
            for sample in samples(root, args, trace):
                show(sample)
        except KeyboardInterrupt:
            if args.count is not None:  # fewer samples than requested
                raise
    return Exit.OK


def _shower(args: argparse.Namespace, held: ExitStack) -> Callable[[Sample], None]:
    """Return a function that shows a sample: JSON, a table on a terminal, or lines."""
    if args.json:
        return lambda sample: print(sample.json(), flush=True)
    if not sys.stdout.isatty():
        return lambda sample: print("\n".join(lines(sample)), flush=True)
    from rich.live import Live

    live = held.enter_context(Live(auto_refresh=False))
    return lambda sample: live.update(table(sample, traced=args.trace), refresh=True)


def lines(sample: Sample) -> list[str]:
    """Return a line for each path."""
    clock = time.strftime("%H:%M:%S", time.localtime(sample.when))
    return [f"{clock} {path.name} {_line(path)}" for path in sample.paths]


def _line(path: Rates) -> str:
    said = [
        f"mode {path.mode}",
        f"{text.number(path.requests_per_s)} requests/s",
        f"{text.number(path.bytes_per_s / 1e9)} GB/s",
    ]
    if path.mean_ns is not None:
        said.append(f"mean {text.duration(path.mean_ns)}")
    if path.latency:
        words = zip(TRACED, _latency(path), strict=True)
        said += [f"{name} {value}" for name, value in words]
    if left := _left(path):
        said.append(f"fallbacks {left}")
    return ", ".join(said)


def _latency(path: Rates) -> tuple[str, ...]:
    if not path.latency:
        return ("",) * len(TRACED)
    held = path.latency
    return tuple(map(text.duration, (held.median_ns, held.p99_ns, held.max_ns)))


def _left(path: Rates) -> str:
    return " ".join(
        f"{reason} {text.number(rate)}/s"
        for reason, rate in path.fallbacks_per_s.items()
        if rate
    )


def table(sample: Sample, *, traced: bool) -> Table:
    """Return a table for the terminal."""
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, show_edge=False)
    shown.caption = time.strftime("%H:%M:%S", time.localtime(sample.when))
    for heading in (*HEADINGS, *(TRACED if traced else ())):
        shown.add_column(
            heading, justify="left" if heading in HEADINGS[:2] else "right"
        )
    for path in sample.paths:
        row = (
            path.name,
            path.mode or "?",
            text.number(path.requests_per_s),
            text.number(path.bytes_per_s / 1e9),
            "" if path.mean_ns is None else text.duration(path.mean_ns),
            _left(path),
        )
        shown.add_row(*row, *(_latency(path) if traced else ()))
    return shown
