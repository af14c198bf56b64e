# SPDX-License-Identifier: GPL-2.0-only
"""Published figures for comparison with ours, as data.

Source: the cover letters of "mm: speed up ZONE_DEVICE memmap initialization"
on the Linux memory management list, 2026, versions 2 (on 7.1-rc3), 4 (7.1-rc6)
and 5 (7.2-rc1). A virtual machine on Intel Ice Lake, a namespace of 100 GB,
mean time of memmap_init_zone_device() over later rebinds.
"""

from dataclasses import dataclass

MACHINE = "Ice Lake VM"


@dataclass(frozen=True)
class Published:
    """One before-and-after pair, in ms."""

    scenario: str
    version: str
    before_ms: float
    after_ms: float

    @property
    def said(self) -> str:
        """Return it as text for a table."""
        return f"{self.version}: {self.before_ms} → {self.after_ms} ms"

    @property
    def ratio(self) -> float:
        """Return how many times faster it was."""
        return self.before_ms / self.after_ms


_FSDAX, _DEVDAX = "pmem-fsdax-100g", "pmem-devdax-100g"

FIGURES = (
    Published(_FSDAX, "v2", 273.5, 111.1),
    Published(_FSDAX, "v4", 262.1, 108.4),
    Published(_FSDAX, "v5", 244.3, 96.8),
    Published(_DEVDAX, "v2", 313.5, 110.2),
    Published(_DEVDAX, "v4", 229.1, 100.2),
    Published(_DEVDAX, "v5", 273.3, 119.0),
)

# The native bench does the work that dominates the fsdax scenario.
SAME_WORK = {"memmap-stamp": _FSDAX}


def for_scenario(name: str) -> tuple[Published, ...]:
    """Return the figures of a scenario, oldest first; empty if there are none."""
    name = SAME_WORK.get(name, name)
    return tuple(figure for figure in FIGURES if figure.scenario == name)
