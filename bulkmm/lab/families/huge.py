# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the huge-page scenarios: options, command line, time limit."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bulkmm import stats
from bulkmm.control.kernel import ALLOCATOR_SERVES
from bulkmm.control.needs import at_least
from bulkmm.errors import UsageError
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.work import SECONDS, Common, Work
from bulkmm.results import Measured


@dataclass(frozen=True)
class Options(Common):
    """The user's options for a huge-page scenario."""

    rounds: int | None = None  # None: the scenario's default
    folios: int | None = None  # likewise
    ways: tuple[str, ...] = ()  # none: all
    kib: tuple[int, ...] = ()  # sizes of folios; none: all
    init_on_alloc: str = ""  # "0" or "1"; "": the kernel's default
    init_on_free: str = ""  # likewise
    preempt: str = ""  # one of PREEMPT; "": likewise
    soak_seconds: int = SECONDS  # of clear-faults


ZEROING = frozenset({"init_on_alloc", "init_on_free"})  # by the allocator
EVERYWHERE = ZEROING | {"rounds", "preempt", "break_one_word"}


@dataclass(frozen=True)
class HugeWork(Work):
    """A huge-page scenario with its options (see bulkmm.lab.work)."""

    options: Options = field(default_factory=Options)

    takes = EVERYWHERE

    @property
    def pages(self) -> str:
        """Return the kernel's parameters for huge pages."""
        return ""

    @property
    def usual(self) -> int:
        """Return the default number of rounds; 0: the scenario has none."""
        return 0

    @property
    def rounds(self) -> int:
        """Return the number of visits per arm."""
        return self.options.rounds or self.usual

    @property
    def cmdline(self) -> str:
        names = (*sorted(ZEROING), "preempt")
        said = {name: getattr(self.options, name) for name in names}
        words = [
            self.pages,
            *(f"{name}={value}" for name, value in said.items() if value),
        ]
        return " ".join(words).strip()

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        rounds = {"rounds": self.rounds} if self.usual else {}
        return {**super().facts(outcome), **rounds}

    def refuse(
        self, what: str, asked: tuple[object, ...], known: tuple[object, ...]
    ) -> None:
        """Reject unknown choices."""
        for one in asked:
            if one not in known:
                listed = ", ".join(map(str, known)) or "none"
                raise UsageError(
                    f"unknown {what} {one}: {self.scenario.name} has {listed}"
                )

    def begin(self, modules: list[str]) -> list[str]:
        """Return the first lines of a job."""
        lines = [f"mark {self.scenario.name} begins", "zeroing"]
        return lines + [f"must insmod /lib/modules/{one}.ko" for one in modules]


@dataclass(frozen=True)
class SizedWork(HugeWork):
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

    def check_options(self) -> None:
        super().check_options()
        self.refuse("folio size", self.options.kib, self.sizes)

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
