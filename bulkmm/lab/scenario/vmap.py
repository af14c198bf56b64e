# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path vmap."""

from dataclasses import dataclass
from functools import partial

from bulkmm.lab.scenario.declaration import Scenario
from bulkmm.size import MIB, PAGE

MAPPED = (
    "random page arrays against a model: every entry's size and bits, the page behind "
    "every address, data both ways, nothing left; a wrong page must be seen"
)
PHYSICAL = 0x20000000  # reserved from the kernel, for ioremap()
FEW = ("--rounds 1 --arrays 50",)


@dataclass(frozen=True)
class Case:
    """One way to map, as module/selftest/vmap_time.c knows it."""

    result: str  # suffix to the scenario's name
    what: str
    calls: int  # per sample, which is their mean
    samples: int  # per visit
    shape: str = ""  # of the page array, or
    size: int = 0  # bytes
    pages: int = 0  # of the shape
    served: bool = True  # long enough for the path

    @property
    def nbytes(self) -> int:
        """Return the bytes that one call maps."""
        return self.size or self.pages * PAGE

    @property
    def scanned(self) -> bool:
        """Return whether reading the array takes measurable time."""
        return bool(self.shape) and self.served

    @property
    def words(self) -> str:
        """Return the arguments of the guest's command after the label."""
        words = f"{self.what} {self.calls} {self.samples}"
        return f"{words} {self.size} {PHYSICAL:#x}" if self.size else words


_vmap = partial(
    Scenario,
    family="vmap",
    work="families.vmap:Work",
    path="vmap",
    check=MAPPED,
    seconds=60,
    memory=1024,
    cmdline=f"memmap=16M${PHYSICAL >> 20}M",
    measures=False,
)
_mapped = partial(
    _vmap,
    measures=True,
    takes=("rounds", "seed", "arms", "arrays", "break_one_word"),
    full=("--rounds 3",),
    debug={"debug": FEW},
    marked=True,
)


def _on_both(*runs: str) -> dict[str, tuple[str, ...]]:
    return {"debug": runs, "kasan": runs}


SCENARIOS = (
    _mapped(
        "vmap-100m-order8",
        "vmap() of 100 MiB in blocks of order 8, as they are allocated",
        shape=(Case("", "vmap", 3, 8, "8x100", pages=25600),),
        quick=("--rounds 3 --arrays 50",),
        debug={
            **_on_both(*FEW),
            "clang-cfi": (f"{FEW[0]} --arm off --arm pte",),
        },
        published=("RK3588: 1235 -> 149 us, 8.3x",),
    ),
    _mapped(
        "vmap-128m-mixed",
        "vmap() of 128 MiB of orders 8, 4 and 0, as a dma-buf heap has them",
        shape=(Case("", "vmap", 3, 8, "8x96 4x384s 0x2048s", pages=32768),),
        published=("phone SoC: 42.5 -> 2.47 ms, 17x",),
    ),
    _mapped(
        "vmap-order9",
        "vmap() of 100 MiB in compound pages of order 9",
        shape=(Case("", "vmap", 3, 8, "9x50c", pages=25600),),
    ),
    _mapped(
        "vmap-order0",
        "vmap() of 16 MiB in scattered single pages",
        shape=(Case("", "vmap", 10, 8, "0x4096s", pages=4096),),
    ),
    _mapped(
        "vmap-1page",
        "vmap() of one page: the cost of the hooks",
        shape=(Case("", "vmap", 1000, 10, "0x1", pages=1, served=False),),
    ),
    _mapped(
        "vm_map_ram",
        "vm_map_ram() of 64 KiB and of 4 MiB",
        shape=(
            Case("", "vm_map_ram", 1000, 8, "4x1", pages=16, served=False),
            Case("-4m", "vm_map_ram", 50, 8, "8x4", pages=1024),
        ),
        debug=_on_both(*FEW),
        seconds=90,
    ),
    _mapped(
        "vmalloc-1m",
        "mapping what vmalloc_huge() allocated (1 MiB, 4 MiB), and vmalloc() of 1 MiB "
        "as a whole",
        shape=(
            Case("", "vmalloc-map", 100, 8, size=MIB),
            Case("-whole", "vmalloc", 20, 4, size=MIB),
            Case("-huge-4m", "vmalloc-map", 100, 8, size=4 * MIB, served=False),
        ),
        published=("RK3588, huge, mapping only: 5.00 -> 3.53 us, 1.42x",),
        seconds=120,
    ),
    _mapped(
        "ioremap-1m",
        "ioremap() of 1 MiB as a whole, and its mapping alone",
        shape=(
            Case("", "ioremap", 100, 8, size=MIB),
            Case("-map", "ioremap-map", 100, 8, size=MIB),
        ),
        debug=_on_both(*FEW),
        published=("RK3588: 3407 -> 2526 ns, 1.35x",),
        seconds=90,
    ),
    _vmap(
        "vmap-check",
        "100000 page arrays of random shape, every public entry, parts unmapped and "
        "given other attributes",
        takes=("arms", "seed", "arrays", "break_one_word"),
        debug=_on_both("--arrays 1000"),
        seconds=240,
    ),
    _vmap(
        "vmap-faults",
        "each page table refused in turn, bad requests, and two processes that map "
        "while modes and the module come and go",
        check="the original's answer, warning and state each time; " + MAPPED,
        takes=("arms", "seed", "seconds"),
        debug=_on_both("--seconds 30"),
        warns=True,
    ),
    _vmap(
        "upstream-vmalloc",
        "the running kernel's own lib/test_vmalloc.c",
        check="the same verdicts without the module and in every mode",
        takes=("arms", "seed", "loops"),
        debug=_on_both("--loops 20"),
        seconds=240,
        memory=2048,
        upstream="test_vmalloc",
        since="6.12",  # 6.1's own module lacks what the shim calls
    ),
)
