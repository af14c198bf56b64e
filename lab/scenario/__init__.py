# SPDX-License-Identifier: GPL-2.0-only
"""The lab's scenarios; their names are the interface."""

from bulkmm.shell.errors import unknown_word
from lab.scenario import (
    calls,
    clear,
    copy,
    fragmentation,
    hmm,
    hotplug,
    memmap,
    packages,
    patched,
    populate,
    prezero,
    suites,
    vmap,
)
from lab.scenario.base import Scenario

__all__ = ["SCENARIOS", "Scenario", "find"]

PARTS = (
    memmap,
    hmm,
    clear,
    calls,
    populate,
    fragmentation,
    copy,
    prezero,
    vmap,
    hotplug,
    suites,
    patched,
    packages,
)
SCENARIOS: tuple[Scenario, ...] = tuple(s for part in PARTS for s in part.SCENARIOS)


def find_scenario(name: str) -> Scenario:
    """Return the scenario with this name."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    names = (scenario.name for scenario in SCENARIOS)
    raise unknown_word("scenario", name, names, "bulkmm lab list")
