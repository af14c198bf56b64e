# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of device-private memory: path memmap without an altmap."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bulkmm.control.requirements import is_at_least
from bulkmm.results.model import Check
from bulkmm.shell.size import GIB, PAGE
from lab import state
from lab.machine.kernel_kinds import PATCHED
from lab.machine.kernels import Choice
from lab.machine.vm import Outcome
from lab.scenario import base
from lab.scenario.base import Measure, Scenario
from lab.scenario.memmap import (
    ARMS,
    CHECK,
    PAIRS,
    STRUCT_PAGE,
    TIMED,
    check_comparison,
    expect_binds,
)

STAMPING = ARMS[-1]
CASES = 4  # of lab/guest/bmmhmm.c
# one chunk per device when the driver is loaded, one for the first huge page,
# one after a device has released all its memory
CHUNKS = 4
CHUNK = 256 << 20  # bytes
SEEDS = 254  # of the words written: one byte
STOCK_SINCE = "7.3"  # Debian's, have CONFIG_DEVICE_PRIVATE
DEVICES = 10  # of a node with GPUs, say


@dataclass(frozen=True, kw_only=True)
class Hmm(Scenario):
    """The kernel's own lib/test_hmm.c brings device-private memory up.

    The client is unaware of the module: two devices, each with chunks of memory that
    memremap_pages() maps and to which pages of a process migrate.
    """

    visited = "hmm-visit"
    every_arm = ARMS

    def lines(self) -> list[str]:
        chance = self.chance
        broken = " broken" if self.options.break_one_word else ""
        lines = ["modules bulkmm_lab"]
        for arm in self.each_round(self.arms, chance):
            lines.append(self.state(arm))
            lines.append(f"hmm_visit {chance.randint(1, SEEDS)}{broken}")
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        visits, cases = outcome.of("hmm-visit"), outcome.of("hmm-case")
        for name, events in base.group_items(
            cases, lambda event: str(event["name"])
        ).items():
            yield base.check_values(f"test_hmm: {name}", events, {"wrong": 0})
        rounds = self.options.rounds
        counts = [
            Counter(event["arm"] for event in events) for events in (visits, cases)
        ]
        ok = counts == [
            dict.fromkeys(self.arms, many) for many in (rounds, rounds * CASES)
        ]
        yield Check(base.WHOLE, ok, f"{len(cases)} cases in {len(visits)} visits")
        chunks = {"calls": CHUNKS, "pages": CHUNKS * CHUNK // PAGE}
        yield base.check_values("device memory brought up", visits, chunks)
        yield state.judge_visits(
            "counters",
            state.list_visits(outcome, "hmm-visit"),
            lambda visit: expect_binds(visit, visit.event["calls"]),
        )
        if STAMPING in self.arms:
            yield state.check_attached(outcome, "memmap")


class Private(Scenario):
    """Devices of device-private memory that are up at once."""

    visited = "bind"
    every_arm = ARMS

    def lacking(self, kernel: Choice) -> str:
        if not kernel.kind and not is_at_least(kernel.series, STOCK_SINCE):
            return (
                f"{self.name} needs device-private memory, which stock kernels have "
                f"since {STOCK_SINCE}; not {kernel.name}"
            )
        return super().lacking(kernel)

    def lines(self) -> list[str]:
        """Return the rounds: the devices come up one by one, and go.

        One of them, at the same place each time, is compared with what the kernel alone
        made of it first, before the next comes up.
        """
        chance = self.chance
        place = chance.randrange(DEVICES)
        lines = ["modules bulkmm_lab", "state absent"]
        lines += self._visit("first", place, ["snapshot"])
        for turn, arm in enumerate(self.each_round(self.arms, chance)):
            lines.append(self.state(arm))
            lines += self._visit("round", place, [f"compare round-{turn}"])
        lines.append(self.state(self.arms[-1]))
        proof = ["flip", "compare flipped", "flip", "compare restored"]
        if self.options.break_one_word:
            proof = ["flip", "compare broken-on-purpose"]
        lines += self._visit("proof", place, proof)
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def _visit(self, label: str, place: int, proof: list[str]) -> list[str]:
        """Return the lines that bring all up, with the proof behind one of them."""
        lines = [f"private_node {self.options.size}"]
        for number in range(DEVICES):
            lines.append(f"bind {label}")
            lines += proof if number == place else []
        return [*lines, *["unbind"] * DEVICES]

    def more_memory(self, *, poisons: bool) -> int:
        del poisons
        # struct pages of all, and those of one that are kept
        return (DEVICES + 1) * self.struct_bytes

    @property
    def struct_bytes(self) -> int:
        """Return the bytes of a device's struct pages."""
        return int(self.options.size) // PAGE * STRUCT_PAGE

    def measurements(self, outcome: Outcome) -> Iterable[Measure]:
        """Return the function and the bind, of each device."""
        for suffix, key, event in TIMED:
            times = base.collect_samples(outcome, event, key, self.arms, label="round")
            yield Measure(self.named_by_size + suffix, self.struct_bytes, PAIRS, times)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        comparisons = outcome.of("compare")
        yield from map(check_comparison, comparisons)
        yield base.check_reports(self.lines(), compare=len(comparisons))
        pages = self.options.size // PAGE
        yield base.check_values("whole devices", outcome.of("bind"), {"pages": pages})
        yield state.judge_visits(
            "counters", state.list_visits(outcome, "bind"), expect_binds
        )
        if STAMPING in self.arms:
            yield state.check_attached(outcome, "memmap")


SCENARIOS = (
    Hmm(
        "upstream-hmm",
        "the running kernel's own lib/test_hmm.c, a driver of device-private memory, "
        "to which pages migrate and from which they come back",
        "every word, every page where it belongs, without the module and in every "
        "mode; a planted word must be seen; hits counted",
        family="hmm",
        path="memmap",
        takes=("rounds", "seed", "break_one_word", "arms"),
        runs=base.Runs(
            debug={
                "debug": ("--rounds 1",),
                **dict.fromkeys(PATCHED, ("--rounds 1 --arm absent",)),
            },
        ),
        seconds=60,
        machine=base.Machine(
            memory=1024,
            upstream="test_hmm",
        ),
        needs=base.Needs(
            since="7.3",
        ),
    ),
    Private(
        "hmm-private-64g",
        f"{DEVICES} devices of device-private memory, up at once: "
        "memmap_init_zone_device() and all of memremap_pages()",
        CHECK,
        family="hmm",
        path="memmap",
        takes=("size", "rounds", "seed", "break_one_word", "arms"),
        size=64 * GIB,
        sizes=(GIB, 64 * GIB, GIB),  # what is served, and the guest has memory for
        runs=base.Runs(
            rounds=1,
            full=("--size 4G",),
            debug={
                "debug": ("--size 1G",),
                "patched": ("--arm absent",),
                **dict.fromkeys(
                    [kind for kind in PATCHED if kind != "patched"],
                    ("--size 4G --arm absent",),
                ),
            },
        ),
        seconds=300,
        machine=base.Machine(
            memory=14336,
        ),
    ),
)
