# SPDX-License-Identifier: GPL-2.0-only
"""Initialising the struct pages of a device, natively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bulkmm import machine, size, stats
from bulkmm.bench import take
from bulkmm.results import Document, Ratio, Result

if TYPE_CHECKING:
    from bulkmm.bench.take import Event, Seen

SCENARIO = "memmap-stamp"
LARGEST = "64T"
PAGE, STRUCT_PAGE = 4096, 64


@dataclass(frozen=True)
class Request:
    """What to measure."""

    size: int = 100 << 30  # of the device
    rounds: int = 15
    backend: str | None = None  # what "bulkmm" uses; None: the core decides
    seed: int = 1  # of the order of the variants, and of the intervals


def parse_size(text: str) -> int:
    """Return the bytes of a device size such as 100G."""
    return size.parse(text, LARGEST)


def check_request(request: Request) -> None:
    """Refuse what cannot be measured, before anything is started."""
    take.check_rounds(request.rounds)
    take.check_backend("memmap", request.backend)
    take.check_memory(request.size // PAGE * STRUCT_PAGE)


def run_bench(request: Request | None = None, seen: Seen | None = None) -> Document:
    """Measure and verify; ``seen`` is told each event of the program."""
    request = request or Request()
    check_request(request)
    arguments = ["memmap", f"--size={request.size}", f"--rounds={request.rounds}"]
    arguments.append(f"--seed={request.seed}")
    if request.backend:
        arguments.append(f"--backend={request.backend}")
    return _document(take.events(arguments, seen), request)


def _document(taken: list[Event], request: Request) -> Document:
    start = take.start(taken)
    found = {variant: arm for (_, variant), arm in take.arms(taken).items()}
    arms = {variant: found[variant] for variant in sorted(found, key=_rank)}
    return Document(
        machine={**machine.describe(), "accelerator": "native"},
        results=list(arms.values()),
        ratios=_ratios(arms, request.seed),
        checks=take.checks(
            taken,
            "every byte as the generic reference has it, none beside it was touched",
            "differs from the generic reference, or touches other bytes",
        ),
        run={"scenario": SCENARIO, **start},
    )


def _rank(variant: str) -> tuple[int, str]:
    """Order variants as a reader compares them: peers, ours, the limit."""
    kinds = ("rebuild", "template", "bulkmm", "limit")
    return next(i for i, k in enumerate(kinds) if variant.startswith(k)), variant


def _ratios(arms: dict[str, Result], seed: int) -> list[Ratio]:
    """Return what each variant is worth."""
    ours = [name for name in arms if name.startswith("bulkmm")]
    pairs = [("rebuild", name) for name in arms if name != "rebuild"]
    pairs += [("template-movnti", name) for name in ours]
    for base in ("rebuild-saferet", "template-norefresh", "limit"):
        pairs.append((base, "bulkmm"))
    return [stats.ratio(arms[a], arms[b], seed) for a, b in pairs if a in arms]
