# SPDX-License-Identifier: GPL-2.0-only
"""clear-faults: all settings change while four processes fault in huge pages."""

from dataclasses import dataclass
from typing import Any

from bulkmm.lab import state
from bulkmm.lab.families.huge import HugeWork, allocator_clears
from bulkmm.lab.families.proof import place
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

DIRTY_MIB = 256  # dirtied again and again by another process


@dataclass(frozen=True)
class Work(HugeWork):
    """A soak."""

    kept = (("soaked", "soaked"),)

    def lines(self) -> list[str]:
        seconds = self.options.seconds
        first = ["zeroing", f"dirty {DIRTY_MIB}", f"soakers {seconds}"]
        return [*first, f"soak {seconds} 1 turn clear=auto"]

    @property
    def quiet(self) -> float:
        return self.options.seconds

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
    folios = int(event["folios"])
    detail = f"{folios} folios, {event['refused']} not to be had"
    if event["wrong"]:
        detail += f"; {place(event)}"
    name = f"every byte zero (process {event['process']})"
    # in a short run the others may leave one process without a folio
    tried = folios > 0 or int(event["refused"]) > 0
    return Check(name, tried and not event["wrong"], detail)
