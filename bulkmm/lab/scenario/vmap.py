# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path vmap: the kernel's mappings of page arrays.

A visit is a number of samples of one way to map, in one state of the module;
pages and address space are the same in all states. The test module judges what it
maps, and the host whether that is the same in every state.
"""

import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, ClassVar

from bulkmm.lab import state
from bulkmm.lab.choices import ARMS
from bulkmm.lab.machine import counting, klog
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.scenario import base
from bulkmm.lab.scenario.base import Event, Measure, Scenario
from bulkmm.lab.state import Expect, Visit
from bulkmm.results import Check
from bulkmm.size import MIB, PAGE

MAPPED = (
    "random page arrays against a model: every entry's size and bits, the page behind "
    "every address, data both ways, nothing left; a wrong page must be seen"
)
PHYSICAL = 0x20000000  # reserved from the kernel, for ioremap()
FEW = ("--rounds 1 --arrays 50",)
SERVING = ("pte", "block")  # the modes in which the module maps
PAIRS = (*product(("absent", "off"), SERVING), ("absent", "off"))
LIMIT = "limit"  # only reading the page array
SLOTS = ("map", "unmap")  # of a record of work, as vmap_time.c marks them
ENTRIES = (
    "vmap",
    "vm_map_ram",
    "vmalloc",
    "vmalloc_huge",
    "vm_area_map_pages",
    "ioremap",
    "percpu",
)
BAD = (
    "null-first",
    "null-middle",
    "null-last",
    "zero-count",
    "too-many",
    "past-memory",
    "no-memory",
    "present",
)
# a wrong page: found by its entry and by vmalloc_to_page()
PLANTED = 2
# requests that the kernel refuses silently; the warnings of its own are rate-limited
SILENT = ("zero-count", "too-many", "test_vmalloc")
LINE = re.compile(r"(not ok|ok) \d+ (?P<name>[^#]+?)(?: # (?P<detail>.*))?$")
SUMMARY = re.compile(
    r"Summary: (\w+) passed: (\d+) failed: (\d+)(?: xfailed: (\d+))? repeat:"
)
# requests impossible alignments; older kernels count that as failed
MAY_FAIL = "align_shift_alloc_test"


@dataclass(frozen=True)
class Case:
    """One way to map, as module/selftest/vmap_time.c knows it."""

    result: str  # suffix to the scenario's name
    what: str
    calls: int  # per sample, which is their mean
    samples: int  # per visit
    shape: str = ""  # of the page array, or
    size: int = 0  # bytes
    pages: int = 0  # of the shape
    served: bool = True  # long enough for the path

    @property
    def nbytes(self) -> int:
        """Return the bytes that one call maps."""
        return self.size or self.pages * PAGE

    @property
    def scanned(self) -> bool:
        """Return whether reading the array takes measurable time."""
        return bool(self.shape) and self.served

    @property
    def words(self) -> str:
        """Return the arguments of the guest's command after the label."""
        words = f"{self.what} {self.calls} {self.samples}"
        return f"{words} {self.size} {PHYSICAL:#x}" if self.size else words


