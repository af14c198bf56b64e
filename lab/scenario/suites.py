# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of suites: tests and programs of others in each state of the module.

Some have parts that can be run alone: categories of the kernel's tests, users of a
function. Nothing is timed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bulkmm.results.model import Check
from bulkmm.shell.size import GIB, MIB
from lab import state
from lab.machine import kernel_kinds
from lab.machine.kernel_kinds import PATCHED, PATCHED_HOOKED
from lab.machine.vm import Outcome
from lab.scenario import base, memmap
from lab.scenario.base import Scenario

LATE = "late"  # a test that timed out
# kinds of other users of a function (lab/guest/coexist.sh); kexec must be last
USERS = ("function", "function_graph", "kprobe", "kretprobe", "fentry", "livepatch")
KEXEC = "kexec"
STATES = ("absent", "on", "streaming")
STEP = 16 * MIB  # of the sizes of odd namespaces
MOST = 6  # of them on a device
SMALLEST, LARGEST = 4, 80  # steps of each
KINDS = (
    ("fsdax", "dev", "2M"),
    ("fsdax", "mem", "2M"),
    ("devdax", "dev", "2M"),
    ("devdax", "mem", "2M"),
    ("devdax", "dev", "4K"),
)
# of the kernel's tests, those of what the patches in upstream/ change: faults, pins and
# populating; "hugetlb" and "userfaultfd" fault for hours where that is emulated
CHANGED = (
    "cow",
    "compaction",
    "gup_test",
    "mlock",
    "mmap",
    "madv_populate",
    "migration",
)
TOUCHED = " ".join((*(f"--part {part}" for part in CHANGED), "--seconds 20"))


@dataclass(frozen=True, kw_only=True)
class Suite(Scenario):
    """A suite, some of whose parts can be run alone."""

    family: str = "suites"
    path: str = "suites"
    needs: base.Needs = base.Needs(x86_only="the suites are built")

    every_part: ClassVar[tuple[str, ...]] = ()  # part that there is
    observations = (
        ("ops", "stress-ops"),
        ("took", "mm-ran"),
        ("hits", state.list_unloaded),
    )

    @property
    def parts(self) -> tuple[str, ...]:
        wanted = self.options.parts
        return tuple(part for part in self.every_part if not wanted or part in wanted)

    @property
    def choices(self) -> Mapping[str, tuple[object, ...]]:
        return {**super().choices, "parts": self.every_part}

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        return {
            **super().facts(outcome),
            "parts": self.parts,
            "tests": _verdicts(outcome),
        }


class Coexist(Suite):
    """Other users of the hooked functions."""

    every_part = (*USERS, "everywhere", "knob", KEXEC)

    def lines(self) -> list[str]:
        return [f"coexist {' '.join(self.parts)}"]

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        steps = [str(event["name"]) for event in outcome.of("step")]
        if KEXEC in self.parts and len(outcome.of("start")) > 1:
            steps.append(KEXEC)  # kexec replaced the kernel that began it
        ok = tuple(steps) == self.parts
        yield Check("every part was run", ok, ", ".join(steps))


