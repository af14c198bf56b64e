# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path memmap, and of hooks in general."""

from functools import partial

from bulkmm import published
from bulkmm.lab.machine.vm import Hot
from bulkmm.lab.scenario.declaration import LIVE_PATCH, NVDIMM, Scenario
from bulkmm.size import GIB

CHECK = (
    "every struct page and pageblock type byte for byte against the kernel's own; "
    "one word flipped must be seen"
)
STAMPED = ("size", "rounds", "seed", "backend", "workers", "break_one_word")
STORM = ("--cpus 4 --seconds 240",)


def _provoked(*does: str, device: str = "namespace fsdax dev 2M") -> tuple[str, ...]:
    """Return a job of the guest's own on a device that the module has not seen."""
    return ("modules bulkmm_lab", device, *does, "must rmmod bulkmm_lab")


_device = partial(
    Scenario,
    family="pmem",
    work="families.pmem:Work",
    path="memmap",
    modules=NVDIMM,
    size=100 * GIB,
    marked=True,
    seconds=60,
)
_faults = partial(
    Scenario,
    family="pmem",
    path="memmap",
    modules=NVDIMM,
    size=2 * GIB,
    takes=("size",),
    measures=False,
    faults=True,
    seconds=20,
)

SCENARIOS = (
    _device(
        "pmem-fsdax-100g",
        "memmap_init_zone_device() and the whole bind of nd_pmem",
        f"{CHECK}; ext4 with DAX written and read back",
        mode="fsdax",
        takes=(*STAMPED, "map"),
        quick=("--size 2G --rounds 3",),
        debug=dict.fromkeys(("debug", "clang-cfi"), ("--size 4G --rounds 1",)),
        published=published.lines("pmem-fsdax-100g"),
    ),
    _device(
        "pmem-devdax-100g",
        "memmap_init_zone_device() and the whole bind of device_dax",
        f"{CHECK}; the device mapped, written and read back",
        mode="devdax",
        takes=(*STAMPED, "map", "align"),
        full=("", "--align 1G"),
        debug={"debug": ("--size 4G --rounds 1", "--size 16G --align 1G --rounds 1")},
        published=published.lines("pmem-devdax-100g"),
    ),
    _device(
        "hmm-private-64g",
        "memmap_init_zone_device() and the whole memremap_pages() of device-private "
        "memory",
        CHECK,
        mode="private",
        modules=(),
        size=64 * GIB,
        takes=STAMPED,
        debug={"debug": ("--size 4G --rounds 1",)},
        published=("the series: 3 % slower on a reviewer's AMD and Arrow Lake",),
        seconds=240,
        since="7.3",
    ),
    Scenario(
        "upstream-hmm",
        "the running kernel's own lib/test_hmm.c, a driver of device-private memory, "
        "to which pages migrate and from which they come back",
        "every word, every page where it belongs, without the module and in every "
        "mode; a planted word must be seen; hits counted",
        family="hmm",
        work="families.hmm:Work",
        path="memmap",
        measures=False,
        takes=("rounds", "seed", "break_one_word"),
        debug={"debug": ("--rounds 1",)},
        seconds=60,
        memory=1024,
        since="7.3",
        upstream="test_hmm",
    ),
    _faults(
        "pmem-faults",
        "every fault of the memmap path is provoked in a test build",
        "the kernel's own result, a counter and one line in the log each time",
        job=_provoked("faults"),
        hot=Hot(nodes=3, bare=True),
        debug={"debug": ("",)},
    ),
    _faults(
        "pmem-verify",
        "memmap/verify in a build for production, of whose struct pages one is broken "
        "after stamping",
        "off does not see it; once and always do, keep the kernel's, count and log it, "
        "and serve none after it; a record of every device",
        job=_provoked("verify"),
        debug={"debug": ("",)},
        faults=False,
    ),
    _faults(
        "hook-faults",
        "what ftrace, symbols and a signal can do to a hook, on a test build",
        "no warning; hook, mode and log say what is so; the machine works on, and the "
        "device comes up as the kernel would have it",
        # before any kprobe of bulkmm_lab's; at the end ftrace is dead: none can go
        job=("case_toggled_around_loads", *_provoked("hook_faults")[:-1]),
        full=(),
        debug={"debug": ("",), "clang-cfi": ("",)},
        seconds=90,
    ),
    _faults(
        "hook-storm",
        "paths and the module come and go while tracers, a live patch, BPF and kprobes "
        "come and go on the same functions, and CPUs are held inside ftrace's list",
        "no warning; each of them succeeds now and then; huge pages zero; ftrace and "
        "the module work at the end, and the device comes up as the kernel would have "
        "it",
        job=_provoked("storm {seconds}"),
        # CPUs are held, which is not to be reported: a machine that hangs is found by
        # its silence. A held walk of freed memory does not get away with it.
        cmdline="nowatchdog rcupdate.rcu_cpu_stall_timeout=300 slab_debug=FP",
        takes=("size", "seconds"),
        full=STORM,
        debug={"debug": STORM},
        taint=LIVE_PATCH,
    ),
    _faults(
        "hook-kasan",
        "which paths attach on a kernel with KASAN",
        "those that do not name the option, once in the log, and stay off; the others "
        "attach, and the module goes",
        job=("hook_kasan",),
        full=(),
        debug={"kasan": ("",)},
        modules=(),
        kind="kasan",
    ),
    _faults(
        "hook-kobject",
        "the module comes and goes, fails to load and is held on to where every "
        "kobject is released late",
        "nothing is freed that lives on, and it loads again at once; device-private "
        "memory comes up as the kernel would have it",
        job=_provoked("hook_kobject", device="private {size}"),
        full=(),
        debug={"debug-kobject": ("",)},
        modules=(),
        seconds=300,
        kind="debug-kobject",
    ),
)
