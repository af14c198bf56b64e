# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path vmap."""

from functools import partial

from bulkmm.lab.scenario.declaration import Scenario

MAPPED = (
    "random page arrays against a model: every entry's size and bits, the page behind "
    "every address, data both ways, nothing left; a wrong page must be seen"
)
PHYSICAL = 0x20000000  # reserved from the kernel, for ioremap()
FEW = ("--rounds 1 --arrays 50",)

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
        published=("phone SoC: 42.5 -> 2.47 ms, 17x",),
    ),
    _mapped("vmap-order9", "vmap() of 100 MiB in compound pages of order 9"),
    _mapped("vmap-order0", "vmap() of 16 MiB in scattered single pages"),
    _mapped("vmap-1page", "vmap() of one page: the cost of the hooks"),
    _mapped(
        "vm_map_ram",
        "vm_map_ram() of 64 KiB and of 4 MiB",
        debug=_on_both(*FEW),
        seconds=90,
    ),
    _mapped(
        "vmalloc-1m",
        "mapping what vmalloc_huge() allocated (1 MiB, 4 MiB), and vmalloc() of 1 MiB "
        "as a whole",
        published=("RK3588, huge, mapping only: 5.00 -> 3.53 us, 1.42x",),
        seconds=120,
    ),
    _mapped(
        "ioremap-1m",
        "ioremap() of 1 MiB as a whole, and its mapping alone",
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
