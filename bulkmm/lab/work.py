# SPDX-License-Identifier: GPL-2.0-only
"""What a family of scenarios implements; bulkmm.lab.run does the rest."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from bulkmm import stats
from bulkmm.errors import UsageError, unknown
from bulkmm.lab import state
from bulkmm.lab.choices import Options
from bulkmm.lab.machine import counting, suites
from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.progress import Progress
from bulkmm.lab.scenario import Scenario
from bulkmm.results import Check, Measured

Seen = TypeVar("Seen")
ABSENT = "absent"  # the state in which the module is not loaded
# by name: a kind of event, or what is made of all
Kept = tuple[str, str | Callable[[Outcome], object]]
PARAMETERS = ("init_on_alloc", "init_on_free", "preempt")  # options of the kernel's


class Measure(NamedTuple):
    """What was measured of one thing, by arm."""

    name: str
    nbytes: int
    pairs: Iterable[tuple[str, str]] = ()  # of arms that are compared
    times: Mapping[str, Sequence[float]] = {}  # ns
    counted: Mapping[str, Sequence[counting.Work]] = {}


@dataclass(frozen=True)
class Work:
    """A scenario with its options: by default one whose guest does and checks all."""

    scenario: Scenario
    options: Options

    kept: ClassVar[tuple[Kept, ...]] = ()  # for facts()
    visited: ClassVar[str] = ""  # event that ends a visit, for facts()

    @property
    def known(self) -> Mapping[str, tuple[object, ...]]:
        """Return the choices of this scenario for options that have several."""
        return {}

    @property
    def cmdline(self) -> str:
        """Return kernel parameters besides vm.CMDLINE."""
        said = ((name, getattr(self.options, name)) for name in PARAMETERS)
        words = (f"{name}={value}" for name, value in said if value)
        return " ".join((self.scenario.cmdline, *words)).strip()

    @property
    def defines(self) -> list[str]:
        """Return make variables."""
        return ["BMM_FAULTS=1"] if self.scenario.faults else []

    def over(self, kernel: Kernel, progress: Progress) -> list[Path]:
        """Return trees to lay over the guest's own."""
        suite = self.scenario.suite
        return [suites.tree(kernel, suite, progress)] if suite else []

    def check_options(self, _arch: Arch = X86_64) -> None:
        """Reject values that do not fit together, or not this scenario."""
        for name, known in self.known.items():
            for one in getattr(self.options, name) or ():
                if one not in known:
                    raise unknown(name.removesuffix("s"), str(one), map(str, known))
        nbytes, (least, most, unit) = self.options.size, self.scenario.sizes
        if not least <= nbytes <= most or nbytes % unit:
            raise UsageError(
                f"size {nbytes >> 20}M does not fit: give {least >> 30}G to "
                f"{most >> 30}G, a multiple of {unit >> 20}M"
            )

    def job(self, modules: list[str]) -> str:
        """Return the guest's job, in which the kernel's modules are loaded first."""
        first = [f"mark {self.scenario.name} begins", f"modules {' '.join(modules)}"]
        return "\n".join([*first, *self.lines()]) + "\n"

    def lines(self) -> list[str]:
        """Return the lines of the job: words of lab/guest/*.sh."""
        return [line.format(**vars(self.options)) for line in self.scenario.job]

    def state(self, arm: str, *more: str) -> str:
        """Return the line that brings the scenario's path, and more, into a state."""
        set_to = () if arm == ABSENT else (f"{self.scenario.path}={arm}", *more)
        return " ".join(("state", arm, *set_to))

    def rounds(
        self, arms: Sequence[Seen], chance: random.Random | None = None
    ) -> Iterator[Seen]:
        """Yield the arms of every round, each round in random order."""
        chance = chance or self.options.chance
        for _ in range(self.options.rounds):
            yield from chance.sample(arms, len(arms))

    @property
    def quiet(self) -> float:
        """Return for how many seconds the job by itself may report nothing."""
        return float(self.options.seconds)

    def measured(self, _outcome: Outcome) -> Iterable[Measure]:
        """Return what was measured; by default nothing."""
        return ()

    def results(self, outcome: Outcome) -> Measured:
        """Return the arms of all that was measured, and their ratios."""
        return stats.joined(
            part
            for name, nbytes, pairs, times, counted in self.measured(outcome)
            for part in (
                stats.rated(name, "ns", nbytes, times, pairs),
                counting.rated(name, nbytes, counted, pairs),
            )
        )

    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict; by default those of the guest, of which there are."""
        made = told(outcome)
        return made or [Check("faults", ok=False, detail="none was provoked")]

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the options and what else the run observed."""
        taken = {name: getattr(self.options, name) for name in self.scenario.takes}
        for name, what in self.kept:
            taken[name] = outcome.of(what) if isinstance(what, str) else what(outcome)
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


def samples(
    outcome: Outcome, event: str, key: str, arms: Iterable[str], **wanted: object
) -> dict[str, list[float]]:
    """Return what events have under a key, in each arm."""
    return {arm: values(outcome.of(event, arm=arm, **wanted), key) for arm in arms}


def values(events: Iterable[dict[str, Any]], key: str) -> list[float]:
    """Return the numbers that events have under a key, one or several each."""
    return [float(text) for one in events for text in str(one[key]).split(",")]


def grouped(some: Iterable[Seen], key: Callable[[Seen], str]) -> dict[str, list[Seen]]:
    """Return what was seen in groups, in the order of their first members."""
    found: dict[str, list[Seen]] = {}
    for one in some:
        found.setdefault(key(one), []).append(one)
    return found


def alike(
    name: str,
    arms: Mapping[str, object],
    base: str = ABSENT,
    detail: str = "",
    *,
    ok: bool = True,
) -> Check:
    """Check that every state of the module ends as the base: without it."""
    same = base in arms and all(said == arms[base] for said in arms.values())
    listed = "; ".join(f"{arm}: {said}" for arm, said in arms.items())
    return Check(name, same and ok, detail or listed)
