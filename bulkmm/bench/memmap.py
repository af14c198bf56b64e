# SPDX-License-Identifier: GPL-2.0-only
"""Initialising the struct pages of a device, natively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bulkmm import machine, size, stats
from bulkmm.bench import program
from bulkmm.errors import BulkmmError, UsageError
from bulkmm.results import Check, Document, Ratio, Result

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIO = "memmap-stamp"
LARGEST = "64T"
PAGE, STRUCT_PAGE = 4096, 64
SPARE_KIB = 64 << 10  # what the program and the rest of the system keep


@dataclass(frozen=True)
class Request:
    """What to measure."""

    size: int = 100 << 30  # of the device
    rounds: int = 15
    backend: str | None = None  # what "bulkmm" uses; None for its default
    seed: int = 1  # of the order of the variants, and of the intervals


def parse_size(text: str) -> int:
    """Return the bytes of a device size such as 100G."""
    return size.parse(text, LARGEST)


def check_request(request: Request) -> None:
    """Refuse what cannot be measured, before anything is started."""
    if not 1 <= request.rounds <= 10000:  # noqa: PLR2004 - the program's range
        raise UsageError(f"{request.rounds} rounds: give 1 to 10000")
    names = program.backends()
    if request.backend is not None and request.backend not in names:
        listed = ", ".join(names)
        raise UsageError(f"no backend {request.backend!r} here: there are {listed}")
    need = request.size // PAGE * STRUCT_PAGE // 1024 + SPARE_KIB
    have = machine.memory_kib("MemAvailable")
    if have is not None and have < need:
        raise BulkmmError(
            f"not enough memory: {need >> 10} MiB needed, {have >> 10} MiB available"
        )


def run_bench(
    request: Request | None = None,
    seen: Callable[[dict[str, Any]], None] | None = None,
) -> Document:
    """Measure and verify; ``seen`` is told each event of the program."""
    request = request or Request()
    check_request(request)
    arguments = [f"--size={request.size}", f"--rounds={request.rounds}"]
    arguments.append(f"--seed={request.seed}")
    if request.backend:
        arguments.append(f"--backend={request.backend}")
    taken = []
    for event in program.events(arguments):
        taken.append(event)
        if seen:
            seen(event)
    return _document(taken, request)


def _document(events: list[dict[str, Any]], request: Request) -> Document:
    start = next(e for e in events if e["event"] == "start")
    samples: dict[str, list[float]] = {}
    for event in events:
        if event["event"] == "sample":
            samples.setdefault(event["variant"], []).append(event["ns"])
    nbytes = start["bytes"]
    arms = {
        variant: stats.summarise(SCENARIO, variant, "ns", nbytes, samples[variant])
        for variant in sorted(samples, key=_rank)
    }
    return Document(
        machine={**machine.describe(), "accelerator": "native"},
        results=list(arms.values()),
        ratios=_ratios(arms, start["backend"], request.seed),
        checks=[_check(e) for e in events if e["event"] == "verified"],
        run={"scenario": SCENARIO, **{k: v for k, v in start.items() if k != "event"}},
    )


def _rank(variant: str) -> tuple[int, str]:
    """Order variants as a reader compares them: peers, ours, the limit."""
    kinds = ("rebuild", "template", "bulkmm", "limit")
    return next(i for i, k in enumerate(kinds) if variant.startswith(k)), variant


def _ratios(arms: dict[str, Result], backend: str, seed: int) -> list[Ratio]:
    """Return what each variant is worth; bulkmm against itself is the control."""
    ours = [name for name in arms if name.startswith("bulkmm")]
    pairs = [("rebuild", name) for name in arms if name != "rebuild"]
    pairs += [("template-movnti", name) for name in ours]
    for base in ("rebuild-saferet", "template-norefresh", "limit", f"bulkmm:{backend}"):
        pairs.append((base, "bulkmm"))
    return [stats.ratio(arms[a], arms[b], seed) for a, b in pairs if a in arms]


def _check(event: dict[str, Any]) -> Check:
    detail = "every byte as the generic reference has it"
    if not event["ok"]:
        detail = "differs from the generic reference"
    return Check(f"output of {event['variant']}", event["ok"], detail)
