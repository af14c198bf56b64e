# SPDX-License-Identifier: GPL-2.0-only
"""The hotplug scenarios: memory is added as ordinary RAM and removed.

States of the module are compared by what the guest's kernel reports for a node
that holds only this memory (lab/guest/hotplug.sh).
"""

import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from bulkmm.lab import state, work
from bulkmm.lab.families import breakdown
from bulkmm.lab.families.pmem import ARMS, PAIRS, STRUCT_PAGE
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.scenario.hotplug import MOST
from bulkmm.results import Check
from bulkmm.size import MIB, PAGE

KMEM, VIRTIO, CXL = "kmem", "virtio", "cxl"  # modes of scenarios
BLOCK = 128 * MIB
STEPS = 12  # of the proof: single blocks that are removed and added
REDUCED = 4 << 30  # bytes; up to this size a run is for CI
USED = 192  # MiB filled and migrated
USED_REDUCED = 16  # of CXL memory too: QEMU emulates each access to it
ROUND, PROOF, GRAPH = "round", "proof", "graph"
BOTH = "both"  # an arm: `on`, and path alloc in mode auto
EVERY = (*ARMS, BOTH)
SERVED = {"on", BOTH}  # arms with the path on
KEPT = "kept"  # its visit in which nothing is too large for the cache
ALLOC_HOOKS = 2
# path alloc is not on every kernel
STATES = {
    "absent": "",
    "off": "hotplug=off alloc=off?",
    "on": "hotplug=on alloc=off?",
    BOTH: "hotplug=on alloc=auto?",
}
DEVICES = {KMEM: "hot_device", VIRTIO: "hot_virtio 1", CXL: "hot_cxl"}
# results by name suffix: key of the time
TIMED = (("", "plug_ns"), ("-unplug", "unplug_ns"))


