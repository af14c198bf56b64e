# SPDX-License-Identifier: GPL-2.0-only
"""Published figures for comparison with ours, as data.

Source: the cover letters of "mm: speed up ZONE_DEVICE memmap initialization" on the
Linux memory management list, 2026. A virtual machine on Intel Ice Lake, a namespace
of 100 GB, mean time of memmap_init_zone_device() over later rebinds.
"""

from typing import NamedTuple

MACHINE = "Ice Lake VM"


class Published(NamedTuple):
    """One before-and-after pair, in ms."""

    version: str
    kernel: str
    before_ms: float
    after_ms: float

    @property
    def said(self) -> str:
        """Return the times as text."""
        return f"{self.before_ms} → {self.after_ms} ms"

    @property
    def ratio(self) -> float:
        """Return how many times faster it was."""
        return self.before_ms / self.after_ms


FIGURES = {
    "pmem-fsdax-100g": (
        Published("v2", "7.1-rc3", 273.5, 111.1),
        Published("v4", "7.1-rc6", 262.1, 108.4),
        Published("v5", "7.2-rc1", 244.3, 96.8),
    ),
    "pmem-devdax-100g": (
        Published("v2", "7.1-rc3", 313.5, 110.2),
        Published("v4", "7.1-rc6", 229.1, 100.2),
        Published("v5", "7.2-rc1", 273.3, 119.0),
    ),
}
# The native bench does the work that dominates the fsdax scenario.
FIGURES["memmap-stamp"] = FIGURES["pmem-fsdax-100g"]


def lines(scenario: str) -> tuple[str, ...]:
    """Return a scenario's figures as text, oldest first."""
    return tuple(
        f"{one.version} ({one.kernel}): {one.said}, {one.ratio:.2f}x"
        for one in FIGURES[scenario]
    )
