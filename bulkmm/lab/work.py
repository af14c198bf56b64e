# SPDX-License-Identifier: GPL-2.0-only
"""What a family of scenarios implements; bulkmm.lab.run does the rest."""

import random
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from bulkmm.errors import UsageError
from bulkmm.lab.machine.vm import Hot, Outcome
from bulkmm.lab.scenario import Scenario
from bulkmm.results import Check, Measured

# options with a count, in all families
COUNTS = ("rounds", "folios", "arrays", "loops")
TIMES = ("seconds", "soak_seconds")
SECONDS, LONGEST = 60, 3600  # by default, at most


@dataclass(frozen=True)
class Common:
    """The user's options for any scenario that has rounds."""

    break_one_word: bool = False
    seed: int = field(default_factory=lambda: random.SystemRandom().getrandbits(32))

    @property
    def chance(self) -> random.Random:
        """Return a random generator in its initial state."""
        return random.Random(self.seed)  # noqa: S311 - to vary, not to hide


@dataclass(frozen=True)
class Work(ABC):
    """A scenario with its options."""

    scenario: Scenario
    options: Common = field(default_factory=Common)

    step: ClassVar[tuple[str, ...]] = ()  # events that mark a step
    label: ClassVar[str] = ""  # label that these events must have
    kept: ClassVar[tuple[tuple[str, str], ...]] = ()  # facts() from events: name, event

    @property
    def takes(self) -> frozenset[str]:
        """Return the options that apply, besides the seed."""
        return frozenset()

    @property
    def pmem(self) -> int:
        """Return the bytes of the guest's persistent memory."""
        return 0

    @property
    def becomes_ram(self) -> int:
        """Return the bytes of devices that become ordinary memory."""
        return 0

    @property
    def hot(self) -> Hot:
        """Return the guest's hotpluggable memory and its nodes."""
        return Hot()

    @property
    def cmdline(self) -> str:
        """Return kernel parameters besides vm.CMDLINE."""
        return ""

    @property
    def defines(self) -> list[str]:
        """Return make variables: fault injection needs a test build."""
        test = self.scenario.faults and not self.scenario.production
        return ["BMM_FAULTS=1"] if test else []

    @property
    def steps(self) -> int:
        """Return the number of steps of a run."""
        return 0

    def check_options(self) -> None:
        """Reject values that make no sense or do not fit together."""
        for one in fields(self.options):
            value = getattr(self.options, one.name)
            if one.name in COUNTS and value is not None and value < 1:
                raise UsageError(f"--{one.name} {value}: give 1 or more")
            if one.name in TIMES and not 1 <= value <= LONGEST:
                raise UsageError(f"--seconds {value}: give 1 to {LONGEST}")

    @abstractmethod
    def job(self, modules: list[str]) -> str:
        """Return the guest's job: words of lab/guest/*.sh, one per line."""

    @property
    def quiet(self) -> float:
        """Return for how many seconds the job by itself reports nothing."""
        return 0

    def is_step(self, event: dict[str, Any]) -> bool:
        """Return whether an event is progress; raise if the run cannot go on."""
        labelled = self.label in ("", event.get("label"))
        return event["event"] in self.step and labelled

    def results(self, _outcome: Outcome) -> Measured:
        """Return the measurements; by default none."""
        return [], []

    @abstractmethod
    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict of the run."""

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the options and what else the run observed."""
        seen = {name: outcome.of(event) for name, event in self.kept}
        return {**asdict(self.options), **seen}


def told(outcome: Outcome) -> list[Check]:
    """Return the checks that the guest made itself."""
    return [
        Check(event["name"], event["ok"] == "yes", event["detail"])
        for event in outcome.of("check")
    ]


def provoked(outcome: Outcome) -> list[Check]:
    """Return the guest's checks of the faults that it injected; there must be some."""
    return told(outcome) or [Check("faults", ok=False, detail="none was provoked")]
