# SPDX-License-Identifier: GPL-2.0-only
"""populate-fragmented: huge pages of fragmented memory, by libbulkmm alone.

All but a part of a guest's memory is fragmented on purpose (bmmguest fragment), and
memory with MADV_HUGEPAGE populated: by the library as it is, which gives up huge pages
that the kernel compacts memory for in vain; by the library that insists on them, as the
kernel itself does; and with small pages. What each arm got, and what the kernel did, is
counted.
"""

from collections.abc import Iterable

from bulkmm.results.model import Check
from bulkmm.shell.size import MIB
from lab.machine.vm import Outcome
from lab.scenario import base
from lab.scenario.base import Measure, Scenario

SIZE = 320  # MiB per visit
WHOLE = 96  # MiB of free memory that are left in one piece, about
DISTANCE = 32  # pages: of so many one stays, so that no huge page is free
HUGE = 2 * MIB
GIVE_UP, INSIST, SMALL = ARMS = "give-up", "insist", "small"
KINDS = {GIVE_UP: "thp", INSIST: "thp", SMALL: "4k"}


class Fragmented(Scenario):
    """Memory that is populated while huge pages are scarce."""

    observations = (("visits", "fragmented"),)

    def lines(self) -> list[str]:
        lines = [f"fragment {WHOLE} {DISTANCE}"]
        for name in self.each_round(ARMS):
            words = "compact" if name == INSIST else ""
            lines.append(f"fragmented {name} {KINDS[name]} {SIZE} {words}".rstrip())
        return lines

    def measurements(self, outcome: Outcome) -> Iterable[Measure]:
        visits = outcome.of("fragmented")
        by_name = base.group_items(visits, lambda event: str(event["way"]))
        times = {
            name: base.collect_values(events, "ns") for name, events in by_name.items()
        }
        pairs = [(INSIST, GIVE_UP), (SMALL, GIVE_UP)]
        yield Measure(f"populate-fragmented-{SIZE}m", SIZE * MIB, pairs, times)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        visits = base.group_items(
            outcome.of("fragmented"), lambda event: str(event["way"])
        )
        wanted = {"error": 0, "done": SIZE * MIB, "wrong": 0}
        for name in ARMS:
            yield base.check_values(
                f"every byte zero, and there ({name})", visits.get(name, []), wanted
            )
        insisted, gave_up = visits.get(INSIST, []), visits.get(GIVE_UP, [])
        blocks = SIZE * MIB // HUGE
        least = min((int(event["compacted"]) for event in insisted), default=0)
        yield base.check_values(
            "memory is fragmented: the kernel compacts it in vain",
            insisted,
            {"small": 0},
            ok=least >= blocks // 4,
        )
        most = max((int(event["compacted"]) for event in gave_up), default=0)
        smallest = min((int(event["small"]) for event in gave_up), default=0)
        yield base.check_values(
            "huge pages are given up, and memory is compacted no more",
            gave_up,
            {"restored": 1},
            ok=smallest >= SIZE * MIB // 4 and most <= least // 2,
        )
        yield base.check_values(
            "small pages need no compaction", visits.get(SMALL, []), {"small": 0}
        )


SCENARIOS = (
    Fragmented(
        "populate-fragmented",
        "memory with MADV_HUGEPAGE populated by libbulkmm where memory is fragmented",
        "every byte zero; the library gives up huge pages that the kernel compacts "
        "memory for in vain, unless it is to insist, and restores what was advised",
        family="populate",
        path="clear",
        takes=("rounds", "seed"),
        runs=base.Runs(rounds=3, full=("--rounds 2",)),
        machine=base.Machine(memory=2048),
        seconds=150,
        needs=base.Needs(lacking_debug=base.LACKING),
    ),
)
