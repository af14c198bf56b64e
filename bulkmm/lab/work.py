# SPDX-License-Identifier: GPL-2.0-only
"""What a family of scenarios brings: bulkmm.lab.run does the rest."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from bulkmm.lab.machine.vm import Outcome
    from bulkmm.lab.scenario import Scenario
    from bulkmm.results import Check, Ratio, Result


@dataclass(frozen=True)
class Common:
    """What the user may choose of any scenario that has rounds."""

    break_one_word: bool = False
    seed: int = field(default_factory=lambda: random.SystemRandom().getrandbits(32))


class Work(Protocol):
    """A scenario with its options."""

    @property
    def scenario(self) -> Scenario:
        """Return what is run."""

    @property
    def pmem(self) -> int:
        """Return the bytes of persistent memory that the guest has."""

    @property
    def cmdline(self) -> str:
        """Return what the guest's kernel is told besides vm.CMDLINE."""

    @property
    def defines(self) -> list[str]:
        """Return the make variables of the module's build."""

    @property
    def steps(self) -> int:
        """Return how many events of a run are steps."""

    def check_options(self) -> None:
        """Refuse options that do not fit together."""

    def job(self, modules: list[str]) -> str:
        """Return the guest's job: words of lab/guest/*.sh, one a line."""

    def limit(self) -> float:
        """Return the seconds after which a guest counts as hung."""

    def is_step(self, event: dict[str, Any]) -> bool:
        """Tell if an event is progress; raise if the run cannot go on."""

    def results(self, outcome: Outcome) -> tuple[list[Result], list[Ratio]]:
        """Return what was timed."""

    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict of the run."""

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return what was asked for and what else the run saw."""