class Mm(Suite):
    """The kernel's own tests of memory management."""

    # categories of run_vmtests.sh; others need modules or options that stock kernels
    # lack
    every_part = (
        *("hugetlb", "mmap", "gup_test", "userfaultfd", "compaction", "mlock"),
        *("process_mrelease", "mremap", "hugevm", "madv_guard", "madv_populate"),
        *("process_madv", "vma_merge", "memfd_secret", "ksm", "pkey", "soft_dirty"),
        *("pagemap", "pfnmap", "cow", "thp", "migration", "mkdirty", "mdwe", "rmap"),
    )

    every_arm = STATES

    def lines(self) -> list[str]:
        begin = [f"MM_ARMS='{' '.join(self.arms)}'", "mm_begin"]
        return [*begin, f"mm {self.options.seconds} {' '.join(self.parts)}"]

    @property
    def quiet(self) -> float:
        # a test has twice that, by the guest's clock
        return 10 * float(self.options.seconds)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        """Check that tests end as without the module, and which paths they used."""
        for event in outcome.of("mm-unbuilt"):
            yield Check(f"{event['name']} does not build", ok=True, detail="skipped")
        attempts = _verdicts(outcome)
        for name, arms in attempts.items():
            yield _check_test(name, arms, self.arms)
        yield self._whole(outcome)
        first = [arms.get(self.arms[0], []) for arms in attempts.values()]
        passed = sum(
            any(verdict.startswith("pass") for verdict in verdicts)
            for verdicts in first
        )
        yield Check("tests passed", passed > 0, f"{passed} of {len(attempts)}")
        if self.arms == STATES[:1]:
            return
        hits: Counter[str] = Counter()
        for counters in state.list_unloaded(outcome):
            hits[f"{counters['path']}, {counters['arm']}"] += counters["hits"]
        detail = ", ".join(f"{path}: {many}" for path, many in hits.items())
        used = {bool(hits[f"clear, {arm}"]) for arm in self.arms if arm != STATES[0]}
        releases = (event["release"] for event in outcome.of("start"))
        kinds = filter(None, map(kernel_kinds.of_release, releases))
        if any(kind.replaces_clear for kind in kinds):
            yield Check("huge pages were left to the patches", used == {False}, detail)
        else:
            yield Check("huge pages were served meanwhile", used == {True}, detail)

    def _whole(self, outcome: Outcome) -> Check:
        """Check that each category was run, and that a test of each that has one."""
        runs = outcome.of("mm-ran")
        wanted = {(arm, part) for arm in self.arms for part in self.parts}
        tested = {e["category"] for e in outcome.of("mm")}
        # an older kernel's runner has fewer
        lacks = {e["category"] for e in runs if not e["tests"]}
        idle = {*self.parts} - tested - lacks
        pairs = {(e["arm"], e["category"]) for e in runs}
        detail = f"{len(pairs)} runs; not of this kernel: {sorted(lacks)}"
        detail += f"; no test ran: {sorted(idle)}" if idle else ""
        return Check("every category was run", pairs == wanted and not idle, detail)


class Odd(Suite):
    """Namespaces of odd sizes on one device."""

    def lines(self) -> list[str]:
        broken = f"BROKEN={'1' if self.options.break_one_word else ''}"
        commands = [
            f"odd layout-{number} {' '.join(words)}"
            for number, words in enumerate(self.layouts)
        ]
        return ["modules bulkmm_lab", broken, "odd_begin", *commands]

    @property
    def layouts(self) -> list[list[str]]:
        """Return the namespaces of each layout: mode, map, alignment, bytes."""
        chance = self.chance

        def namespace() -> str:
            kind = chance.choice(KINDS)
            return ",".join((*kind, f"{chance.randint(SMALLEST, LARGEST) * STEP}"))

        return [
            [namespace() for _ in range(chance.randint(3, MOST))]
            for _ in range(self.options.rounds)
        ]

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        comparisons = outcome.of("compare")
        yield from map(memmap.check_comparison, comparisons)
        many = [*map(len, self.layouts)]
        flips = len(outcome.of("compare", label="flipped"))
        planned = 0 if self.options.break_one_word else len(many)
        whole = (len(comparisons) - flips, flips) == (sum(many), planned)
        detail = f"{len(comparisons) - flips} of {sum(many)}, {flips} flips seen"
        yield Check("every namespace was compared", whole, detail)
        binds = sum(length**2 for length in many)
        hits = state.count_served(outcome)["memmap"]
        yield Check("served in ranges", hits == binds, f"{hits} of {binds}")
        yield state.check_attached(outcome, "memmap")


class Stress(Suite):
    """Everything at once, while paths are switched."""

    users = (
        ("folios", "huge pages: every byte zero", "folios", "wrong"),
        ("copies", "hugetlb pages: copies as the model has them", "copies", "wrong"),
        ("device", "device: always came up", "binds", "failed"),
    )

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        """Check that each path was used while it was switched, and what users saw."""
        reports = {event["process"]: event for event in outcome.of("soaked")}
        loads, turns = (int(outcome.of("soak")[0][key]) for key in ("loads", "turns"))
        yield state.check_meanwhile(outcome, memmap=1, clear=1, copy=1, vmap=1)
        detail = f"{loads} loads, {turns} turns"
        yield Check("loaded more than once", loads > 1, detail)
        stress_ng = reports["stress-ng"]
        yield base.check_values(
            "stress-ng verifies all that it stored", [stress_ng], {"code": 0}
        )
        for user, name, many, bad in self.users:
            ok = reports[user][many] > 0
            yield base.check_values(name, [reports[user]], {bad: 0}, ok=ok)


Attempts = dict[str, list[str]]  # outcomes of a test by state


