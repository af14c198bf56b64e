# SPDX-License-Identifier: GPL-2.0-only
"""Clearing memory by extent, and what it costs the next user, natively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bulkmm import machine, stats
from bulkmm.bench import take
from bulkmm.results import Document, Ratio, Result

if TYPE_CHECKING:
    from bulkmm.bench.take import Seen

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
EXTENTS = (4 * KIB, 64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB, GIB)
QUICK_EXTENTS = (4 * KIB, 2 * MIB, 32 * MIB)
SIZE, QUICK_SIZE = GIB, 128 * MIB
USES = ("", "read", "write", "random")
VARIANTS = ("rep-stosb", "rep-stosb-4k", "glibc", "bulkmm-cached", "bulkmm-streaming")
BASES = ("rep-stosb", "glibc")  # the first leads the table


@dataclass(frozen=True)
class Request:
    """What to measure."""

    size: int = SIZE  # of the buffer, a multiple of each extent
    extents: tuple[int, ...] = EXTENTS  # powers of two
    rounds: int = 11
    seed: int = 1  # of the order of the variants, and of the intervals


def run_bench(request: Request | None = None, seen: Seen | None = None) -> Document:
    """Measure and verify; ``seen`` is told each event of the program."""
    request = request or Request()
    take.check_rounds(request.rounds)
    take.check_memory(request.size)
    arguments = ["clear", f"--size={request.size}", f"--rounds={request.rounds}"]
    arguments.append(f"--seed={request.seed}")
    arguments += [f"--extent={extent}" for extent in request.extents]
    taken = take.events(arguments, seen)
    arms = take.arms(taken)
    ordered = {key: arms[key] for key in sorted(arms, key=_rank)}
    return Document(
        machine={**machine.describe(), "accelerator": "native"},
        results=list(ordered.values()),
        ratios=_ratios(ordered, request.seed),
        checks=take.checks(taken, "every byte is zero", "leaves bytes not zero"),
        run={"scenario": "clear", **take.start(taken)},
    )


def _rank(key: tuple[str, str]) -> tuple[int, int, int]:
    """Order by size, then use, then as a reader compares: peers, ours."""
    scenario, variant = key
    size, _, use = scenario.removeprefix("clear-").partition("-then-")
    nbytes = int(size[:-1]) << 10 * "bkmgt".index(size[-1])
    return nbytes, USES.index(use), VARIANTS.index(variant)


def _ratios(arms: dict[tuple[str, str], Result], seed: int) -> list[Ratio]:
    """Return what each variant is worth against the first base, ours against all."""
    found = []
    present = [base for base in BASES if any(base == name for _, name in arms)]
    for (scenario, name), arm in arms.items():
        ours = name.startswith("bulkmm")
        bases = present if ours else present[:1]
        found += [
            stats.ratio(arms[scenario, base], arm, seed)
            for base in bases
            if base != name
        ]
    return found
