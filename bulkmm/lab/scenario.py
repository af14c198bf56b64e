# SPDX-License-Identifier: GPL-2.0-only
"""The lab's scenarios; their names are the interface."""

from __future__ import annotations

from dataclasses import dataclass

from bulkmm.errors import UsageError


@dataclass(frozen=True)
class Scenario:
    """What a scenario measures and what it needs."""

    name: str
    family: str  # PMEM or CLEAR: what writes the job and reads the report
    measures: str
    check: str
    seconds: int  # for one run at full size under TCG, set-up apart
    published: tuple[str, ...] = ()
    memory: int = 4096  # MiB of the guest
    modules: tuple[str, ...] = ()  # the kernel's own that the guest needs
    mode: str = ""  # PMEM: of the namespace, fsdax or devdax
    size: str = "100G"  # PMEM: of the device, if the user names none
    perf: bool = False  # the guest has the kernel's perf
    counted: bool = False  # time is what the guest's CPU did, not what passed
    faults: bool = False  # PMEM: runs faults.sh on a test build, measures nothing


PMEM, CLEAR = "pmem", "clear"
NVDIMM = ("libnvdimm", "nfit", "nd_btt", "nd_pmem", "dax_pmem", "device_dax")
CHECK = (
    "every struct page and pageblock type byte for byte against the kernel's own; "
    "one word flipped must be seen; "
)
ZERO = (
    "every byte of every folio zero, by every way to fault, in every mode and with "
    "every backend forced; a planted byte must be seen; hits counted"
)

SCENARIOS = (
    Scenario(
        name="pmem-fsdax-100g",
        family=PMEM,
        mode="fsdax",
        modules=NVDIMM,
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
        family=PMEM,
        mode="devdax",
        modules=NVDIMM,
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
        family=PMEM,
        mode="fsdax",
        modules=NVDIMM,
        measures="nothing: every fault of the memmap path is provoked in a test build",
        check="the kernel's own result, a counter and one line in the log each time",
        seconds=20,
        size="2G",
        faults=True,
    ),
    Scenario(
        name="thp-2m",
        family=CLEAR,
        measures="faulting in transparent huge pages of 2 MiB",
        check=ZERO,
        seconds=120,
        memory=1024,
    ),
    Scenario(
        name="mthp",
        family=CLEAR,
        measures="faulting in transparent huge pages of 16 KiB to 1 MiB",
        check=ZERO,
        seconds=300,
        memory=1024,
    ),
    Scenario(
        name="hugetlb-2m",
        family=CLEAR,
        measures="faulting in hugetlb pages of 2 MiB",
        check=ZERO,
        seconds=120,
        memory=1024,
    ),
    Scenario(
        name="hugetlb-1g",
        family=CLEAR,
        measures="faulting in hugetlb pages of 1 GiB",
        check=ZERO,
        seconds=600,
        memory=5120,  # two aligned GiB are left whole at boot
    ),
    Scenario(
        name="clear-cases",
        family=CLEAR,
        measures="what a call of folio_zero_user() costs besides the stores",
        check="called on folios of 1 to 512 pages with hints at both ends and outside, "
        "in every mode and with every backend forced: all of it zero, nothing beside "
        "it changed; what is spoilt on purpose must be seen",
        seconds=40,
        memory=1024,
        counted=True,
    ),
    Scenario(
        name="clear-latency",
        family=CLEAR,
        measures="how late a real-time task gets the CPU on which hugetlb pages of "
        "2 MiB and 1 GiB are cleared: units of 8 MiB, 32 MiB, and by the clock",
        check="the longest unit within 1.5 latency_us and a page, each backend forced "
        "after another one (kernels that do not preempt)",
        seconds=200,
        memory=4096,  # an aligned GiB is left whole at boot
        counted=True,
    ),
    Scenario(
        name="clear-perf",
        family=CLEAR,
        measures="perf bench mem mmap, on demand and populated, by hugetlb pages of "
        "2 MiB and 1 GiB",
        check="the pages that perf maps are those that are counted",
        seconds=200,
        memory=4096,
        perf=True,
    ),
    Scenario(
        name="clear-faults",
        family=CLEAR,
        measures="nothing: modes, backends, unloading and the hugetlb pool change "
        "while four processes fault huge pages in",
        check="every byte zero",
        seconds=60,
        memory=1024,
    ),
)


def find(name: str) -> Scenario:
    """Return the scenario with this name."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    names = ", ".join(s.name for s in SCENARIOS)
    raise UsageError(f"unknown scenario {name}: there are {names}")
