# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path vmap: the kernel's mappings of page arrays.

The test module judges what it maps, and the host whether that is the same in every
state. Nothing is timed: ``bulkmm bench kernel vmap`` does that natively.
"""

import random
import re
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from bulkmm.results.model import Check
from lab import state
from lab.machine import klog
from lab.machine.kernel_kinds import PATCHED
from lab.machine.vm import Outcome
from lab.scenario import base
from lab.scenario.base import Event, Scenario
from lab.state import Expect, Visit

CHECK = (
    "random page arrays against a model: every entry's size and bits, the page behind "
    "every address, data both ways, nothing left; a wrong page must be seen"
)
PHYSICAL = 0x20000000  # reserved from the kernel, for ioremap()
SERVING = ("pte", "block")  # the modes in which the module maps
ARMS = (base.ABSENT, "off", *SERVING)
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
TABLES = re.compile(r"\btables=(\d+)")
SUMMARY = re.compile(
    r"Summary: (\w+) passed: (\d+) failed: (\d+)(?: xfailed: (\d+))? repeat:"
)
# requests impossible alignments; older kernels count that as failed
MAY_FAIL = "align_shift_alloc_test"


@dataclass(frozen=True)
class Entry:
    """A public function that leads to the path (lab/guest/module/vmap_enter.c).

    Of the calls that no path is to serve, fewer than all may be counted: others map
    meanwhile.
    """

    name: str
    pages: int  # of each call
    calls: int = 8
    least_hits: int = 8  # fewest calls that the path must have served; 0: falls back

    def expect(self, visit: Visit) -> Expect:
        """Return what is expected of its calls: served where the path is on."""
        on = visit.arm in SERVING
        most = sys.maxsize if self.least_hits else self.calls - 1
        return Expect("vmap", visit.arm, self.least_hits * on, most * on, None)


ENTRIES = (
    Entry("vmap", 64),
    Entry("vmap", 1024),
    Entry("vm_map_ram", 1024),
    Entry("vm_area_map_pages", 1024),
    Entry("vmalloc", 256),
    Entry("vmalloc_huge", 256),
    Entry("ioremap", 256),
    Entry("percpu", 8, calls=256, least_hits=1),  # more than any chunk can hold
    # the trampoline returns: too short, or in PMD mappings, which the kernel writes
    Entry("vmap", 1, least_hits=0),
    Entry("vmap", 63, least_hits=0),
    Entry("vm_map_ram", 16, least_hits=0),
    Entry("ioremap", 63, least_hits=0),
    Entry("vmalloc_huge", 1024, least_hits=0),
)


@dataclass(frozen=True, kw_only=True)
class Vmap(Scenario):
    """Kernel mappings in every state of the module."""

    family: str = "vmap"
    path: str = "vmap"
    check: str = CHECK
    seconds: int = 60
    machine: base.Machine = base.Machine(
        memory=1024, cmdline=f"memmap=16M${PHYSICAL >> 20}M"
    )

    observations = (
        ("checked", "checked"),
        ("soaked", "soaked"),
        ("counters", state.list_unloaded),
    )

    every_arm = ARMS

    @property
    def stock_only(self) -> bool:
        """Return whether only the kernel itself maps."""
        return self.arms == (base.ABSENT,)

    def lines(self) -> list[str]:
        lines = self.mapping_lines(self.chance)
        last = ["state absent", "must rmmod bulkmm_vmaptest"]
        return ["modules bulkmm_vmaptest", *lines, *last]

    def mapping_lines(self, chance: random.Random) -> list[str]:
        """Return the lines of what is mapped."""
        raise NotImplementedError

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        planted = not self.options.break_one_word
        large = ("absent", "block") if self.stock_only else ("block",)
        yield from judge_arrays(outcome, large, planted=planted)
        yield from list_verdicts(outcome)
        yield self._whole(outcome)
        if {*self.arms} & {*SERVING}:
            yield state.check_attached(outcome, "vmap", busy=bool(outcome.of("soak")))

    def _whole(self, outcome: Outcome) -> Check:
        """Check that each word of the job has reported."""
        return base.check_reports(
            self.lines(),
            checked=len(outcome.of("checked")),
            enter=len(outcome.of("entry")),
            ktap=len(outcome.of("ktap-plan")),
            bad=len(outcome.of("ktap", of="bad")),
            upstream=len({one["arm"] for one in outcome.of("upstream")}),
            worker=len({one["process"] for one in outcome.of("soaked")}),
            soak=len(outcome.of("soak")),
        )


class Checked(Vmap):
    """Random arrays, every public entry, parts of mappings."""

    usual_arrays: ClassVar[int] = 100_000

    @property
    def arrays(self) -> int:
        """Return the number of random arrays, in all states that serve."""
        count = self.options.arrays
        return self.usual_arrays if count is None else int(count)

    def mapping_lines(self, chance: random.Random) -> list[str]:
        lines = []
        serving = [arm for arm in self.arms if arm in SERVING]
        for arm in chance.sample(self.arms, len(self.arms)):
            # stock code, the reference, needs fewer than 10^5 arrays
            part = len(serving) if arm in serving else 10
            lines += self.random_arrays(arm, max(self.arrays // part, 1))
            if arm != base.ABSENT:
                lines += [
                    f"enter {PHYSICAL:#x} {entry.name} {entry.pages} {entry.calls}"
                    for entry in ENTRIES
                ]
            lines += ["ktap parts", f"ktap attributes {self._large(arm)}"]
        return lines

    def random_arrays(self, arm: str, arrays: int) -> list[str]:
        """Return the lines for random arrays and one with a wrong model."""
        large = self._large(arm)
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        seed = self.options.seed
        return [
            self.state(arm),
            f"checked random {large} {arrays} {seed}",
            f"checked {label} {large} 1 {seed} planted",
        ]

    def _large(self, arm: str) -> str:
        """Return where mappings have 2 MiB entries; a patched kernel's own may."""
        if self.stock_only:
            return "may"
        return "always" if arm == "block" else "never"

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        yield from super().judge(outcome)
        entries = {(entry.name, entry.pages): entry for entry in ENTRIES}
        for visit in state.list_visits(outcome, "entry"):
            entry = entries[visit.event["name"], visit.event["pages"]]
            end = "is served" if entry.least_hits else "falls back"
            name = f"{entry.name}() of {entry.pages} pages {end} ({visit.arm})"
            yield state.judge_visits(name, [visit], entry.expect)

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        return {**super().facts(outcome), "arrays": self.arrays}


