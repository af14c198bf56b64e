# SPDX-License-Identifier: GPL-2.0-only
"""What a family of scenarios implements; bulkmm.lab.run does the rest."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bulkmm.errors import unknown
from bulkmm.lab import state
from bulkmm.lab.choices import Options
from bulkmm.lab.machine import suites
from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.machine.vm import Hot, Outcome
from bulkmm.lab.progress import Progress
from bulkmm.lab.scenario import Scenario
from bulkmm.results import Check, Measured


@dataclass(frozen=True)
class Work(ABC):
    """A scenario with its options."""

    scenario: Scenario
    options: Options

    kept: ClassVar[tuple[tuple[str, str], ...]] = ()  # facts() from events: name, event
    visited: ClassVar[str] = ""  # event that ends a visit, for facts()

    @property
    def known(self) -> Mapping[str, tuple[object, ...]]:
        """Return the choices of this scenario for options that have several."""
        return {}

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

    def over(self, kernel: Kernel, progress: Progress) -> list[Path]:
        """Return trees to lay over the guest's own."""
        suite = self.scenario.suite
        return [suites.tree(kernel, suite, progress)] if suite else []

    def check_options(self, _arch: Arch = X86_64) -> None:
        """Reject values that do not fit together, or not this scenario."""
        for name, known in self.known.items():
            for one in getattr(self.options, name):
                if one not in known:
                    raise unknown(name.removesuffix("s"), str(one), map(str, known))

    def job(self, modules: list[str]) -> str:
        """Return the guest's job, in which the kernel's modules are loaded first."""
        first = [f"mark {self.scenario.name} begins", f"modules {' '.join(modules)}"]
        return "\n".join([*first, *self.lines()]) + "\n"

    def lines(self) -> list[str]:
        """Return the lines of the job: words of lab/guest/*.sh."""
        return []

    @property
    def quiet(self) -> float:
        """Return for how many seconds the job by itself reports nothing."""
        return 0

    def results(self, _outcome: Outcome) -> Measured:
        """Return the measurements; by default none."""
        return [], []

    @abstractmethod
    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict of the run."""

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the options and what else the run observed."""
        taken = {name: getattr(self.options, name) for name in self.scenario.takes}
        taken |= {name: outcome.of(event) for name, event in self.kept}
        if self.visited:
            taken["visits"] = [
                visit.facts(self.scenario.path)
                for visit in state.visits(outcome, self.visited)
            ]
        return taken


def told(outcome: Outcome) -> list[Check]:
    """Return the checks that the guest made itself."""
    return [
        Check(event["name"], event["ok"] == "yes", event["detail"])
        for event in outcome.of("check")
    ]


def provoked(outcome: Outcome) -> list[Check]:
    """Return the guest's checks of the faults that it injected; there must be some."""
    return told(outcome) or [Check("faults", ok=False, detail="none was provoked")]