@dataclass(frozen=True)
class Work(work.Work):
    """A hotplug scenario with its options (see bulkmm.lab.work)."""

    kept = (("breakdown", breakdown.of),)
    visited = "hot-visit"

    @property
    def _offline_first(self) -> bool:
        """Return whether the guest offlines memory before it returns it.

        virtio-mem offlines in parts of a block and waits for all CPUs so often that
        emulation takes a second per block: too long for reduced runs.
        """
        return self.scenario.mode != VIRTIO or self.reduced

    @property
    def reduced(self) -> bool:
        """Return whether the run is reduced, for CI."""
        return bool(self.options.size <= REDUCED)

    @property
    def arms(self) -> tuple[str, ...]:
        return ARMS if self.reduced else EVERY

    @property
    def plan(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the kinds of visit, each with its arms in random order."""
        rounds = [(ROUND, self.arms)] * self.options.rounds
        return [*rounds, (PROOF, EVERY), (GRAPH, self.arms)]

    def lines(self) -> list[str]:
        chance = self.options.chance
        mode = self.scenario.mode
        lines = [
            f"KIND={mode} SIZE={self.options.size >> 10} ONLINE=online_movable",
            f"OFFLINE={'1' if self._offline_first else ''}",
            "hot_policy $ONLINE",
            DEVICES[mode],
            # loaded late: it must not mark the work of the device just made
            "modules bulkmm_lab",
            "hot_visit first '' ''",  # faults in the host's pages
            *self._middle(chance),
        ]
        more = {ROUND: "'' ''", PROOF: "'' middle", GRAPH: "1 ''"}
        for label, arms in self.plan:
            for arm in chance.sample(arms, len(arms)):
                lines.append(f"state {arm} {STATES[arm]}".rstrip())
                lines.append(f"hot_visit {label} {more[label]}")
        lines.append(f"state {BOTH} {STATES[BOTH]} clear/cached_max={MOST}")
        lines.append(f"hot_visit {KEPT} '' ''")
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def _middle(self, chance: random.Random) -> list[str]:
        """Return the proof's steps with plugged memory, the same in every arm."""
        blocks = self.options.size // BLOCK
        places = chance.sample(range(1, blocks), min(STEPS, blocks - 1))
        lines = ["middle() {"]
        # several blocks are removed at a time and added in another order
        for some in (places[0::3], places[1::3], places[2::3]):
            lines += [f"hot_block offline {place}" for place in some]
            lines += [
                f"hot_block online_movable {place}"
                for place in chance.sample(some, len(some))
            ]
        if self.options.break_one_word:
            lines += ['[ "$ARM" != on ] || hot_write offline 1']  # no step of its own
        # both ends of the zone, then the rest, from the end
        for place in (0, blocks - 1, blocks - 2):
            lines += [f"hot_block offline {place}"]
        for place in (blocks - 1, 0, blocks - 2):
            lines += [f"hot_block online_movable {place}"]
        few = self.reduced or self.scenario.mode == CXL
        return [*lines, f"hot_use {USED_REDUCED if few else USED}", "}"]

    def measured(self, outcome: Outcome) -> Iterable[work.Measure]:
        name, pairs = self.scenario.name, (*PAIRS, ("absent", BOTH))
        for slot, (suffix, key) in enumerate(TIMED):
            taken = work.samples(outcome, "hot-visit", key, self.arms, label=ROUND)
            seen = counting.by(outcome, ["hot-visit"], _arm, slot)
            counted = {arm: seen[arm] for arm in ARMS}
            size = self.options.size
            yield work.Measure(name + suffix, size, pairs, taken, counted)

    def checks(self, outcome: Outcome) -> list[Check]:
        return [
            *_same(outcome, dict(self.plan)),
            _contiguous(outcome),
            _used(outcome),
            state.judge("counters", state.visits(outcome, "hot-visit"), _expected),
            state.attached(outcome, "hotplug"),
            self._cleared(outcome),
            breakdown.check(outcome, ("plug", "unplug"), self.arms),
        ]

    def _cleared(self, outcome: Outcome) -> Check:
        """Check that struct pages bypassed the cache where they exceed it.

        They are most of what the allocator clears meanwhile: all but those of the
        first section on some devices.
        """
        name = "struct pages cleared as their size wants it"
        visits = [v for v in state.visits(outcome, "hot-visit") if v.arm == BOTH]
        if any(
            sum(hook.attached for hook in v.path("alloc").hooks) != ALLOC_HOOKS
            for v in visits
        ):
            cleared = sum(v.moved("alloc", "bytes") for v in visits)
            return Check(name, not cleared, "alloc does not attach on this kernel")
        streamed = sorted(v.moved("alloc", "streamed") >> 20 for v in visits) or [0]
        detail = f"{streamed[0]} to {streamed[-1]} MiB bypassed the cache"
        seen = {v.event["label"] for v in visits} >= {PROOF, KEPT}
        return Check(name, seen and all(map(self._cleared_right, visits)), detail)

    def _cleared_right(self, visit: state.Visit) -> bool:
        """Return whether a visit's struct pages were cleared in the expected way."""
        least = self.options.size // PAGE * STRUCT_PAGE // 2
        streamed = visit.moved("alloc", "streamed")
        added = BLOCK if self.scenario.mode == VIRTIO else self.options.size
        most = visit.path("clear").settings.get("cached_max", 0)
        bypasses = added // PAGE * STRUCT_PAGE > most
        right = streamed >= least if bypasses else not streamed
        return right and visit.moved("alloc", "bytes") >= least


def _arm(event: dict[str, Any]) -> str | None:
    """Return whose round a visit was.

    Not of `both`: the kernel clears with string instructions, which count once.
    """
    return event["arm"] if event["label"] == ROUND and event["arm"] in ARMS else None


def _same(outcome: Outcome, plan: dict[str, tuple[str, ...]]) -> list[Check]:
    """Check for each kind of visit that every step ends as without the module."""
    found = []
    for label, arms in plan.items():
        seen: dict[str, list[tuple[str, ...]]] = {arm: [] for arm in arms}
        for event in outcome.of("hot-state", label=label):
            step = tuple(str(event[key]) for key in ("step", "zones", "lists"))
            seen[event["arm"]].append(step)
        wanted = seen["absent"]
        wrong = [*filter(None, (_first(arm, wanted, seen[arm]) for arm in arms))]
        detail = f"{len(wanted)} steps in {len(arms)} arms"
        detail += f"; first differing: {', '.join(wrong)}" if wrong else ""
        ok = bool(wanted) and not wrong
        found.append(Check(f"zones and free lists as without ({label})", ok, detail))
    return found


def _first(arm: str, wanted: list[tuple[str, ...]], seen: list[tuple[str, ...]]) -> str:
    """Name the first step at which an arm differs from what was wanted."""
    for one, other in zip_longest(wanted, seen, fillvalue=("nothing",)):
        if one != other:
            return f"{arm}, {other[0]}"
    return ""


def _contiguous(outcome: Outcome) -> Check:
    """Check that the hot node's zones were seen both contiguous and not."""
    words = [str(event["zones"]).split() for event in outcome.of("hot-state")]
    zones = [one[at : at + 6] for one in words for at in range(0, len(one), 6)]
    said = {zone[5] for zone in zones if zone[0] == "1"}
    ok = said == {"0", "1"}
    return Check("zones contiguous and not", ok, f"seen: {sorted(said)}")


def _used(outcome: Outcome) -> Check:
    used = outcome.of("hot-used")
    arms = {event["arm"] for event in used if int(event["moved"]) > 0}
    proved = sum(int(event["bytes"]) for event in used)
    moved = sum(int(event["moved"]) for event in used)
    detail = f"{proved} bytes read back, {moved} pages of them moved"
    return Check("memory used, moved and read back", arms == {*EVERY}, detail)


def _expected(visit: state.Visit) -> state.Expect:
    """Return what is expected: walks are saved where the path is on, only there."""
    on = visit.arm in SERVED
    most = sys.maxsize if on else 0
    return state.Expect("hotplug", "on" if on else "off", int(on), most, others=True)
