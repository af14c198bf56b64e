# SPDX-License-Identifier: GPL-2.0-only
"""The persistent-memory scenarios: their jobs and their results.

The host decides everything that depends on chance or size (the order of the
arms, where to compare), so that the seed in the result is enough to repeat a run.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from bulkmm import stats
from bulkmm.errors import GuestError, UsageError
from bulkmm.lab import state, work
from bulkmm.lab.choices import ALIGNS
from bulkmm.lab.families import breakdown
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.machine.vm import Hot, Outcome
from bulkmm.results import Check, Measured
from bulkmm.size import PAGE

COMPARE_ALL = 8 << 30  # up to this size every bind of `on` is compared
STRUCT_PAGE = 64
ARMS = ("absent", "off", "on")
SERVED = {"absent": 0, "off": 0, "on": 1}  # hits of a bind
PAIRS = (("off", "on"), ("absent", "on"), ("absent", "off"))
LIMIT = "limit"  # only storing as many bytes
PRIVATE = "private"  # device memory that no CPU can access
FAULTS, VERIFY = "pmem-faults", "pmem-verify"
HOOKS = "hook-faults"  # the scenario of lab/guest/hook.sh
STORM = "hook-storm"  # of lab/guest/storm.sh
KASAN = "hook-kasan"  # of lab/guest/hook.sh
KOBJECT = "hook-kobject"  # likewise
# results by name suffix: key of the time, event. No work is counted for unbind: it
# sleeps, and other tasks' work on its CPU would count.
TIMED = (("", "ns", "bind"), ("-bind", "bind_ns", "bind"), ("-unbind", "ns", "unbind"))
FIRST = "first"  # label of a bind that is not a sample
PROOF = "proof"
FLIPPED_WORD = 5


@dataclass(frozen=True)
class Work(work.Work):
    """A persistent-memory scenario with its options (see bulkmm.lab.work)."""

    kept = (("took", "took"),)
    visited = "bind"

    @property
    def pmem(self) -> int:
        return 0 if self.scenario.mode == PRIVATE else self.options.size

    @property
    def hot(self) -> Hot:
        return Hot(nodes=3, bare=True) if self.scenario.name == FAULTS else Hot()

    @property
    def cmdline(self) -> str:
        """Return kernel parameters of a storm.

        It holds CPUs, which is not to be reported: a machine that hangs is found by
        its silence. Freed memory is poisoned: a held walk that still uses it
        does not get away with it.
        """
        quiet = "nowatchdog rcupdate.rcu_cpu_stall_timeout=300"
        return f"{quiet} slab_debug=FP" if self.scenario.name == STORM else ""

    def check_options(self, arch: Arch = X86_64) -> None:
        super().check_options(arch)
        align = self.options.align
        if align not in arch.aligns:
            known = ", ".join(arch.aligns)
            raise UsageError(f"no alignment {align} on {arch.name}: {known}")
        if align == "1G" and self.options.size < 2 * ALIGNS[align]:
            raise UsageError("alignment 1G needs a size of at least 2G")

    def job(self, modules: list[str]) -> str:
        # before any kprobe of bulkmm_lab's
        first = "case_toggled_around_loads\n" if self.scenario.name == HOOKS else ""
        return first + super().job(modules)

    def lines(self) -> list[str]:
        if self.scenario.name == KASAN:
            return ["hook_kasan"]
        does = self._provoke if self.scenario.faults else self._measure
        lines = ["modules bulkmm_lab", *self._device(), *does()]
        # at the end of HOOKS ftrace is dead: it cannot be unloaded
        return (
            lines if self.scenario.name == HOOKS else [*lines, "must rmmod bulkmm_lab"]
        )

    def _device(self) -> list[str]:
        """Return how the device is made, which the module must not have seen."""
        mode, options = self.scenario.mode, self.options
        align = options.align if mode == "devdax" else "2M"
        device = f"namespace {mode} {options.map} {align}"
        if mode == PRIVATE:
            device = f"private {options.size}"
        known = [self._state("off"), self._state("absent")] if options.backend else []
        return [*known, device]

    def _state(self, arm: str) -> str:
        words = [] if arm == "absent" else [f"memmap={arm}"]
        if words and self.options.backend:
            words.append(f"memmap/backend={self.options.backend}")
        if words and self.options.workers:
            words.append(f"memmap/workers={self.options.workers}")
        return " ".join(["state", arm, *words])

    def _provoke(self) -> list[str]:
        """Return what injects every fault (lab/guest/faults.sh and others)."""
        jobs = {
            HOOKS: ["hook_faults"],
            KOBJECT: ["hook_kobject"],
            STORM: [f"storm {self.options.seconds}"],
            VERIFY: ["verify"],
            FAULTS: ["faults"],
        }
        return jobs[self.scenario.name]

    def _measure(self) -> list[str]:
        """Return the rounds in random order, a trace of each arm, and the proof."""
        options, chance = self.options, self.options.chance
        lines = ["bind reference", "snapshot", "unbind"]
        every, compared = options.size <= COMPARE_ALL, False
        for number in range(options.rounds):
            for arm in chance.sample(ARMS, len(ARMS)):
                lines += [self._state(arm), "bind round"]
                if arm == "on" and (every or not compared):
                    lines.append(f"compare round-{number}")
                    compared = True
                lines.append("unbind")
                if arm == ARMS[-1]:
                    lines.append("limit {} {}".format(*self._unit))
        for arm in ARMS:
            lines += [self._state(arm), "graphed"]
        return [*lines, *self._proof(), "state absent"]

    def _proof(self) -> list[str]:
        lines = [f"bind {PROOF}"]  # in the last of ARMS
        if self.options.break_one_word:
            return [*lines, "flip", "compare broken-on-purpose", "unbind"]
        lines += ["compare last", "flip", "compare flipped", "flip", "compare restored"]
        use = [] if self.scenario.mode == PRIVATE else ["use_device"]
        return [*lines, *use, "unbind"]

    @property
    def _unit(self) -> tuple[int, int]:
        """Return the pages of a compound page and the bytes written for it.

        With the memory map in RAM, the kernel shares the tail struct pages of a
        compound page: only two pages of 64 struct pages each are real (HVO).
        """
        devdax = self.scenario.mode == "devdax"
        unit = ALIGNS[self.options.align] // PAGE if devdax else 1
        real = 2 * PAGE if self.options.map == "mem" else unit * STRUCT_PAGE
        return unit, min(real, unit * STRUCT_PAGE)

    def written(self, outcome: Outcome) -> int:
        """Return the bytes of struct pages written by one bring-up."""
        unit, nbytes = self._unit
        return int(outcome.of("bind")[0]["pages"]) // unit * nbytes

    @property
    def quiet(self) -> float:
        return self.options.seconds if self.scenario.name == STORM else 0

    def results(self, outcome: Outcome) -> Measured:
        """Return the times: the function, bind and unbind, the first bring-up."""
        if self.scenario.faults:
            return [], []
        name, nbytes = self.scenario.name, self.written(outcome)
        pairs = (*PAIRS, (LIMIT, "on"))  # only the function has a limit
        parts = []
        for suffix, key, event in TIMED:
            taken = {
                arm: [
                    float(one[key]) for one in outcome.of(event, label="round", arm=arm)
                ]
                for arm in ARMS
            }
            if not suffix:
                taken[LIMIT] = [float(one["ns"]) for one in outcome.of(LIMIT)]
            parts.append(stats.rated(name + suffix, "ns", nbytes, taken, pairs))
        first = {"absent": [float(outcome.of("bind", label=FIRST)[0]["ns"])]}
        parts.append(stats.rated(f"{name}-first", "ns", nbytes, first, ()))
        for slot, suffix in enumerate(("", "-bind")):
            counted = _work(outcome, slot)
            parts.append(counting.rated(name + suffix, nbytes, counted, pairs))
        return stats.joined(parts)

    def checks(self, outcome: Outcome) -> list[Check]:
        if self.scenario.faults:
            return work.provoked(outcome)
        found = [compared(c) for c in outcome.of("compare")]
        if not self.options.break_one_word and self.scenario.mode != PRIVATE:
            proved = sum(int(one["bytes"]) for one in outcome.of("used"))
            detail = f"{proved} bytes read back"
            found.append(Check("device used afterwards", proved > 0, detail))
        if self.options.workers:
            found.append(self._shared(outcome))
        found.append(breakdown.check(outcome, ("bind", "unbind"), ARMS))
        binds = state.visits(outcome, "bind")
        return [
            *found,
            state.judge("counters", [(one, [expected(one)]) for one in binds]),
            state.attached(outcome, "memmap"),
        ]

    def _shared(self, outcome: Outcome) -> Check:
        """Check that several CPUs stamped where requested."""
        shared = sum(c.get("shared_bytes", 0) for c in state.unloaded(outcome))
        detail = f"{shared} bytes by others than the caller"
        ok = bool(shared) == (self.options.workers > 1)
        return Check(f"stamped by {self.options.workers} CPUs", ok, detail)

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        fell: Counter[str] = Counter()
        for record in state.records(outcome, state.UNLOAD):
            fell.update(record.paths["memmap"].fallbacks)
        return {
            **super().facts(outcome),
            "backends": next(
                (r.files["memmap/backend"] for r in state.records(outcome)), ""
            ),
            "fallbacks": dict(fell),
            "breakdown": breakdown.of(outcome),
        }


def _work(outcome: Outcome, slot: int) -> dict[str, list[counting.Work]]:
    """Return the work of each arm's samples: the function or the whole bind."""
    found: dict[str, list[counting.Work]] = {arm: [] for arm in ARMS}
    for event, (record,) in counting.of(outcome, "bind", LIMIT):
        arm = LIMIT if event["event"] == LIMIT else event["arm"]
        if event.get("label", "round") == "round" and not (arm == LIMIT and slot):
            found.setdefault(arm, []).append(counting.slot(record, slot))
    return found


def expected(bind: state.Visit, many: int = 1) -> state.Expect:
    """Return what is expected of bringing up many times."""
    return state.Expect("memmap", bind.arm, many * SERVED[bind.arm])


def compared(event: dict[str, Any]) -> Check:
    """Check one comparison; "flipped" must find one word."""
    label, verdict = event["label"], event["verdict"]
    said = dict(re.findall(r"(\w+)=(\w+)", verdict))
    try:
        pages, words = int(said["pages"]), int(said["words_differ"])
        blocks = int(said["pageblocks_differ"])
    except (KeyError, ValueError) as error:
        raise GuestError(f"the comparison said {verdict!r}") from error
    name = f"struct pages identical ({label})"
    ok = pages > 0 and words == 0 and blocks == 0
    if label == "flipped":
        name = "a flipped word is seen"
        place = int(said["first_word"]) == FLIPPED_WORD
        ok = pages > 0 and words == 1 and blocks == 0 and place
    detail = f"{pages} pages, {words} words and {blocks} pageblocks differ"
    if words:
        detail += (
            f"; first: PFN {said['first_pfn']} word {said['first_word']}, "
            f"was {said['was']}, is {said['is']}"
        )
    return Check(name, ok, detail)
