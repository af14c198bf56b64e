# SPDX-License-Identifier: GPL-2.0-only
"""What a scenario is: what it declares, what its guest does, what is expected of it.

The files beside this one have the families, whose classes say what their guests do,
and declare the scenarios of each. lab.run does the rest.
"""

import random
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from bulkmm.control.requirements import is_at_least
from bulkmm.results import stats
from bulkmm.results.model import INSTRUCTIONS, NS, Check, Measurement
from bulkmm.shell.errors import UsageError, unknown_word
from bulkmm.shell.progress import Progress
from bulkmm.shell.size import name_size
from lab import state
from lab.choices import FLAGS, USUAL
from lab.machine import suites
from lab.machine.arch import X86_64, Arch
from lab.machine.kernels import Choice, Kernel
from lab.machine.vm import INSTRUCTION_NS, Hot, Outcome

Item = TypeVar("Item")
Event = dict[str, Any]  # from a guest
# by name: a kind of event, or what is made of all
Observation = tuple[str, str | Callable[[Outcome], object]]
ABSENT = "absent"  # the state in which the module is not loaded
PARAMETERS = ("init_on_alloc", "init_on_free", "preempt")  # options of the kernel's
LIVE_PATCH = 1 << 15  # taint of a live patch
LACKING = "the kernel {kernel} lacks what Debian's own has"
# pages of this size are there if they are reserved at boot, where one is left whole
GIB_PAGE = "hugepagesz=1G hugepages=1"
# with the file system on it, which cloud kernels have built in
NVDIMM = ("libnvdimm", "nfit", "nd_btt", "nd_pmem", "dax_pmem", "device_dax", "ext4")
WHOLE = "every requested step was reported"