class Faults(Vmap):
    """Page tables that are refused, bad requests, and mapping while modes change."""

    def mapping_lines(self, chance: random.Random) -> list[str]:
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

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        """Check that failures in every mode are those without the module, too.

        PMD mappings need fewer page tables, so an allocation failure hits elsewhere:
        the guest alone judges block mode.
        """
        yield from super().judge(outcome)
        details: dict[tuple[str, str], dict[str, str]] = {}
        for event, _, name, detail in _ktap(outcome):
            of, arm = event["of"], event["arm"]
            if of == "bad" or (of == "starve" and arm != "block"):
                details.setdefault((of, name), {})[arm] = detail
        for (_, name), arms in details.items():
            yield base.check_alike(f"as the original: {name}", arms, self.arms[0])
        yield from check_tables(outcome)
        yield from check_warnings(outcome, self.arms[0])
        yield state.check_meanwhile(outcome, vmap=int(bool({*self.arms} & {*SERVING})))


class Upstream(Vmap):
    """The running kernel's own lib/test_vmalloc.c."""

    def mapping_lines(self, chance: random.Random) -> list[str]:
        options = f"run_test_mask={0xFFFF} test_loop_count={self.options.loops}"
        lines = []
        for arm in chance.sample(self.arms, len(self.arms)):
            lines += [self.state(arm), f"upstream {options} nr_threads=2"]
        return lines

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        """Check that the tests end in every mode as without the module, too."""
        yield from super().judge(outcome)
        yield from check_warnings(outcome, self.arms[0])
        results: dict[str, dict[str, list[str]]] = {}
        for event in outcome.of("upstream"):
            if match := SUMMARY.search(event["line"]):
                name, *verdict = match.groups("0")
                attempts = results.setdefault(name, {}).setdefault(event["arm"], [])
                attempts.append("/".join(verdict))
            else:
                name = f"a result that is understood ({event['arm']})"
                yield Check(name, ok=False, detail=event["line"])
        for name, arms in results.items():
            failed = any(
                attempt.split("/")[1] != "0"
                for attempts in arms.values()
                for attempt in attempts
            )
            ok = (not failed or name == MAY_FAIL) and {*arms} == {*self.arms}
            yield base.check_alike(f"{name} (upstream)", arms, self.arms[0], ok=ok)


def judge_arrays(
    outcome: Outcome, large: Container[str], *, planted: bool
) -> Iterator[Check]:
    """Check that every random array was mapped as in the model."""
    labels = set()
    for event in (*outcome.of("checked"), *_soaked(outcome)):
        label, arm = event["label"], event["arm"]
        labels.add(label)
        if label == "planted":
            yield base.check_values(
                f"a wrong page is seen ({arm})", [event], {"wrong": PLANTED}
            )
            continue
        small = label != "random" or arm in large or not event["large"]
        name = f"arrays mapped as the model says ({label} {arm})"
        yield base.check_values(
            name, [event], {"wrong": 0}, ok=small and event["arrays"] > 0
        )
    if planted and "random" in labels and "planted" not in labels:
        yield Check("a wrong page is seen", ok=False, detail="none planted")


