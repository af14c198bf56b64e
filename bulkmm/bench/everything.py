# SPDX-License-Identifier: GPL-2.0-only
"""All subjects in one run and one document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bulkmm.bench import clear, copy, memmap, sweep, take
from bulkmm.results import Document

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bulkmm.bench.take import Seen

MEMMAP_SIZE, QUICK_MEMMAP_SIZE = 64 << 30, 16 << 30


@dataclass(frozen=True)
class Request:
    """What to measure: the same number of samples everywhere."""

    rounds: int = 21
    quick: bool = False

    def memmap(self) -> memmap.Request:
        """Return what is measured of struct pages."""
        size = QUICK_MEMMAP_SIZE if self.quick else MEMMAP_SIZE
        return memmap.Request(size=size, rounds=self.rounds)

    def clear(self) -> sweep.Request:
        """Return what is measured of clearing; 1 GiB is not used after it."""
        used_max = clear.SUBJECT.full.extents[-2]
        return sweep.plan(
            clear.SUBJECT, quick=self.quick, rounds=self.rounds, used_max=used_max
        )

    def copy(self) -> sweep.Request:
        """Return what is measured of copying."""
        return sweep.plan(copy.SUBJECT, quick=self.quick, rounds=self.rounds)


def run_bench(request: Request | None = None, seen: Seen | None = None) -> Document:
    """Measure one after the other; ``seen`` is told each event of the program."""
    request = request or Request()
    take.check_rounds(request.rounds)
    take.check_memory(max(request.clear().memory, request.copy().memory))
    return join(
        [
            memmap.run_bench(request.memmap(), seen),
            sweep.run_bench(request.clear(), seen),
            sweep.run_bench(request.copy(), seen),
        ]
    )


def join(documents: Iterable[Document]) -> Document:
    """Return one document of those of one machine."""
    held = list(documents)
    return Document(
        machine=held[0].machine,
        results=[result for one in held for result in one.results],
        ratios=[ratio for one in held for ratio in one.ratios],
        checks=[check for one in held for check in one.checks],
        run={"scenario": "all", **_sums(held), **_named(held)},
    )


def _sums(held: list[Document]) -> dict[str, int]:
    return {
        name: sum(one.run[name] for one in held) for name in ("bytes", "huge_bytes")
    }


def _named(held: list[Document]) -> dict[str, Any]:
    """Return what each run said, as in "clear.rounds"."""
    return {
        f"{one.run['scenario'].partition('-')[0]}.{name}": value
        for one in held
        for name, value in one.run.items()
        if name != "scenario"
    }
