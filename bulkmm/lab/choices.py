# SPDX-License-Identifier: GPL-2.0-only
"""What a user can choose of a run: each option once, with its range.

A scenario names those that it takes; ``lab run`` refuses the others.
"""

import random
import re
from dataclasses import dataclass, fields

from bulkmm import size
from bulkmm.errors import UsageError
from bulkmm.options import opt
from bulkmm.size import MIB

ACCEL = ("auto", "kvm", "tcg")
ALIGNS = {"4K": 4 << 10, "2M": 2 << 20, "1G": 1 << 30}
MAPS = ("dev", "mem")
PREEMPT = ("none", "voluntary", "full", "lazy")
CPUS = 2  # of a guest
ARMS = ("absent", "off", "pte", "block")  # of vmap
LARGEST = "1T"  # what the guest's address space has room for
REGION_ALIGN = 16 * MIB  # of libnvdimm on x86: other sizes cannot make a namespace
BACKEND = re.compile(r"[a-z][a-z0-9_-]{0,30}")


def device_size(text: str) -> int:
    """Return the bytes of a size such as 100G; reject impossible device sizes."""
    nbytes = size.parse(text, LARGEST)
    if nbytes % REGION_ALIGN:
        raise UsageError(f"size {text} is no multiple of 16M")
    return nbytes


def backend(text: str) -> str:
    """Return the name of a backend; the guest's module knows which there are."""
    if not BACKEND.fullmatch(text):
        raise UsageError(f"bad backend name {text}")
    return text


@dataclass(frozen=True)
class Options:
    """The user's options; a scenario takes some of them."""

    rounds: int = opt(
        5, "visit each arm N times (default: the scenario's, mostly 5)", "N", least=1
    )
    seed: int = opt(
        lambda: random.SystemRandom().getrandbits(32),
        "repeat the order of another run",
        "N",
    )
    break_one_word: bool = opt(
        default=False, says="change one word on purpose: the run must fail"
    )
    size: int = opt(
        0,
        "make the device so large (default: 100G)",
        "SIZE",
        read=device_size,
        group="persistent memory, hotplug",
    )
    align: str = opt("2M", "align devdax to this (default: 2M)", choices=(*ALIGNS,))
    map: str = opt("dev", "put struct pages there (default: dev)", choices=MAPS)
    backend: str = opt("", "force this store backend", "NAME", read=backend)
    workers: int = opt(
        0,
        "use N CPUs for stamping (default: 0, by size)",
        "N",
        least=0,
        most=32,  # BMM_CREW_MOST of module/crew.h
    )
    folios: int | None = opt(
        None, "fault in N folios a visit", "N", least=1, group="huge pages"
    )
    ways: tuple[str, ...] = opt(
        (),
        "fault in by this way; may be given again (default: all)",
        "NAME",
        flag="--way",
    )
    kib: tuple[int, ...] = opt(
        (), "take folios of N KiB (mthp); may be given again", "N"
    )
    init_on_alloc: str = opt(
        "",
        "let the allocator clear as well, or not (default: the kernel's)",
        choices=("0", "1"),
    )
    init_on_free: str = opt(
        "",
        "let it clear what is freed, or not (default: the kernel's)",
        choices=("0", "1"),
    )
    preempt: str = opt(
        "",
        "boot with this preemption model (default: the kernel's)",
        choices=PREEMPT,
    )
    seconds: int = opt(
        60,
        "run hook-storm, clear-faults, vmap-faults, stress, or each test of "
        "upstream-mm, so long (default: 60)",
        "N",
        least=1,
        most=3600,
    )
    arms: tuple[str, ...] = opt(
        (),
        "visit this arm; may be given again (default: all)",
        "NAME",
        choices=ARMS,
        flag="--arm",
        group="kernel mappings",
    )
    arrays: int | None = opt(None, "map N arrays of random shape", "N", least=1)
    loops: int = opt(
        1000, "loop upstream-vmalloc N times (default: 1000)", "N", least=1
    )
    parts: tuple[str, ...] = opt(
        (),
        "run this part; may be given again (default: all)",
        "NAME",
        flag="--part",
        group="suites",
    )
    no_upgrade: bool = opt(
        default=False,
        says="skip the upgrade, for which DKMS builds in the guest",
        group="packages",
    )

    def __post_init__(self) -> None:
        """Reject values out of range."""
        for one in fields(self):
            one.metadata["opt"].check(one.name, getattr(self, one.name))

    @property
    def chance(self) -> random.Random:
        """Return a random generator in its initial state."""
        return random.Random(self.seed)  # noqa: S311 - to vary, not to hide
