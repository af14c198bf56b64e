# SPDX-License-Identifier: GPL-2.0-only
"""The lab's scenarios; their names are the interface."""

from bulkmm.errors import unknown
from bulkmm.lab.scenario import clear, copy, hotplug, memmap, prezero, suites, vmap
from bulkmm.lab.scenario.declaration import LIVE_PATCH, NVDIMM, Scenario

__all__ = ["FAMILIES", "LIVE_PATCH", "NVDIMM", "SCENARIOS", "Scenario", "find"]

PARTS = (memmap, clear, copy, prezero, vmap, hotplug, suites)
SCENARIOS: tuple[Scenario, ...] = tuple(s for part in PARTS for s in part.SCENARIOS)
FAMILIES = tuple(dict.fromkeys(one.family for one in SCENARIOS))


def find(name: str) -> Scenario:
    """Return the scenario with this name."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    raise unknown("scenario", name, (s.name for s in SCENARIOS))
