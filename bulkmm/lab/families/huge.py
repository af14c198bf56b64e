# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the huge-page scenarios: sizes, states, and what the allocator clears."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bulkmm import stats
from bulkmm.control.kernel import ALLOCATOR_SERVES
from bulkmm.control.needs import at_least
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.work import Work
from bulkmm.results import Measured


@dataclass(frozen=True)
class SizedWork(Work, ABC):
    """A scenario that times folios of one or several sizes."""

    pairs: ClassVar[tuple[tuple[str, str], ...]]
    kinds: ClassVar[tuple[str, ...]]  # of a visit: results are named after them

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes that exist, in KiB."""

    @property
    def kib(self) -> tuple[int, ...]:
        """Return the sizes of this run."""
        return self.options.kib or self.sizes

    @property
    def known(self) -> Mapping[str, tuple[object, ...]]:
        return {"kib": self.sizes}

    @abstractmethod
    def taken(self, outcome: Outcome, kib: int, what: str) -> dict[str, list[float]]:
        """Return the times of each arm, in ns."""

    def results(self, outcome: Outcome) -> Measured:
        return stats.joined(
            stats.rated(
                f"{self._named(kib)}-{what}",
                "ns",
                kib << 10,
                self.taken(outcome, kib, what),
                self.pairs,
            )
            for kib in self.kib
            for what in self.kinds
        )

    def _named(self, kib: int) -> str:
        name = self.scenario.name
        return name if len(self.sizes) == 1 else f"{name}-{size(kib)}"


def arm(name: str) -> str:
    """Return the job's line that brings path clear into a state."""
    return f"state {name}" if name == "absent" else f"clear_state {name}"


def allocator_clears(outcome: Outcome) -> bool:
    """Return whether the kernel's allocator clears every page it returns."""
    return bool(outcome.of("zeroing")[0]["allocator"] == "on")


def taken_away(outcome: Outcome) -> bool:
    """Return whether only the allocator clears transparent huge pages."""
    release = outcome.of("start")[0]["release"]
    return allocator_clears(outcome) and at_least(release, ALLOCATOR_SERVES)


def size(kib: int) -> str:
    """Return a size as in scenario names: 64k, 2m, 1g."""
    for unit, many in (("g", 1 << 20), ("m", 1 << 10)):
        if kib >= many:
            return f"{kib // many}{unit}"
    return f"{kib}k"
