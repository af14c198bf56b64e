# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path hotplug."""

from functools import partial

from bulkmm.lab.machine.vm import Hot
from bulkmm.lab.scenario.declaration import LACKING, NVDIMM, Scenario
from bulkmm.size import GIB, MIB

ZONES = (
    "after every step the node's zones, free lists and page types as without the "
    "module, and if the kernel takes them for contiguous; memory filled, moved away "
    "with its blocks, and read back"
)
MOST = 96 * GIB  # whose struct pages fit into the guest's memory
ONCE = ("--rounds 1",)
VIRTIO = (
    "virtio-mem plugged and unplugged: the whole operation, and by function",
    "a series of 2026, 512 GB: plug 36 -> 7 s, unplug 36 -> 9 s",
)

_hotplug = partial(
    Scenario,
    family="hotplug",
    work="families.hotplug:Work",
    path="hotplug",
    check=ZONES,
    takes=("size", "rounds", "seed", "break_one_word"),
    size=4 * GIB,
    sizes=(GIB, MOST, 128 * MIB),
    cmdline="init_on_alloc=1",  # Debian's default: path alloc is about it
    full=("--rounds 2",),
)
_kmem = partial(
    _hotplug,
    mode="kmem",
    modules=(*NVDIMM, "kmem"),
    hot=Hot(nodes=2),
    marked=True,
)
_virtio = partial(
    _hotplug,
    mode="virtio",
    modules=("virtio_mem",),
    hot=Hot(plug=True, node=1, nodes=2),
    published=VIRTIO[1:],
)


def _dax(size: int) -> str:
    return (
        f"a DAX device of {size} GiB that becomes ordinary memory and ceases to be, by "
        "kmem: the whole operation, and by function"
    )


SCENARIOS = (
    _kmem("hotplug-kmem-32g", _dax(32), size=32 * GIB, full=("",), seconds=150),
    _kmem(
        "hotplug-kmem-4g",
        _dax(4),
        quick=ONCE,
        debug=dict.fromkeys(("debug", "kasan", "clang-cfi", "patched"), ONCE),
        seconds=40,
    ),
    _virtio(
        "hotplug-virtio-mem-32g", f"32 GiB of {VIRTIO[0]}", size=32 * GIB, seconds=900
    ),
    _virtio(
        "hotplug-virtio-mem-4g",
        f"4 GiB of {VIRTIO[0]}",
        debug={"debug": ONCE, "debug-kobject": ONCE},
        seconds=120,
    ),
    _hotplug(
        "hotplug-cxl-4g",
        "a CXL device of 4 GiB whose memory becomes ordinary memory and ceases to be, "
        "by kmem: the whole operation, and by function",
        mode="cxl",
        sizes=(GIB, MOST, 256 * MIB),
        hot=Hot(cxl=True),
        modules=("cxl_acpi", "cxl_pci", "cxl_mem", "dax_cxl", "kmem"),
        # no region starts where the kernel cannot flush caches, as in a guest
        cpu="max,hypervisor=off",
        since="6.12",  # 6.1 has no dax_cxl
        seconds=60,
        marked=True,
        lacking_debug=LACKING,
        x86_only="QEMU has CXL devices",
    ),
    _hotplug(
        "hotplug-faults",
        "every fault of the hotplug path is provoked in a test build",
        check="each answer against the walk of the kernel's own function; the zones as "
        "without the module",
        work="work:Work",
        job=(
            "KIND=faults SIZE=$(({size} >> 10)) ONLINE=online_movable OFFLINE=1",
            "modules bulkmm_lab",
            "hot_faults",
            "must rmmod bulkmm_lab",
        ),
        # persistent memory inside a section; struct pages on hot memory
        cmdline="memmap=96M!5152M memory_hotplug.memmap_on_memory=1",
        # faults are injected on a node that has boot memory too
        hot=Hot(plug=True, nodes=2),
        measures=False,
        takes=("size",),
        full=("",),
        debug={"debug": ("",), "kasan": ("",)},
        modules=(*NVDIMM, "nd_e820", "kmem", "virtio_mem"),
        seconds=120,
        faults=True,
        warns=True,
    ),
)
