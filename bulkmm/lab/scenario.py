# SPDX-License-Identifier: GPL-2.0-only
"""The lab's scenarios; their names are the interface."""

from __future__ import annotations

from dataclasses import dataclass

from bulkmm.errors import UsageError


@dataclass(frozen=True)
class Scenario:
    """What a scenario measures and what it needs."""

    name: str
    mode: str  # of the namespace: fsdax or devdax
    measures: str
    check: str
    published: tuple[str, ...]
    seconds: int  # for one run at full size under TCG, set-up apart
    memory: int = 4096  # MiB of the guest
    size: str = "100G"  # of the device, if the user names none
    faults: bool = False  # runs faults.sh on a test build, measures nothing
    modules: tuple[str, ...] = (
        "libnvdimm",
        "nfit",
        "nd_btt",
        "nd_pmem",
        "dax_pmem",
        "device_dax",
    )


CHECK = (
    "every struct page and pageblock type byte for byte against the kernel's own; "
    "one word flipped must be seen; "
)

SCENARIOS = (
    Scenario(
        name="pmem-fsdax-100g",
        mode="fsdax",
        measures="memmap_init_zone_device() and the whole bind of nd_pmem",
        check=CHECK + "ext4 with DAX written and read back",
        published=(
            "v2 (7.1-rc3): 273.5 -> 111.1 ms",
            "v4 (7.1-rc6): 262.1 -> 108.4 ms, 2.42x",
            "v5 (7.2-rc1): 244.3 -> 96.8 ms, 2.52x",
        ),
        seconds=60,
    ),
    Scenario(
        name="pmem-devdax-100g",
        mode="devdax",
        measures="memmap_init_zone_device() and the whole bind of device_dax",
        check=CHECK + "the device mapped, written and read back",
        published=(
            "v2 (7.1-rc3): 313.5 -> 110.2 ms",
            "v4 (7.1-rc6): 229.1 -> 100.2 ms, 2.29x",
            "v5 (7.2-rc1): 273.3 -> 119.0 ms, 2.30x",
        ),
        seconds=60,
    ),
    Scenario(
        name="pmem-faults",
        mode="fsdax",
        measures="nothing: every fault of the memmap path is provoked in a test build",
        check="the kernel's own result, a counter and one line in the log each time",
        published=(),
        seconds=20,
        size="2G",
        faults=True,
    ),
)


def find(name: str) -> Scenario:
    """Return the scenario with this name."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    names = ", ".join(s.name for s in SCENARIOS)
    raise UsageError(f"unknown scenario {name}: there are {names}")