def _soaked(outcome: Outcome) -> Iterator[Event]:
    """Yield what each process of a soak reported, in all."""
    pieces = base.group_items(outcome.of("soaked"), lambda e: f"soak-{e['process']}")
    for label, events in pieces.items():
        keys = ("arrays", "pages", "small", "large", "wrong")
        sums = {key: sum(int(e[key]) for e in events) for key in keys}
        first = next((e["first"] for e in events if int(e["wrong"])), "none")
        yield {"label": label, "arm": "toggled", **sums, "first": first}


def _ktap(outcome: Outcome) -> Iterable[tuple[Event, bool, str, str]]:
    """Yield event, verdict, name and detail of each KTAP line."""
    for event in outcome.of("ktap"):
        if match := LINE.fullmatch(event["line"].strip()):
            yield event, match[1] == "ok", match["name"], match["detail"] or ""


def list_verdicts(outcome: Outcome) -> Iterator[Check]:
    """Yield the test module's own verdicts; all announced ones must be there."""
    for event, ok, name, detail in _ktap(outcome):
        yield Check(f"{name} ({event['arm']})", ok, detail)
    for plan in outcome.of("ktap-plan"):
        key = (plan["of"], plan["arm"])
        many = sum((e["of"], e["arm"]) == key for e, *_ in _ktap(outcome))
        if many != int(plan["plan"]):
            name = f"{plan['of']} in {plan['arm']}: all lines"
            yield Check(name, ok=False, detail=f"{many} of {plan['plan']}")


def check_tables(outcome: Outcome) -> Iterator[Check]:
    """Check that each mapping takes as many page tables, whichever was refused."""
    tables: dict[str, list[str]] = {}
    for event, _, _, detail in _ktap(outcome):
        if event["of"] == "starve" and (match := TABLES.search(detail)):
            tables.setdefault(event["arm"], []).append(match[1])
    for arm, counts in tables.items():
        ok = len(set(counts)) == 1 < len(counts)
        yield Check(f"no page table is leaked ({arm})", ok, " ".join(counts))


def check_warnings(outcome: Outcome, first: str) -> Iterator[Check]:
    """Check that the kernel's warnings in every mode are those without the module."""
    by_kind: dict[str, dict[str, list[str]]] = {}
    for kind, arm, places in klog.list_warnings(outcome.log):
        by_kind.setdefault(kind, {})[arm] = places
    for kind, arms in by_kind.items():
        ok = bool(arms.get(first)) is (kind not in SILENT)
        yield base.check_alike(f"warnings ({kind})", arms, first, ok=ok)


def _on_both(*runs: str) -> dict[str, tuple[str, ...]]:
    return {"debug": runs, "kasan": runs}


SCENARIOS = (
    Checked(
        "vmap-check",
        "100000 page arrays of random shape, every public entry, parts unmapped and "
        "given other attributes",
        takes=("arms", "seed", "arrays", "break_one_word"),
        runs=base.Runs(
            quick=("--arrays 3000",),
            debug={
                **_on_both("--arrays 1000"),
                "cachyos": ("--arrays 1000",),
                "clang-cfi": ("--arrays 50 --arm off --arm pte",),
                **dict.fromkeys(PATCHED, ("--arrays 1000 --arm absent",)),
            },
        ),
        seconds=240,
    ),
    Faults(
        "vmap-faults",
        "each page table refused in turn, bad requests, and two processes that map "
        "while modes and the module come and go",
        check="the original's answer, warning and state each time; " + CHECK,
        takes=("arms", "seed", "seconds"),
        runs=base.Runs(
            debug={
                **_on_both("--seconds 30"),
                **dict.fromkeys(PATCHED, ("--seconds 30 --arm absent",)),
            },
        ),
        warns=True,
    ),
    Upstream(
        "upstream-vmalloc",
        "the running kernel's own lib/test_vmalloc.c",
        check="the same verdicts without the module and in every mode",
        takes=("arms", "seed", "loops"),
        runs=base.Runs(
            debug={
                **_on_both("--loops 20"),
                **dict.fromkeys(PATCHED, ("--loops 20 --arm absent",)),
            },
        ),
        seconds=240,
        machine=base.Machine(
            cmdline=f"memmap=16M${PHYSICAL >> 20}M",
            memory=2048,
            upstream="test_vmalloc",
        ),
        needs=base.Needs(
            since="6.12",  # 6.1's own module lacks what the shim calls
        ),
    ),
)
