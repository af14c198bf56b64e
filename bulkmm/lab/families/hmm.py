# SPDX-License-Identifier: GPL-2.0-only
"""upstream-hmm: the kernel's own lib/test_hmm.c brings up device-private memory.

The client is unaware of the module: two devices, each with chunks of memory that
memremap_pages() maps and to which pages of a process migrate.
"""

from collections import Counter
from dataclasses import dataclass

from bulkmm.lab import state, work
from bulkmm.lab.families.huge import right
from bulkmm.lab.families.pmem import ARMS, expected
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check
from bulkmm.size import PAGE

CASES = 4  # of lab/guest/bmmhmm.c
# one chunk per device when the driver is loaded, one for the first huge page,
# one after a device has released all its memory
CHUNKS = 4
CHUNK = 256 << 20  # bytes
SEEDS = 254  # of the words written: one byte


@dataclass(frozen=True)
class Work(work.Work):
    """The kernel's own test in every state of the module (see bulkmm.lab.work)."""

    visited = "hmm-visit"

    def lines(self) -> list[str]:
        chance = self.options.chance
        broken = " broken" if self.options.break_one_word else ""
        lines = ["modules bulkmm_lab"]
        for arm in self.rounds(ARMS, chance):
            lines.append(self.state(arm))
            lines.append(f"hmm_visit {chance.randint(1, SEEDS)}{broken}")
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def checks(self, outcome: Outcome) -> list[Check]:
        return [
            *_verdicts(outcome),
            self._whole(outcome),
            _brought_up(outcome),
            state.judge(
                "counters",
                state.visits(outcome, "hmm-visit"),
                lambda one: expected(one, one.event["calls"]),
            ),
            state.attached(outcome, "memmap"),
        ]

    def _whole(self, outcome: Outcome) -> Check:
        visits = Counter(event["arm"] for event in outcome.of("hmm-visit"))
        said = Counter(event["arm"] for event in outcome.of("hmm-case"))
        rounds = self.options.rounds
        ok = visits == dict.fromkeys(ARMS, rounds) and said == dict.fromkeys(
            ARMS, rounds * CASES
        )
        detail = f"{said.total()} cases in {visits.total()} visits"
        return Check("all that was asked for was reported", ok, detail)


def _verdicts(outcome: Outcome) -> list[Check]:
    """Check that no case found errors, in any state of the module."""
    said = work.grouped(outcome.of("hmm-case"), lambda one: str(one["name"]))
    return [right(f"test_hmm: {name}", some) for name, some in said.items()]


def _brought_up(outcome: Outcome) -> Check:
    """Check that every visit brought up exactly the expected chunks."""
    visits = outcome.of("hmm-visit")
    wanted = (CHUNKS, CHUNKS * CHUNK // PAGE)
    seen = {(int(v["calls"]), int(v["pages"])) for v in visits}
    listed = ", ".join(f"{calls} calls of {pages} pages" for calls, pages in seen)
    return Check("device memory brought up", seen == {wanted}, listed or "none")
