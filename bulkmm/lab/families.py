# SPDX-License-Identifier: GPL-2.0-only
"""Who does a scenario of the huge-page family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bulkmm.lab import cases, clear, latency, perf, soak

if TYPE_CHECKING:
    from collections.abc import Callable

    from bulkmm.lab.huge import Options
    from bulkmm.lab.scenario import Scenario
    from bulkmm.lab.work import Work

OWN: dict[str, Callable[[Scenario, Options], Work]] = {
    "clear-faults": soak.Work,
    "clear-latency": latency.Work,
    "clear-cases": cases.Work,
    "clear-perf": perf.Work,
}


def huge_work(scenario: Scenario, options: Options) -> Work:
    """Return a huge-page scenario with its options."""
    return OWN.get(scenario.name, clear.Work)(scenario, options)