class Measure(NamedTuple):
    """What was measured of one thing, by arm."""

    name: str
    nbytes: int
    pairs: Iterable[tuple[str, str]] = ()  # of arms that are compared if both are there
    times: Mapping[str, Sequence[float]] = {}  # ns


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How often it visits each arm, and its runs in each matrix, as options."""

    rounds: int = 5  # default
    full: tuple[str, ...] = ("",)  # of the support matrix
    quick: tuple[str, ...] = ()  # likewise with --quick
    debug: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by kernel


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The guest that it runs in."""

    memory: int = 4096  # MiB, with an aligned GiB left whole at boot
    cmdline: str = ""  # parameters of its kernel
    hot: Hot = field(default_factory=Hot)
    modules: tuple[str, ...] = ()  # kernel modules that it loads first
    devices: tuple[str, ...] = ()  # of QEMU, on x86-64
    cpu: str = ""  # likewise; "": the architecture's default
    icount: bool = False  # its clock counts instructions
    countable: bool = False  # so it does with one CPU, and they are what is measured
    faults: bool = False  # can be injected: it needs a test build
    upstream: str = ""  # a test from the kernel's source, built as a module
    suite: str = ""  # programs of others (machine/suites.py)
    disk: bool = False  # it has one with a Debian system


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The kernels and the architecture that it needs."""

    since: str = ""  # the oldest kernel that supports it; "": all do
    before: str = ""  # the first kernel on which another scenario does more
    kinds: tuple[str, ...] = ()  # of the lab's own kernels: runs on no other
    lacking_debug: str = ""  # why it runs on no other of the lab's own kernels
    x86_only: str = ""  # what of it is for x86-64 only

    def find_problem(self, series: str) -> str:
        """Return which series it needs, if not this one."""
        if self.since and not is_at_least(series, self.since):
            return f"kernel {self.since} or later"
        if self.before and is_at_least(series, self.before):
            return f"a kernel before {self.before}"
        return ""


@dataclass(frozen=True)
class Scenario:
    """What it measures, takes and needs, and which matrices run it.

    The class of a family says how. By default the guest does and checks everything
    by itself, in the lines of ``does``.
    """

    name: str
    about: str  # what is measured; of scenarios that measure nothing, what is done
    check: str
    _: KW_ONLY
    family: str
    path: str  # of the module
    seconds: int  # for one run at full size under TCG, without set-up
    does: tuple[str, ...] = ()  # lines of the job, with options
    published: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()  # options that apply
    size: int = 0  # default: bytes of each device
    sizes: tuple[int, int, int] = (0, 1 << 62, 1)  # that fit: least, most, multiple of
    runs: Runs = field(default_factory=Runs)
    machine: Machine = field(default_factory=Machine)
    needs: Needs = field(default_factory=Needs)
    taint: int = 0  # expected taint, besides that of loading modules
    plugs: bool = False  # memory of its size
    warns: bool = False  # warnings are expected between marks
    options: Namespace = field(default_factory=Namespace)  # the user's: see make

    observations: ClassVar[tuple[Observation, ...]] = ()  # for facts()
    visited: ClassVar[str] = ""  # event that ends a visit, for facts()
    every_arm: ClassVar[tuple[str, ...]] = ()  # of which --arm chooses

    def lacking(self, kernel: Choice) -> str:
        """Return why it cannot run on a kernel; "" if it can."""
        name, kind, needs = kernel.name, kernel.kind, self.needs
        if needs.x86_only and kernel.arch is not X86_64:
            return f"{self.name}: {needs.x86_only} for x86_64 only"
        if needs.lacking_debug and kind and name not in self.runs.debug:
            return f"{self.name}: {needs.lacking_debug.format(kernel=name)}"
        if kind and kind.no_disks and "nd_pmem" in self.machine.modules:
            return (
                f"{self.name}: its disk would be reported on the kernel {name}, "
                "which frees disks before what they hold is released"
            )
        if needs.kinds and name not in needs.kinds:
            return f"{self.name} needs kernel {' or '.join(needs.kinds)}, not {name}"
        if problem := needs.find_problem(kernel.series):
            return f"{self.name} needs {problem}, not {name}"
        return ""

    def runs_on(self, kernel: Choice) -> bool:
        """Return whether it runs on a kernel."""
        return not self.lacking(kernel)

    def make(self, **options: object) -> Self:
        """Return it with the user's options; reject those that do not apply."""
        for name in options:
            if name not in self.takes:
                raise UsageError(f"{FLAGS[name]} does not apply to {self.name}")
        usual = {**USUAL, "rounds": self.runs.rounds, "size": self.size}
        usual["seed"] = random.SystemRandom().getrandbits(32)
        return replace(self, options=Namespace(**{**usual, **options}))

    @property
    def named_by_size(self) -> str:
        """Return its name with the real size of its devices in place of the usual."""
        usual, real = (name_size(one).lower() for one in (self.size, self.options.size))
        return self.name.replace(f"-{usual}", f"-{real}")

    @property
    def measures(self) -> bool:
        """Return whether anything is measured."""
        return type(self).measurements is not Scenario.measurements

    @property
    def choices(self) -> Mapping[str, tuple[object, ...]]:
        """Return the choices of this scenario for options that have several."""
        return {"arms": self.every_arm} if self.every_arm else {}

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the arms of this run."""
        return self.list_wanted(self.every_arm)

    def check_options(self, _arch: Arch = X86_64) -> None:
        """Reject values that do not fit together, or not this scenario."""
        for name, choices in self.choices.items():
            for value in getattr(self.options, name) or ():
                if value not in choices:
                    raise unknown_word(
                        name.removesuffix("s"), str(value), map(str, choices)
                    )
        nbytes, (least, most, unit) = self.options.size, self.sizes
        if not least <= nbytes <= most or nbytes % unit:
            raise UsageError(
                f"size {nbytes >> 20}M does not fit: give {least >> 30}G to "
                f"{most >> 30}G, a multiple of {unit >> 20}M"
            )

    def more_memory(self, *, poisons: bool) -> int:
        """Return the bytes of the host's memory that it uses beyond the usual.

        A kernel that poisons free memory writes to all that is plugged.
        """
        return self.options.size if poisons and self.plugs else 0

    @property
    def parameters(self) -> str:
        """Return kernel parameters besides vm.CMDLINE."""
        settings = ((name, getattr(self.options, name)) for name in PARAMETERS)
        words = (f"{name}={value}" for name, value in settings if value)
        return " ".join((self.machine.cmdline, *words)).strip()

    @property
    def defines(self) -> list[str]:
        """Return make variables."""
        return ["BMM_FAULTS=1"] if self.machine.faults else []

    def over(self, kernel: Kernel, progress: Progress) -> list[Path]:
        """Return trees to lay over the guest's own."""
        name = self.machine.suite
        return [suites.ensure_tree(kernel, name, progress)] if name else []

    def job(self, modules: list[str]) -> str:
        """Return the guest's job, in which the kernel's modules are loaded first."""
        first = [f"mark {self.name} begins", f"modules {' '.join(modules)}"]
        return "\n".join([*first, *self.lines()]) + "\n"

    def lines(self) -> list[str]:
        """Return the lines of the job: words of lab/guest/*.sh."""
        return [line.format(**vars(self.options)) for line in self.does]

    def state(self, arm: str, *more: str) -> str:
        """Return the line that brings the scenario's path, and more, into a state."""
        set_to = () if arm == ABSENT else (f"{self.path}={arm}", *more)
        return " ".join(("state", arm, *set_to))

    def list_wanted(self, arms: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of the arms that the user wants, all by default."""
        wanted = self.options.arms
        return tuple(arm for arm in arms if not wanted or arm in wanted)

    @property
    def chance(self) -> random.Random:
        """Return a random generator in its initial state."""
        return random.Random(self.options.seed)  # noqa: S311 - to vary, not to hide

    def each_round(
        self, arms: Sequence[Item], chance: random.Random | None = None
    ) -> Iterator[Item]:
        """Yield the arms of every round, each round in random order."""
        chance = chance or self.chance
        for _ in range(self.options.rounds):
            yield from chance.sample(arms, len(arms))

    @property
    def quiet(self) -> float:
        """Return for how many seconds the job by itself may report nothing."""
        return float(self.options.seconds)

    def measurements(self, _outcome: Outcome) -> Iterable[Measure]:
        """Return what was measured; by default nothing."""
        return ()

    def results(self, outcome: Outcome) -> Measurement:
        """Return the arms of all that was measured, and their ratios."""
        unit, ns = NS, 1
        if self.machine.countable and outcome.icount:
            unit, ns = INSTRUCTIONS, INSTRUCTION_NS
        results, ratios = stats.join_measurements(
            stats.rate_arms(name, unit, nbytes, _divided(times, ns), pairs)
            for name, nbytes, pairs, times in self.measurements(outcome)
        )
        if "size" in self.takes:  # its name says the usual one
            for result in results:
                result.size = self.options.size
        return results, ratios

    def checks(self, outcome: Outcome) -> list[Check]:
        """Return every verdict: the guest's own, and those on what it reports."""
        guest_checks = [
            Check(event["name"], event["ok"] == "yes", event["detail"])
            for event in outcome.of("check")
        ]
        return [*guest_checks, *self.judge(outcome)]

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        """Return the verdicts on what is reported; here, the guest has some itself."""
        if not outcome.of("check"):
            yield Check("faults", ok=False, detail="none was provoked")

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the options and what else the run observed."""
        facts = {name: getattr(self.options, name) for name in self.takes}
        for name, source in self.observations:
            facts[name] = (
                outcome.of(source) if isinstance(source, str) else source(outcome)
            )
        if self.visited:
            facts["visits"] = [
                visit.facts(self.path)
                for visit in state.list_visits(outcome, self.visited)
            ]
        return facts


def _divided(arms: Mapping[str, Sequence[float]], by: float) -> dict[str, list[float]]:
    return {arm: [value / by for value in values] for arm, values in arms.items()}


def collect_samples(
    outcome: Outcome, event: str, key: str, arms: Iterable[str], **wanted: object
) -> dict[str, list[float]]:
    """Return what events have under a key, in each arm."""
    return {
        arm: collect_values(outcome.of(event, arm=arm, **wanted), key) for arm in arms
    }


def collect_values(events: Iterable[Event], key: str) -> list[float]:
    """Return the numbers that events have under a key, one or several each."""
    return [float(text) for event in events for text in str(event[key]).split(",")]


def group_items(
    items: Iterable[Item], key: Callable[[Item], str]
) -> dict[str, list[Item]]:
    """Return what was seen in groups, in the order of their first members."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def check_reports(lines: Iterable[str], **counts: int) -> Check:
    """Check that each line of a job that begins with such a word has reported."""
    expected = Counter(line.split()[0] for line in lines)
    parts = (
        f"{n} of {expected[word]} {word}"
        for word, n in counts.items()
        if expected[word]
    )
    ok = all(expected[word] == n for word, n in counts.items())
    return Check(WHOLE, ok, ", ".join(parts))


def check_alike(
    name: str, arms: Mapping[str, object], first: str = ABSENT, *, ok: bool = True
) -> Check:
    """Check that every state of the module ends as the first: without it."""
    equal = first in arms and all(end == arms[first] for end in arms.values())
    detail = "; ".join(f"{arm}: {end}" for arm, end in arms.items())
    return Check(name, equal and ok, detail)


def check_values(
    name: str, events: Sequence[Event], wanted: Mapping[str, object], *, ok: bool = True
) -> Check:
    """Check that all events have these values; there must be some."""
    wrong = [event for event in events if not wanted.items() <= event.items()]
    detail = f"{len(events)} reports, {len(wrong)} wrong"
    for event in (*wrong, *events)[:1]:
        detail += ": " + " ".join(f"{key}={value}" for key, value in event.items())
    return Check(name, bool(events) and not wrong and ok, detail)