@dataclass(frozen=True, kw_only=True)
class Vmap(Scenario):
    """Kernel mappings in every state of the module."""

    family: str = "vmap"
    path: str = "vmap"
    check: str = MAPPED
    seconds: int = 60
    memory: int = 1024
    cmdline: str = f"memmap=16M${PHYSICAL >> 20}M"

    usual_arrays: ClassVar[int] = 2000  # random ones, in total or per state
    kept = (
        ("shapes", "shape"),
        ("checked", "checked"),
        ("soaked", "soaked"),
        ("counters", state.unloaded),
    )

    @property
    def arms(self) -> tuple[str, ...]:
        return self.options.arms or ARMS

    @property
    def arrays(self) -> int:
        asked = self.options.arrays
        return self.usual_arrays if asked is None else asked

    def lines(self) -> list[str]:
        lines = self.mapped(self.chance)
        last = ["state absent", "must rmmod bulkmm_vmaptest"]
        return ["modules bulkmm_vmaptest", *lines, *last]

    def mapped(self, chance: random.Random) -> list[str]:
        """Return the lines of what is mapped."""
        raise NotImplementedError

    def random_arrays(self, arm: str, arrays: int) -> list[str]:
        """Return the lines for random arrays and one with a wrong model."""
        large = "always" if arm == "block" else "never"
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        seed = self.options.seed
        return [
            self.state(arm),
            f"checked random {large} {arrays} {seed}",
            f"checked {label} {large} 1 {seed} planted",
        ]

    def judged(self, outcome: Outcome) -> Iterable[Check]:
        yield from random_arrays(outcome, planted=not self.options.break_one_word)
        yield from verdicts(outcome)
        yield self._whole(outcome)
        if {*self.arms} & {*SERVING}:
            yield state.attached(outcome, "vmap", busy=bool(outcome.of("soak")))

    def _whole(self, outcome: Outcome) -> Check:
        """Check that each word of the job has reported."""
        return base.reported(
            self.lines(),
            timed=len(outcome.of("visit")),
            checked=len(outcome.of("checked")),
            entries=len(outcome.of("entry")),
            ktap=len(outcome.of("ktap-plan")),
            bad=len(outcome.of("ktap", of="bad")),
            upstream=len({one["arm"] for one in outcome.of("upstream")}),
            worker=len({one["process"] for one in outcome.of("soaked")}),
            soak=len(outcome.of("soak")),
        )

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        return {**super().facts(outcome), "arrays": self.arrays}


def _arm(name: str, visit: Event) -> str | None:
    """Return whose samples a visit has, if they are of this result."""
    if visit["result"] == f"{name}-scan":
        return LIMIT
    mine = (visit["label"], visit["result"]) == ("round", name)
    return str(visit["arm"]) if mine else None


def _many(visit: Event) -> int:
    """Return the number of samples, each of which has a record."""
    return len(base.values([visit], SLOTS[0]))


@dataclass(frozen=True, kw_only=True)
class Timed(Vmap):
    """Ways to map, timed; and random arrays."""

    takes: tuple[str, ...] = ("rounds", "seed", "arms", "arrays", "break_one_word")
    full: tuple[str, ...] = ("--rounds 3",)
    debug: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"debug": FEW})
    marked: bool = True
    cases: tuple[Case, ...]

    def mapped(self, chance: random.Random) -> list[str]:
        lines = []
        for case in self.cases:
            lines += [f"shape {case.shape}"] if case.shape else []
            name = self.name + case.result
            # makes the host fault in its own pages
            lines += ["state absent", f"timed first {name} {case.words}"]
            for _ in range(self.options.rounds):
                for arm in chance.sample(self.arms, len(self.arms)):
                    lines += [self.state(arm), f"timed round {name} {case.words}"]
                if case.scanned:
                    words = f"scan {case.calls} {case.samples}"
                    lines += [f"timed {LIMIT} {name}-scan {words}"]
        for arm in self.arms:
            lines += self.random_arrays(arm, self.arrays)
        return lines

    def measured(self, outcome: Outcome) -> Iterable[Measure]:
        for case, (slot, key) in product(self.cases, enumerate(SLOTS)):
            name = self.name + case.result
            of = {"label": "round", "result": name}
            taken = base.samples(outcome, "visit", key, self.arms, **of)
            if case.scanned and key == "map":
                scans = outcome.of("visit", label=LIMIT, result=f"{name}-scan")
                taken[LIMIT] = base.values(scans, key)
            arm = partial(_arm, name)
            seen = counting.by(
                outcome, ["visit"], arm, slot, calls=case.calls, many=_many
            )
            counted = {arm: seen[arm] for arm in taken}
            name += "-unmap" if key == "unmap" else ""
            yield Measure(name, case.nbytes, PAIRS, taken, counted)

    def judged(self, outcome: Outcome) -> Iterable[Check]:
        yield from super().judged(outcome)
        by_arm = base.grouped(state.visits(outcome, "visit"), lambda one: one.arm)
        for arm, some in by_arm.items():
            yield state.judge(f"hits ({arm})", some, self._hits)

    def _hits(self, visit: Visit) -> Expect:
        """Return what is expected of a visit's calls.

        Those that return from the trampoline are not counted, but mappings made by
        others meanwhile are.
        """
        by_result = {self.name + case.result: case for case in self.cases}
        case = by_result.get(visit.event["result"])
        many = case.calls * case.samples if case else 0  # or only the array was read
        if case and not case.served:
            return _vmap(visit, 0, many - 1)
        return _vmap(visit, many, sys.maxsize)


