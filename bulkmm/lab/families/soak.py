# SPDX-License-Identifier: GPL-2.0-only
"""clear-faults: all settings change while four processes fault in huge pages."""

from dataclasses import dataclass
from typing import Any

from bulkmm.lab import state, work
from bulkmm.lab.families.huge import allocator_clears
from bulkmm.lab.families.proof import right
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

DIRTY_MIB = 256  # dirtied again and again by another process


@dataclass(frozen=True)
class Work(work.Work):
    """A soak."""

    kept = (("soaked", "soaked"),)

    def lines(self) -> list[str]:
        seconds = self.options.seconds
        first = ["zeroing", f"dirty {DIRTY_MIB}", f"soakers {seconds}"]
        return [*first, f"soak {seconds} 1 turn clear=auto"]

    def checks(self, outcome: Outcome) -> list[Check]:
        found = [_soaked(event) for event in outcome.of("soaked")]
        said = outcome.of("soak")[0]
        hits = state.served(outcome)["clear"]
        detail = (
            f"{hits} folios served, {said['turns']} turns of modes and "
            f"backends, module loaded {said['loads']} times"
        )
        had = sum(int(event["folios"]) > 0 for event in outcome.of("soaked"))
        most = f"{had} of {len(found)} processes had folios"
        return [
            *found,
            Check("folios for most processes", 2 * had > len(found), most),
            Check("served meanwhile", hits > 0, detail),
            state.attached(outcome, "clear", busy=True),
        ]

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        seen = super().facts(outcome)
        return {**seen, "allocator_clears": allocator_clears(outcome)}


def _soaked(event: dict[str, Any]) -> Check:
    folios, refused = int(event["folios"]), int(event["refused"])
    name = f"every byte zero (process {event['process']})"
    detail = f"{folios} folios, {refused} not to be had"
    # in a short run the others may leave one process without a folio
    return right(name, [event], detail, ok=folios > 0 or refused > 0)
