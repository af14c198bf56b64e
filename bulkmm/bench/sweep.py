# SPDX-License-Identifier: GPL-2.0-only
"""What the subjects share that work extent by extent: clear and copy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bulkmm import machine, stats
from bulkmm.bench import take
from bulkmm.results import Document, Ratio, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bulkmm.bench.take import Seen

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Amount:
    """How much a run writes, and in which extents."""

    size: int  # of what is written, a multiple of each extent
    extents: tuple[int, ...]  # powers of two


@dataclass(frozen=True)
class Subject:
    """What one of them measures, and how it is read."""

    name: str
    full: Amount  # its extents rise
    quick: Amount  # with --quick
    buffers: int  # of the size of the request, that it keeps in memory
    suffixes: tuple[str, ...]  # of the scenarios of one extent, in order
    variants: tuple[str, ...]  # in the order in which a reader compares
    bases: tuple[str, ...]  # the first leads the table, ours have a ratio to all
    peers: Mapping[str, tuple[str, ...]]  # of each of ours, what does the same job
    right: str  # what a check says of the output
    wrong: str


@dataclass(frozen=True)
class Request:
    """What to measure."""

    subject: Subject
    amount: Amount
    rounds: int = 21
    seed: int = 1  # of the order of the variants, and of the intervals
    backend: str | None = None  # what bulkmm uses; None: the core decides
    used_max: int | None = None  # extents above are not used after clearing

    @property
    def memory(self) -> int:
        """The bytes of all buffers."""
        return self.amount.size * self.subject.buffers


def plan(
    subject: Subject,
    *,
    quick: bool,
    rounds: int,
    backend: str | None = None,
    used_max: int | None = None,
) -> Request:
    """Return what is measured of a subject, in full or quickly."""
    amount = subject.quick if quick else subject.full
    return Request(subject, amount, rounds, backend=backend, used_max=used_max)


def run_bench(request: Request, seen: Seen | None = None) -> Document:
    """Measure and verify; ``seen`` is told each event of the program."""
    subject = request.subject
    take.check_rounds(request.rounds)
    take.check_backend(subject.name, request.backend)
    take.check_memory(request.memory)
    taken = take.events(_arguments(request), seen)
    arms = take.arms(taken)
    ordered = {key: arms[key] for key in sorted(arms, key=lambda k: rank(subject, k))}
    return Document(
        machine={**machine.describe(), "accelerator": "native"},
        results=list(ordered.values()),
        ratios=_ratios(subject, ordered, request.seed),
        checks=take.checks(taken, subject.right, subject.wrong),
        run={"scenario": subject.name, **take.start(taken)},
    )


def _arguments(request: Request) -> list[str]:
    arguments = [request.subject.name, f"--size={request.amount.size}"]
    arguments += [f"--rounds={request.rounds}", f"--seed={request.seed}"]
    arguments += [f"--extent={extent}" for extent in request.amount.extents]
    if request.backend:
        arguments.append(f"--backend={request.backend}")
    if request.used_max is not None:
        arguments.append(f"--used-max={request.used_max}")
    return arguments


def rank(subject: Subject, key: tuple[str, str]) -> tuple[int, int, int]:
    """Order by size, then cache or use, then as a reader compares: peers, ours."""
    scenario, variant = key
    found = re.fullmatch(rf"{subject.name}-(\d+)([bkmgt])(.*)", scenario)
    if not found:
        raise ValueError(f"{scenario} is no scenario of {subject.name}")
    nbytes = int(found[1]) << 10 * "bkmgt".index(found[2])
    suffix = subject.suffixes.index(found[3])
    return nbytes, suffix, subject.variants.index(variant)


def _ratios(
    subject: Subject, arms: dict[tuple[str, str], Result], seed: int
) -> list[Ratio]:
    found = []
    for scenario in dict.fromkeys(scenario for scenario, _ in arms):
        here = {name: arm for (where, name), arm in arms.items() if where == scenario}
        found += [stats.ratio(here[a], here[b], seed) for a, b in _pairs(subject, here)]
    return found


def _pairs(subject: Subject, here: dict[str, Result]) -> list[tuple[str, str]]:
    """Return base and variant of each ratio: the first base against all of them.

    Ours stand against every base and against the fastest of their peers as well.
    """
    bases = [base for base in subject.bases if base in here]
    pairs = [(bases[0], name) for name in here if name != bases[0]]
    for name in (name for name in here if name in subject.peers):
        peers = [peer for peer in subject.peers[name] if peer in here]
        best = min(peers, key=lambda peer: here[peer].median)
        pairs += [(base, name) for base in (*bases[1:], best)]
    return list(dict.fromkeys(pairs))
