# SPDX-License-Identifier: GPL-2.0-only
"""The persistent-memory scenarios: their jobs and their results.

The host decides everything that depends on chance or size (the order of the
arms, where to compare), so that the seed in the result is enough to repeat a run.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bulkmm.errors import GuestError, UsageError
from bulkmm.lab import state, work
from bulkmm.lab.choices import ALIGNS
from bulkmm.lab.families import breakdown
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check
from bulkmm.size import PAGE

COMPARE_ALL = 8 << 30  # up to this size every bind of `on` is compared
STRUCT_PAGE = 64
ARMS = ("absent", "off", "on")
SERVED = {"absent": 0, "off": 0, "on": 1}  # hits of a bind
PAIRS = (("off", "on"), ("absent", "on"), ("absent", "off"))
LIMIT = "limit"  # only storing as many bytes
PRIVATE = "private"  # mode: device memory that no CPU can access
# results by name suffix: key of the time, event, arms whose work is counted. None is
# of an unbind: it sleeps, and other tasks' work on its CPU would count.
TIMED = (
    ("", "ns", "bind", (*ARMS, LIMIT)),
    ("-bind", "bind_ns", "bind", ARMS),
    ("-unbind", "ns", "unbind", ()),
)
FLIPPED_WORD = 5


@dataclass(frozen=True)
class Work(work.Work):
    """A persistent-memory scenario with its options (see bulkmm.lab.work)."""

    kept = (("breakdown", breakdown.of),)
    visited = "bind"

    def check_options(self, arch: Arch = X86_64) -> None:
        super().check_options(arch)
        align = self.options.align
        if align not in arch.aligns:
            known = ", ".join(arch.aligns)
            raise UsageError(f"no alignment {align} on {arch.name}: {known}")
        if align == "1G" and self.options.size < 2 * ALIGNS[align]:
            raise UsageError("alignment 1G needs a size of at least 2G")

    def lines(self) -> list[str]:
        """Return the rounds in random order, a trace of each arm, and the proof.

        The device is made where the module has not seen it.
        """
        options, private = self.options, self.scenario.mode == PRIVATE
        align = options.align if self.scenario.mode == "devdax" else "2M"
        lines = ["modules bulkmm_lab"]
        lines += [self._state("off"), "state absent"] if options.backend else []
        lines.append(
            f"private {options.size}"
            if private
            else f"namespace {self.scenario.mode} {options.map} {align}"
        )
        lines += ["bind reference", "snapshot", "unbind"]
        for turn, arm in enumerate(self.rounds(ARMS)):
            lines += [self._state(arm), "bind round"]
            number = turn // len(ARMS)
            if arm == "on" and (options.size <= COMPARE_ALL or not number):
                lines.append(f"compare round-{number}")
            lines.append("unbind")
            if arm == "on":
                lines.append("limit {} {}".format(*self._unit))
        for arm in ARMS:
            lines += [self._state(arm), "graphed"]
        lines.append("bind proof")  # in the last of ARMS
        if options.break_one_word:
            lines += ["flip", "compare broken-on-purpose"]
        else:
            lines += ["compare last", "flip", "compare flipped"]
            lines += ["flip", "compare restored", *([] if private else ["use_device"])]
        return [*lines, "unbind", "state absent", "must rmmod bulkmm_lab"]

    def _state(self, arm: str) -> str:
        asked = ((name, getattr(self.options, name)) for name in ("backend", "workers"))
        return self.state(arm, *(f"memmap/{name}={one}" for name, one in asked if one))

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

    def measured(self, outcome: Outcome) -> Iterable[work.Measure]:
        """Return the function, bind and unbind, the first bring-up."""
        name, (unit, nbytes) = self.scenario.name, self._unit
        nbytes *= int(outcome.of("bind")[0]["pages"]) // unit
        pairs = (*PAIRS, (LIMIT, "on"))  # only the function has a limit
        for slot, (suffix, key, event, arms) in enumerate(TIMED):
            taken = work.samples(outcome, event, key, ARMS, label="round")
            seen = counting.by(outcome, ("bind", LIMIT), _arm, slot) if arms else {}
            counted = {arm: seen[arm] for arm in arms}
            if not slot:
                taken[LIMIT] = work.values(outcome.of(LIMIT), "ns")
            yield work.Measure(name + suffix, nbytes, pairs, taken, counted)
        first = {"absent": [float(outcome.of("bind", label="first")[0]["ns"])]}
        yield work.Measure(f"{name}-first", nbytes, (), first)

    def checks(self, outcome: Outcome) -> list[Check]:
        found = [compared(c) for c in outcome.of("compare")]
        if not self.options.break_one_word and self.scenario.mode != PRIVATE:
            proved = sum(int(one["bytes"]) for one in outcome.of("used"))
            detail = f"{proved} bytes read back"
            found.append(Check("device used afterwards", proved > 0, detail))
        if self.options.workers:
            found.append(self._shared(outcome))
        found.append(breakdown.check(outcome, ("bind", "unbind"), ARMS))
        return [
            *found,
            state.judge("counters", state.visits(outcome, "bind"), expected),
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
        for record in state.records(outcome, when=state.UNLOAD):
            fell.update(record.paths["memmap"].fallbacks)
        return {
            **super().facts(outcome),
            "backends": next(
                (r.files["memmap/backend"] for r in state.records(outcome)), ""
            ),
            "fallbacks": dict(fell),
        }


def _arm(event: dict[str, Any]) -> str | None:
    """Return whose sample an event is."""
    if event["event"] == LIMIT:
        return LIMIT
    return str(event["arm"]) if event["label"] == "round" else None


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