class Checked(Vmap):
    """Random arrays, every public entry, parts of mappings."""

    usual_arrays = 100_000

    def mapped(self, chance: random.Random) -> list[str]:
        lines = []
        serving = [arm for arm in self.arms if arm in SERVING]
        for arm in chance.sample(self.arms, len(self.arms)):
            # stock code, the reference, needs fewer than 10^5 arrays
            part = len(serving) if arm in serving else 10
            lines += self.random_arrays(arm, max(self.arrays // part, 1))
            if arm != base.ABSENT:
                lines += [f"entries {PHYSICAL:#x} {name}" for name in ENTRIES]
            large = "always" if arm == "block" else "never"
            lines += ["ktap parts", f"ktap attributes {large}"]
        return lines

    def judged(self, outcome: Outcome) -> Iterable[Check]:
        yield from super().judged(outcome)
        for one in state.visits(outcome, "entry"):
            name = f"{one.event['name']}() is seen ({one.arm})"
            yield state.judge(name, [one], _seen)


class Refused(Vmap):
    """Page tables that are refused, bad requests, and mapping while modes change."""

    def mapped(self, chance: random.Random) -> list[str]:
        lines = []
        for arm in chance.sample(self.arms, len(self.arms)):
            lines += [self.state(arm), "ktap starve"]
            lines += [f"bad {name}" for name in BAD]
        modes = [arm for arm in self.arms if arm != base.ABSENT]
        seconds, seed = self.options.seconds, self.options.seed
        lines += ["state absent", f"MODES='{' '.join(modes)}'"]
        lines += [f"worker {n} mapper {n} {seed} {seconds}" for n in (1, 2)]
        if modes:
            return [*lines, f"soak {seconds} 2 vmap_turn vmap={modes[0]}"]
        return [*lines, f"soak {seconds} 0 'sleep 1'"]

    def judged(self, outcome: Outcome) -> Iterable[Check]:
        """Check that failures in every mode are those without the module, too.

        PMD mappings need fewer page tables, so an allocation failure hits elsewhere:
        the guest alone judges block mode.
        """
        yield from super().judged(outcome)
        said: dict[tuple[str, str], dict[str, str]] = {}
        for event, _, name, detail in _ktap(outcome):
            of, arm = event["of"], event["arm"]
            if of == "bad" or (of == "starve" and arm != "block"):
                said.setdefault((of, name), {})[arm] = detail
        for (_, name), arms in said.items():
            yield base.alike(f"as the original: {name}", arms, self.arms[0])
        yield from warnings(outcome, self.arms[0])
        yield state.meanwhile(outcome, vmap=int(bool({*self.arms} & {*SERVING})))


class Upstream(Vmap):
    """The running kernel's own lib/test_vmalloc.c."""

    def mapped(self, chance: random.Random) -> list[str]:
        options = f"run_test_mask={0xFFFF} test_loop_count={self.options.loops}"
        lines = []
        for arm in chance.sample(self.arms, len(self.arms)):
            lines += [self.state(arm), f"upstream {options} nr_threads=2"]
        return lines

    def judged(self, outcome: Outcome) -> Iterable[Check]:
        """Check that the tests end in every mode as without the module, too."""
        yield from super().judged(outcome)
        yield from warnings(outcome, self.arms[0])
        said: dict[str, dict[str, list[str]]] = {}
        for event in outcome.of("upstream"):
            if found := SUMMARY.search(event["line"]):
                name, *verdict = found.groups("0")
                some = said.setdefault(name, {}).setdefault(event["arm"], [])
                some.append("/".join(verdict))
            else:
                name = f"a result that is understood ({event['arm']})"
                yield Check(name, ok=False, detail=event["line"])
        for name, arms in said.items():
            failed = any(
                one.split("/")[1] != "0" for some in arms.values() for one in some
            )
            ok = (not failed or name == MAY_FAIL) and {*arms} == {*self.arms}
            yield base.alike(f"{name} (upstream)", arms, self.arms[0], ok=ok)


def random_arrays(outcome: Outcome, *, planted: bool) -> Iterator[Check]:
    """Check that every random array was mapped as in the model."""
    labels = set()
    for event in (*outcome.of("checked"), *_soaked(outcome)):
        label, arm = event["label"], event["arm"]
        labels.add(label)
        if label == "planted":
            yield base.says(
                f"a wrong page is seen ({arm})", [event], {"wrong": PLANTED}
            )
            continue
        small = label != "random" or arm == "block" or not event["large"]
        name = f"arrays mapped as the model says ({label} {arm})"
        yield base.says(name, [event], {"wrong": 0}, ok=small and event["arrays"] > 0)
    if planted and "random" in labels and "planted" not in labels:
        yield Check("a wrong page is seen", ok=False, detail="none planted")


def _soaked(outcome: Outcome) -> Iterator[Event]:
    """Yield what each process of a soak reported, in all."""
    pieces = base.grouped(outcome.of("soaked"), lambda e: f"soak-{e['process']}")
    for label, some in pieces.items():
        keys = ("arrays", "pages", "small", "large", "wrong")
        sums = {key: sum(int(e[key]) for e in some) for key in keys}
        first = next((e["first"] for e in some if int(e["wrong"])), "none")
        yield {"label": label, "arm": "toggled", **sums, "first": first}


def _seen(visit: Visit) -> Expect:
    """Return what is expected of a call of a public entry."""
    return _vmap(visit, 1, sys.maxsize)


def _vmap(visit: Visit, least: int, most: int) -> Expect:
    """Return what is expected of calls: served where the path is on, only there."""
    on = visit.arm in SERVING
    return Expect("vmap", visit.arm, least * on, most * on, None)


def _ktap(outcome: Outcome) -> Iterable[tuple[Event, bool, str, str]]:
    """Yield event, verdict, name and detail of each KTAP line."""
    for event in outcome.of("ktap"):
        if said := LINE.fullmatch(event["line"].strip()):
            yield event, said[1] == "ok", said["name"], said["detail"] or ""


def verdicts(outcome: Outcome) -> Iterator[Check]:
    """Yield the test module's own verdicts; all announced ones must be there."""
    for event, ok, name, detail in _ktap(outcome):
        yield Check(f"{name} ({event['arm']})", ok, detail)
    for plan in outcome.of("ktap-plan"):
        key = (plan["of"], plan["arm"])
        many = sum((e["of"], e["arm"]) == key for e, *_ in _ktap(outcome))
        if many != int(plan["plan"]):
            name = f"{plan['of']} in {plan['arm']}: all lines"
            yield Check(name, ok=False, detail=f"{many} of {plan['plan']}")


def warnings(outcome: Outcome, first: str) -> Iterator[Check]:
    """Check that the kernel's warnings in every mode are those without the module."""
    seen: dict[str, dict[str, list[str]]] = {}
    for what, arm, places in klog.warnings(outcome.log):
        seen.setdefault(what, {})[arm] = places
    for what, arms in seen.items():
        ok = bool(arms.get(first)) is (what not in SILENT)
        yield base.alike(f"warnings ({what})", arms, first, ok=ok)


def _on_both(*runs: str) -> dict[str, tuple[str, ...]]:
    return {"debug": runs, "kasan": runs}


SCENARIOS = (
    Timed(
        "vmap-100m-order8",
        "vmap() of 100 MiB in blocks of order 8, as they are allocated",
        cases=(Case("", "vmap", 3, 8, "8x100", pages=25600),),
        quick=("--rounds 3 --arrays 50",),
        debug={
            **_on_both(*FEW),
            "clang-cfi": (f"{FEW[0]} --arm off --arm pte",),
        },
        published=("RK3588: 1235 -> 149 us, 8.3x",),
    ),
    Timed(
        "vmap-128m-mixed",
        "vmap() of 128 MiB of orders 8, 4 and 0, as a dma-buf heap has them",
        cases=(Case("", "vmap", 3, 8, "8x96 4x384s 0x2048s", pages=32768),),
        published=("phone SoC: 42.5 -> 2.47 ms, 17x",),
    ),
    Timed(
        "vmap-order9",
        "vmap() of 100 MiB in compound pages of order 9",
        cases=(Case("", "vmap", 3, 8, "9x50c", pages=25600),),
    ),
    Timed(
        "vmap-order0",
        "vmap() of 16 MiB in scattered single pages",
        cases=(Case("", "vmap", 10, 8, "0x4096s", pages=4096),),
    ),
    Timed(
        "vmap-1page",
        "vmap() of one page: the cost of the hooks",
        cases=(Case("", "vmap", 1000, 10, "0x1", pages=1, served=False),),
    ),
    Timed(
        "vm_map_ram",
        "vm_map_ram() of 64 KiB and of 4 MiB",
        cases=(
            Case("", "vm_map_ram", 1000, 8, "4x1", pages=16, served=False),
            Case("-4m", "vm_map_ram", 50, 8, "8x4", pages=1024),
        ),
        debug=_on_both(*FEW),
        seconds=90,
    ),
    Timed(
        "vmalloc-1m",
        "mapping what vmalloc_huge() allocated (1 MiB, 4 MiB), and vmalloc() of 1 MiB "
        "as a whole",
        cases=(
            Case("", "vmalloc-map", 100, 8, size=MIB),
            Case("-whole", "vmalloc", 20, 4, size=MIB),
            Case("-huge-4m", "vmalloc-map", 100, 8, size=4 * MIB, served=False),
        ),
        published=("RK3588, huge, mapping only: 5.00 -> 3.53 us, 1.42x",),
        seconds=120,
    ),
    Timed(
        "ioremap-1m",
        "ioremap() of 1 MiB as a whole, and its mapping alone",
        cases=(
            Case("", "ioremap", 100, 8, size=MIB),
            Case("-map", "ioremap-map", 100, 8, size=MIB),
        ),
        debug=_on_both(*FEW),
        published=("RK3588: 3407 -> 2526 ns, 1.35x",),
        seconds=90,
    ),
    Checked(
        "vmap-check",
        "100000 page arrays of random shape, every public entry, parts unmapped and "
        "given other attributes",
        takes=("arms", "seed", "arrays", "break_one_word"),
        debug=_on_both("--arrays 1000"),
        seconds=240,
    ),
    Refused(
        "vmap-faults",
        "each page table refused in turn, bad requests, and two processes that map "
        "while modes and the module come and go",
        check="the original's answer, warning and state each time; " + MAPPED,
        takes=("arms", "seed", "seconds"),
        debug=_on_both("--seconds 30"),
        warns=True,
    ),
    Upstream(
        "upstream-vmalloc",
        "the running kernel's own lib/test_vmalloc.c",
        check="the same verdicts without the module and in every mode",
        takes=("arms", "seed", "loops"),
        debug=_on_both("--loops 20"),
        seconds=240,
        memory=2048,
        upstream="test_vmalloc",
        since="6.12",  # 6.1's own module lacks what the shim calls
    ),
)
