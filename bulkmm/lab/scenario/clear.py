# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path clear."""

from dataclasses import dataclass
from functools import partial

from bulkmm.lab.choices import PREEMPT
from bulkmm.lab.machine.vm import Hot
from bulkmm.lab.scenario.declaration import GIB_PAGE, LACKING, NVDIMM, Scenario
from bulkmm.size import GIB

ZERO = (
    "every byte of every folio zero, by every way to fault, in every mode and with "
    "every backend forced; a planted byte must be seen; hits counted"
)
ZEROING = ("init_on_alloc", "init_on_free")
FAULTED = ("rounds", "seed", "break_one_word", "preempt", *ZEROING, "folios", "ways")
SOAK = ("--seconds 30",)
DEMAND = ("write-first", "write-middle", "write-last")
FORK = "fork"
ANYWHERE = (*DEMAND, "read", "madv-populate", "map-populate", FORK)
HUGETLB = (*ANYWHERE, "memfd", "fallocate")
# without 2 MiB pages, a read fault maps the shared page of zeros
PART = tuple(way for way in ANYWHERE if way != "read")


@dataclass(frozen=True)
class Shape:
    """The folios of a scenario."""

    kind: str  # thp or hugetlb
    kib: tuple[int, ...]
    ways: tuple[str, ...]
    folios: int  # per visit, by default
    batch: int  # folios at a time
    pool: int = 0  # hugetlb pages: twice a batch, for a child's copies
    only_asked: tuple[str, ...] = ()  # further ways, run only on request


_clear = partial(
    Scenario,
    family="clear",
    work="families.clear:Work",
    path="clear",
    seconds=60,
    memory=1024,
)
_zero = partial(_clear, check=ZERO, takes=FAULTED, seconds=120)

SCENARIOS = (
    _zero(
        "thp-2m",
        "faulting in transparent huge pages of 2 MiB",
        shape=Shape("thp", (2048,), ANYWHERE, folios=32, batch=16),
        full=("--init-on-alloc 0 --rounds 2", "--init-on-alloc 1 --rounds 2"),
        debug={
            "debug": (
                "--init-on-alloc 0 --folios 4 --rounds 1",
                "--init-on-alloc 1 --folios 4 --rounds 1",
            )
        },
    ),
    _zero(
        "mthp",
        "faulting in transparent huge pages of 16 KiB to 1 MiB",
        shape=Shape(
            "thp", tuple(1 << n for n in range(4, 11)), PART, folios=80, batch=80
        ),
        takes=(*FAULTED, "kib"),
        since="6.12",
        full=("--init-on-alloc 0 --rounds 2",),
        debug={
            "debug": ("--kib 64 --kib 1024 --init-on-alloc 0 --folios 2 --rounds 1",)
        },
        seconds=300,
    ),
    _zero(
        "hugetlb-2m",
        "faulting in hugetlb pages of 2 MiB",
        shape=Shape("hugetlb", (2048,), HUGETLB, folios=32, batch=16, pool=32),
        full=("--rounds 2",),
        quick=("--folios 8 --way write-middle --rounds 1",),
        debug=dict.fromkeys(("debug", "clang-cfi"), ("--folios 4 --rounds 1",)),
    ),
    _zero(
        "hugetlb-1g",
        "faulting in hugetlb pages of 1 GiB",
        shape=Shape(
            "hugetlb",
            (1 << 20,),
            tuple(way for way in HUGETLB if way != FORK),
            folios=1,
            batch=1,
            pool=2,
            # 7.3's own fork loses these pages: docs/limits.md
            only_asked=(FORK,),
        ),
        rounds=1,
        debug={"debug": ("--rounds 1",)},
        seconds=600,
        memory=5120,
        cmdline="hugepagesz=1G hugepages=2",
    ),
    _clear(
        "clear-cases",
        "what a call of folio_zero_user() costs besides the stores",
        "called on folios of 1 to 512 pages with hints at both ends and outside, in "
        "every mode and with every backend forced: all of it zero, nothing beside it "
        "changed; what is corrupted on purpose must be seen",
        work="families.cases:Work",
        takes=("rounds", "seed", "break_one_word", "preempt"),
        full=("--rounds 2",),
        debug={"debug": ("--rounds 1",)},
        seconds=40,
        marked=True,
    ),
    _clear(
        "clear-populate",
        "which ways to bring a huge page in count as populating, those of devices and "
        "guests among them",
        "each page bypasses the cache if it was populated, and is left in it if it was "
        "touched; with cached_max 0 all bypass it",
        work="families.use:Work",
        measures=False,
        takes=("preempt",),
        cmdline="init_on_alloc=0 intel_iommu=on iommu=nopt",
        modules=("kvm_amd", "vfio_pci", "vfio_iommu_type1"),
        lacking_debug=LACKING,
        devices=("intel-iommu,intremap=off", "edu"),
    ),
    _clear(
        "clear-latency",
        "how late a real-time task gets the CPU on which hugetlb pages of 2 MiB and "
        "1 GiB are cleared: with targets of 10 ms and 1 ms",
        "the longest unit within 1.5 latency_us and a page, with each backend forced "
        "(kernels that do not preempt)",
        work="families.latency:Work",
        takes=("rounds", "seed", "preempt", "kib"),
        full=(*(f"--preempt {model} --rounds 2" for model in PREEMPT), "--rounds 2"),
        debug={"debug": ("--preempt full --rounds 1", "--preempt lazy --rounds 1")},
        seconds=200,
        memory=4096,
        cmdline=GIB_PAGE,
        counted=True,
    ),
    _clear(
        "clear-faults",
        "modes, backends, unloading and the hugetlb pool change while four processes "
        "fault huge pages in",
        "every byte zero",
        work="families.clear:Soak",
        job=(
            "zeroing",
            "dirty 256",
            "soakers {seconds}",
            "soak {seconds} 1 turn clear=auto",
        ),
        measures=False,
        takes=("seconds", "preempt", *ZEROING),
        debug={"debug": SOAK, "debug-kobject": SOAK},
    ),
    Scenario(
        "populate-guest",
        "memory made resident by the kernel's ways and by libbulkmm, with the module "
        "and without",
        "every byte zero; the module knows what is populated and what is touched; "
        "nodes, DAX, pages of 1 GiB, cgroups and a broken page, as the library reports "
        "them",
        family="populate",
        work="families.populate:Work",
        path="clear",
        takes=("rounds", "seed", "break_one_word"),
        rounds=3,
        full=("--rounds 2",),
        marked=True,
        modules=NVDIMM,
        size=GIB // 2,
        # NUMA balancing's hint faults are not faults on missing pages
        cmdline=f"numa_balancing=disable {GIB_PAGE}",
        hot=Hot(nodes=2, shared_out=True),
        seconds=150,
        lacking_debug=LACKING,  # all cgroup controllers and page node queries
        x86_only="the lab has its machine",
    ),
)