def _verdicts(outcome: Outcome) -> dict[str, Attempts]:
    """Return the outcomes of each kernel test, by category and name."""
    attempts: dict[str, Attempts] = {}
    for event in outcome.of("mm"):
        verdict = str(event["verdict"])
        # a program may pass that has skipped all that it has
        if verdict == "pass" and not int(event["passed"]) and int(event["skipped"]):
            verdict = "skip"
        numbers = [f"{event[key]} {key}" for key in ("passed", "failed", "skipped")]
        if verdict != LATE:  # a late test's numbers depend on the host
            verdict = ", ".join(
                [verdict, *(n for n in numbers if not n.startswith("0 "))]
            )
        arms = attempts.setdefault(f"{event['category']}: {event['name']}", {})
        arms.setdefault(event["arm"], []).append(verdict)
    return attempts


def _check_test(test: str, attempts: Attempts, arms: Sequence[str]) -> Check:
    """Check that a test ends in every state as without the module.

    Any outcome seen without the module is accepted with it. Where it is never loaded,
    no test may fail.
    """
    without = {*attempts.get(STATES[0], [])}
    first = {attempts[arm][0] if attempts.get(arm) else "none" for arm in arms}
    if len(first) == 1:
        detail = first.pop()
        fails = len(arms) == 1 and detail.startswith("fail")
        return Check(test, detail != "none" and not fails, detail)
    ways = {way for arm in arms for way in attempts.get(arm, ["none"])}
    flaky = len(without) > 1 and ways <= without
    detail = "; ".join(f"{arm}: {' | '.join(attempts.get(arm, ()))}" for arm in arms)
    return Check(test, flaky, detail + ("; flaky by itself" if flaky else ""))


SCENARIOS = (
    Coexist(
        "coexist",
        "other users of the functions that the module hooks, before and after it, with "
        "a path on and off: tracers, probes, BPF, a live patch; ftrace switched off; "
        "kexec into the same kernel",
        "shared users see every call; an exclusive user is refused, or causes a "
        "refusal, and the module says so; every byte zero whoever clears",
        takes=("parts",),
        seconds=120,
        machine=base.Machine(
            memory=1024,
            suite="coexist",
        ),
        needs=base.Needs(
            x86_only="the suites are built",
            lacking_debug=base.LACKING,
        ),
        taint=base.LIVE_PATCH,
    ),
    Odd(
        "ndctl-odd",
        "namespaces of odd sizes, several on one device, come up at once in memory "
        "that was filled before",
        memmap.CHECK,
        takes=("rounds", "seed", "break_one_word"),
        runs=base.Runs(
            rounds=4,
        ),
        machine=base.Machine(
            modules=base.NVDIMM,
            # an idle device may be written by physical address
            cmdline="init_on_alloc=0 iomem=relaxed",
        ),
        size=(MOST * LARGEST + 1) * STEP,
        seconds=150,
    ),
    Mm(
        "upstream-mm",
        "the running kernel's own tests of memory management "
        "(tools/testing/selftests/mm)",
        "each test's verdict, and how many of its own passed, as without the module: "
        "with every path on, and with huge pages cleared past the caches",
        takes=("arms", "parts", "seconds"),
        needs=base.Needs(
            # 6.1 keeps them elsewhere, and their runner reports otherwise
            since="6.12",
            lacking_debug=base.LACKING,
        ),
        runs=base.Runs(
            full=("--seconds 20",),
            debug={
                **dict.fromkeys(PATCHED, (f"{TOUCHED} --arm absent",)),
                **dict.fromkeys(PATCHED_HOOKED, (TOUCHED,)),
            },
        ),
        seconds=2400,
        machine=base.Machine(
            icount=True,  # tests have time limits
            suite="mm",
        ),
    ),
    Stress(
        "stress",
        "stress-ng with --verify, huge pages, hugetlb pages that are copied and a "
        "device that comes and goes, while paths, backends and the module change",
        "all that was stored is read back, every byte of huge pages zero, every copy "
        "as the model has it, every struct page as the kernel's own",
        does=("modules bulkmm_lab", "namespace fsdax dev 2M", "stress {seconds}"),
        takes=("seconds",),
        machine=base.Machine(
            modules=base.NVDIMM,
            cmdline="init_on_alloc=0",
            memory=2048,
            suite="stress",
        ),
        size=2 * GIB,
        seconds=60,
    ),
)
