# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path hotplug: memory is added as ordinary RAM and removed.

States of the module are compared by what the guest's kernel reports for a node
that holds only this memory (lab/guest/hotplug.sh).
"""

import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from bulkmm.results.model import Check
from bulkmm.shell.size import GIB, MIB, PAGE
from lab import state
from lab.machine.kernel_kinds import PATCHED
from lab.machine.vm import Hot, Outcome
from lab.scenario import base
from lab.scenario.base import Event, Measure, Scenario
from lab.scenario.memmap import ARMS, PAIRS, STRUCT_PAGE

ZONES = (
    "after every step the node's zones, free lists and page types as without the "
    "module, and if the kernel takes them for contiguous; memory filled, moved away "
    "with its blocks, and read back"
)
MOST = 96 * GIB  # whose struct pages fit into the guest's memory
ONCE = ("--rounds 1",)
KMEM, VIRTIO, CXL = "kmem", "virtio", "cxl"  # modes of scenarios
BLOCK = 128 * MIB
STEPS = 12  # of the proof: single blocks that are removed and added
REDUCED = 4 << 30  # bytes; up to this size a run is for CI
USED = 192  # MiB filled and migrated
USED_REDUCED = 16  # of CXL memory too: QEMU emulates each access to it
ROUND, PROOF = "round", "proof"
WITH_ALLOC = "both"  # an arm: `on`, and path alloc in mode auto
ALL_ARMS = (*ARMS, WITH_ALLOC)
SERVING = {"on", WITH_ALLOC}  # arms with the path on
IN_CACHE = "kept"  # its visit in which nothing is too large for the cache
# path alloc is not on every kernel
STATES = {
    "absent": "",
    "off": "hotplug=off alloc=off?",
    "on": "hotplug=on alloc=off?",
    WITH_ALLOC: "hotplug=on alloc=auto?",
}
DEVICES = {KMEM: "hot_device", VIRTIO: "hot_virtio 1", CXL: "hot_cxl"}
Step = tuple[str, ...]  # of a visit: its name, and the state after it
# results by name suffix: key of the time
TIMED = (("", "plug_ns"), ("-unplug", "unplug_ns"))


@dataclass(frozen=True, kw_only=True)
class Hotplug(Scenario):
    """Memory comes and goes; its node's zones are compared after every step."""

    family: str = "hotplug"
    path: str = "hotplug"
    plugs: bool = True
    check: str = ZONES
    takes: tuple[str, ...] = ("size", "rounds", "seed", "break_one_word")
    size: int = 4 * GIB
    sizes: tuple[int, int, int] = (GIB, MOST, 128 * MIB)
    # Debian's default: path alloc is about it
    machine: base.Machine = base.Machine(cmdline="init_on_alloc=1")
    runs: base.Runs = base.Runs(full=("--rounds 2",))
    mode: str  # the kind of device

    visited = "hot-visit"

    @property
    def _offline_first(self) -> bool:
        """Return whether the guest offlines memory before it returns it.

        virtio-mem offlines in parts of a block and waits for all CPUs so often that
        emulation takes a second per block: too long for reduced runs.
        """
        return self.mode != VIRTIO or self.reduced

    @property
    def reduced(self) -> bool:
        """Return whether the run is reduced, for CI."""
        return bool(self.options.size <= REDUCED)

    @property
    def arms(self) -> tuple[str, ...]:
        return ARMS if self.reduced else ALL_ARMS

    @property
    def plan(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the kinds of visit, each with its arms in random order."""
        rounds = [(ROUND, self.arms)] * self.options.rounds
        return [*rounds, (PROOF, ALL_ARMS)]

    def lines(self) -> list[str]:
        chance = self.chance
        mode = self.mode
        lines = [
            f"KIND={mode} SIZE={self.options.size >> 10} ONLINE=online_movable",
            f"OFFLINE={'1' if self._offline_first else ''}",
            "hot_policy $ONLINE",
            DEVICES[mode],
            # loaded late: it is not to time the device just made
            "modules bulkmm_lab",
            "hot_visit first ''",  # faults in the host's pages
            *self._middle(chance),
        ]
        more = {ROUND: "''", PROOF: "middle"}
        for label, arms in self.plan:
            for arm in chance.sample(arms, len(arms)):
                lines.append(f"state {arm} {STATES[arm]}".rstrip())
                lines.append(f"hot_visit {label} {more[label]}")
        lines.append(f"state {WITH_ALLOC} {STATES[WITH_ALLOC]} clear/cached_max={MOST}")
        lines.append(f"hot_visit {IN_CACHE} ''")
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def _middle(self, chance: random.Random) -> list[str]:
        """Return the proof's steps with plugged memory, the same in every arm."""
        blocks = self.options.size // BLOCK
        places = chance.sample(range(1, blocks), min(STEPS, blocks - 1))
        lines = ["middle() {"]
        # several blocks are removed at a time and added in another order
        for group in (places[0::3], places[1::3], places[2::3]):
            lines += [f"hot_block offline {place}" for place in group]
            lines += [
                f"hot_block online_movable {place}"
                for place in chance.sample(group, len(group))
            ]
        if self.options.break_one_word:
            lines += ['[ "$ARM" != on ] || hot_write offline 1']  # no step of its own
        # both ends of the zone, then the rest, from the end
        for place in (0, blocks - 1, blocks - 2):
            lines += [f"hot_block offline {place}"]
        for place in (blocks - 1, 0, blocks - 2):
            lines += [f"hot_block online_movable {place}"]
        few = self.reduced or self.mode == CXL
        return [*lines, f"hot_use {USED_REDUCED if few else USED}", "}"]

    def measurements(self, outcome: Outcome) -> Iterable[Measure]:
        pairs = (*PAIRS, ("absent", WITH_ALLOC))
        for suffix, key in TIMED:
            times = base.collect_samples(
                outcome, "hot-visit", key, self.arms, label=ROUND
            )
            yield Measure(self.named_by_size + suffix, self.options.size, pairs, times)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        for label, arms in dict(self.plan).items():
            yield _compare_steps(label, arms, outcome.of("hot-state", label=label))
        yield _contiguous(outcome)
        used = outcome.of("hot-used")
        ok = {event["arm"] for event in used if event["moved"]} == {*ALL_ARMS}
        yield base.check_values("memory used, moved and read back", used, {}, ok=ok)
        visits = state.list_visits(outcome, "hot-visit")
        yield state.judge_visits("counters", visits, _expected)
        yield state.check_attached(outcome, "hotplug")
        with_alloc = [visit for visit in visits if visit.arm == WITH_ALLOC]
        by_label = base.group_items(with_alloc, lambda visit: str(visit.event["label"]))
        for label in dict.fromkeys((PROOF, IN_CACHE, *by_label)):
            name = f"struct pages cleared as their size wants it ({label})"
            yield state.judge_visits(name, by_label.get(label, []), self._cleared)

    def _cleared(self, visit: state.Visit) -> tuple[state.Expect, ...]:
        """Return what is expected: struct pages bypass the cache if they exceed it.

        They are most of what the allocator clears meanwhile: all but those of the
        first section on some devices.
        """
        hooks = visit.path("alloc").hooks
        if hooks and not all(hook.attached for hook in hooks):  # not on this kernel
            return (_alloc("bytes", 0),)
        added = BLOCK if self.mode == VIRTIO else self.options.size
        most = visit.path("clear").settings.get("cached_max", 0)
        bypass = added // PAGE * STRUCT_PAGE > most
        least = self.options.size // PAGE * STRUCT_PAGE // 2
        return _alloc("bytes", least), _alloc("streamed", least * bypass)


def _alloc(counter: str, least: int) -> state.Expect:
    """Return what is expected of a counter of path alloc: so many or more, or none."""
    most = sys.maxsize if least else 0
    return state.Expect("alloc", None, least, most, None, counter)


def _compare_steps(label: str, arms: Iterable[str], events: list[Event]) -> Check:
    """Check for a kind of visit that every step ends as without the module."""
    steps_by_arm: dict[str, list[Step]] = {arm: [] for arm in arms}
    for event in events:
        step = tuple(str(event[key]) for key in ("step", "zones", "lists"))
        steps_by_arm[event["arm"]].append(step)
    wanted = steps_by_arm["absent"]
    wrong = [
        f"{arm}, {_first(wanted, steps)}"
        for arm, steps in steps_by_arm.items()
        if steps != wanted
    ]
    detail = f"{len(wanted)} steps in {len(steps_by_arm)} arms"
    detail += f"; first differing: {', '.join(wrong)}" if wrong else ""
    name = f"zones and free lists as without ({label})"
    return Check(name, bool(wanted) and not wrong, detail)


def _first(wanted: Sequence[Step], actual: Sequence[Step]) -> str:
    """Name the first step that differs from what was wanted."""
    pairs = zip_longest(wanted, actual, fillvalue=("nothing",))
    return next(other[0] for one, other in pairs if one != other)


def _contiguous(outcome: Outcome) -> Check:
    """Check that the hot node's zones were seen both contiguous and not."""
    words = [str(event["zones"]).split() for event in outcome.of("hot-state")]
    zones = [fields[at : at + 6] for fields in words for at in range(0, len(fields), 6)]
    flags = {zone[5] for zone in zones if zone[0] == "1"}
    ok = flags == {"0", "1"}
    return Check("zones contiguous and not", ok, f"seen: {sorted(flags)}")


def _expected(visit: state.Visit) -> state.Expect:
    """Return what is expected: walks are saved where the path is on, only there."""
    on = visit.arm in SERVING
    most = sys.maxsize if on else 0
    return state.Expect("hotplug", "on" if on else "off", int(on), most, None)


_kmem = partial(
    Hotplug,
    mode="kmem",
    machine=base.Machine(
        cmdline="init_on_alloc=1",
        modules=(*base.NVDIMM, "kmem"),
        hot=Hot(nodes=2),
        countable=True,
    ),
)
_virtio = partial(
    Hotplug,
    mode="virtio",
    machine=base.Machine(
        cmdline="init_on_alloc=1",
        modules=("virtio_mem",),
        hot=Hot(plug=True, node=1, nodes=2),
    ),
    published=("a series of 2026, 512 GB: plug 36 -> 7 s, unplug 36 -> 9 s",),
)


SCENARIOS = (
    _kmem(
        "hotplug-kmem-4g",
        "a DAX device of 4 GiB that becomes ordinary memory and ceases to be, by kmem: "
        "the whole operation",
        runs=base.Runs(
            full=("--rounds 2", "--size 32G --cpus 1"),
            quick=ONCE,
            debug=dict.fromkeys(
                ("debug", "kasan", "cachyos", "clang-cfi", *PATCHED), ONCE
            ),
        ),
        seconds=40,
    ),
    _virtio(
        "hotplug-virtio-mem-4g",
        "4 GiB of virtio-mem plugged and unplugged: the whole operation, and by "
        "function",
        runs=base.Runs(
            full=("--rounds 2", "--size 32G --rounds 2"),
            debug={"debug": ONCE, "debug-kobject": ONCE},
        ),
        seconds=120,
    ),
    Hotplug(
        "hotplug-cxl-4g",
        "a CXL device of 4 GiB whose memory becomes ordinary memory and ceases to be, "
        "by kmem: the whole operation",
        mode="cxl",
        sizes=(GIB, MOST, 256 * MIB),
        machine=base.Machine(
            cmdline="init_on_alloc=1",
            hot=Hot(cxl=True),
            modules=("cxl_acpi", "cxl_pci", "cxl_mem", "dax_cxl", "kmem"),
            # no region starts where the kernel cannot flush caches, as in a guest
            cpu="max,hypervisor=off",
            countable=True,
        ),
        needs=base.Needs(
            since="6.12",  # 6.1 has no dax_cxl
            lacking_debug=base.LACKING,
            x86_only="QEMU has CXL devices",
        ),
        seconds=60,
    ),
    Scenario(
        "hotplug-faults",
        "every fault of the hotplug path is provoked in a test build",
        "after every step the zones as without the module; a wrong answer must be seen",
        family="hotplug",
        path="hotplug",
        plugs=True,
        does=(
            "KIND=faults SIZE=$(({size} >> 10)) ONLINE=online_movable OFFLINE=1",
            "modules bulkmm_lab",
            "hot_faults",
            "must rmmod bulkmm_lab",
        ),
        machine=base.Machine(
            # faults are injected on a node that has boot memory too
            hot=Hot(plug=True, nodes=2),
            modules=(*base.NVDIMM, "kmem", "virtio_mem"),
            faults=True,
        ),
        takes=("size",),
        size=4 * GIB,
        sizes=(GIB, MOST, 128 * MIB),
        runs=base.Runs(
            debug={"debug": ("",), "kasan": ("",)},
        ),
        seconds=120,
        warns=True,
    ),
)
