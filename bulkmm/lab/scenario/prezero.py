# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path prezero."""

from dataclasses import dataclass
from functools import partial

from bulkmm.lab.machine.vm import Hot
from bulkmm.lab.scenario.declaration import GIB_PAGE, Scenario
from bulkmm.size import GIB, MIB


@dataclass(frozen=True)
class Pool:
    """The pool of a scenario."""

    kind: str  # as the guest reports it
    page: int
    pages: int
    most: float  # of a ready page's bytes that are stored


_prezero = partial(Scenario, family="prezero", path="prezero", since="6.12")
_ready = partial(
    _prezero,
    work="families.prezero:Work",
    check="every byte zero, by every way to populate; where emulated, one that is "
    "ready costs stores of 1 % (2 MiB) or 0.01 % (1 GiB) of its bytes at most, no more "
    "instructions than stock's; each free 60 more at most",
    takes=("rounds", "seed", "break_one_word"),
    suite="qemu",
    marked=True,
)

SCENARIOS = (
    _ready(
        "prezero-2m",
        "populating a pool of hugetlb pages of 2 MiB that are ready, and that are not",
        shape=Pool("2m", 2 * MIB, 32, 0.01),
        rounds=2,
        full=("--rounds 2",),
        quick=("--rounds 1",),
        debug={"debug": ("--rounds 1",)},
        seconds=90,
        memory=1024,
    ),
    _ready(
        "prezero-1g",
        "populating a page of 1 GiB that is ready, and that is not",
        shape=Pool("1g", GIB, 1, 0.0001),
        rounds=1,
        debug={"debug": ("--rounds 1",)},
        seconds=400,
        cmdline=GIB_PAGE,
    ),
    _prezero(
        "prezero-faults",
        "every way to take a hugetlb page and to free it dirty, resizing, demotion, "
        "memory that goes offline, broken pages, fillers that are killed, and each "
        "fault of the path, in a test build",
        "every byte zero whenever pages are populated; the pool exact; a bit that is "
        "kept on purpose must be seen",
        job=("prezero_faults 24",),
        # pages that the page allocator cleared would hide what is not cleared
        cmdline=f"init_on_alloc=0 {GIB_PAGE}",
        hot=Hot(nodes=2, shared_out=True),
        measures=False,
        debug={"debug": ("",)},
        faults=True,
        seconds=200,
    ),
    _prezero(
        "prezero-stress",
        "hugetlb pages taken in every way and freed dirty, while fillers are killed, "
        "pages migrate, the pool, modes and hooks change",
        "every page zero at first touch; the pool exact; some were ready",
        work="families.prezero:StressWork",
        cmdline="init_on_alloc=0",
        hot=Hot(nodes=2, shared_out=True),
        measures=False,
        takes=("folios", "break_one_word"),
        full=("--folios 20000",),
        debug={"debug": ("--folios 2000",)},
        seconds=900,
        memory=1536,
    ),
    Scenario(
        "pool-grow",
        "a pool of hugetlb pages of 2 MiB on two nodes grown by `nr_hugepages`, and by "
        "`bulkmm pool grow` with one process a node and two; ended by TERM and KILL",
        "the pool as asked for, equal on both nodes; limits as before; none left by a "
        "run that was terminated, nor by one that was killed once another has run",
        family="prezero",
        path="prezero",
        work="families.prezero:GrowWork",
        hot=Hot(nodes=2, shared_out=True),
        takes=("rounds", "seed"),
        rounds=3,
        seconds=200,
        suite="command",
        x86_only="the Python in the guest is",
    ),
)
