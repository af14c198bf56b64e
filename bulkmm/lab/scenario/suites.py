# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios that run tests and programs of others, and the Debian packages."""

from functools import partial

from bulkmm.lab.scenario.declaration import LACKING, LIVE_PATCH, NVDIMM, Scenario
from bulkmm.lab.scenario.memmap import CHECK
from bulkmm.size import GIB, MIB

STEP = 16 * MIB  # of the sizes of odd namespaces
MOST, LARGEST = 6, 80  # of them on a device, and steps of each

# of the kernel's tests, those of what the patches in upstream/ change; "hugetlb" and
# "userfaultfd" fault for hours where that is emulated
TOUCHED = "--part cow --part compaction --seconds 20"

_suite = partial(
    Scenario,
    family="suites",
    path="suites",
    measures=False,
    x86_only="the suites are built",
)

SCENARIOS = (
    _suite(
        "coexist",
        "other users of the functions that the module hooks, before and after it, with "
        "a path on and off: tracers, probes, BPF, a live patch; ftrace switched off; "
        "kexec into the same kernel",
        "shared users see every call; an exclusive user is refused, or causes a "
        "refusal, and the module says so; every byte zero whoever clears",
        work="families.suites:Coexist",
        takes=("parts",),
        seconds=120,
        memory=1024,
        suite="coexist",
        lacking_debug=LACKING,
        taint=LIVE_PATCH,
    ),
    _suite(
        "ndctl-odd",
        "namespaces of odd sizes, several on one device, come up at once in memory "
        "that was filled before",
        CHECK,
        work="families.suites:Odd",
        takes=("rounds", "seed", "break_one_word"),
        rounds=4,
        modules=NVDIMM,
        size=(MOST * LARGEST + 1) * STEP,
        # an idle device may be written by physical address
        cmdline="init_on_alloc=0 iomem=relaxed",
        seconds=150,
    ),
    _suite(
        "upstream-mm",
        "the running kernel's own tests of memory management "
        "(tools/testing/selftests/mm)",
        "each test's verdict, and how many of its own passed, as without the module: "
        "with every path on, and with huge pages cleared past the caches",
        work="families.suites:Mm",
        takes=("parts", "seconds"),
        full=("--seconds 20",),
        debug={"patched": (TOUCHED,)},
        seconds=2400,
        counted=True,  # tests have time limits
        suite="mm",
        lacking_debug=LACKING,
    ),
    _suite(
        "stress",
        "stress-ng with --verify, huge pages, hugetlb pages that are copied and a "
        "device that comes and goes, while paths, backends and the module change",
        "all that was stored is read back, every byte of huge pages zero, every copy "
        "as the model has it, every struct page as the kernel's own",
        work="families.suites:Stress",
        job=("modules bulkmm_lab", "namespace fsdax dev 2M", "stress {seconds}"),
        takes=("seconds",),
        modules=NVDIMM,
        size=2 * GIB,
        cmdline="init_on_alloc=0",
        seconds=60,
        memory=2048,
        suite="stress",
    ),
    Scenario(
        "packages",
        "the Debian packages are installed, upgraded and purged, and the module is "
        "kept inert by its boot parameter",
        "DKMS builds the module for the running kernel, it loads and attaches; inert "
        "hooks no function; purging leaves no file",
        family="packages",
        work="families.packages:Work",
        path="packages",
        measures=False,
        takes=("no_upgrade",),
        full=(),
        modules=("virtio_blk", "ext4"),
        cmdline="bulkmm.inert=1",  # the rescue switch
        disk=True,
        lacking_debug="Debian has no packages of the kernel {kernel}",
        x86_only="the packages are built",
        seconds=150,
        memory=2048,
    ),
)
