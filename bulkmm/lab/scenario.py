# SPDX-License-Identifier: GPL-2.0-only
"""The lab's scenarios; their names are the interface."""

from dataclasses import dataclass

from bulkmm.errors import unknown
from bulkmm.lab.machine import kinds
from bulkmm.lab.machine.arch import X86_64, Arch


@dataclass(frozen=True)
class Scenario:
    """What a scenario measures and what it needs."""

    name: str
    family: str  # PMEM, CLEAR, VMAP, ...: what writes the job and reads the report
    measures: str
    check: str
    seconds: int  # for one run at full size under TCG, set-up apart
    published: tuple[str, ...] = ()
    memory: int = 4096  # MiB of the guest
    modules: tuple[str, ...] = ()  # the kernel's own that the guest needs
    devices: tuple[str, ...] = ()  # of QEMU, on x86-64
    cpu: str = ""  # likewise; none: the architecture's default
    mode: str = ""  # PMEM: of the namespace, fsdax or devdax; or private
    size: str = "100G"  # PMEM: of the device, if the user names none
    perf: bool = False  # the guest has the kernel's perf
    counted: bool = False  # time is what the guest's CPU did, not what passed
    marked: bool = False  # TCG: the work of its operations is counted
    faults: bool = False  # PMEM: runs faults.sh on a test build, measures nothing
    series: tuple[str, ...] = ()  # of kernels that have what it needs; none: all
    stock: bool = False  # the kernels that the lab builds lack what it needs
    upstream: str = ""  # a test of the kernel's own source, built as a module
    suite: str = ""  # programs of others that the guest has (machine/suites.py)
    taint: int = 0  # that what is done sets, besides that of loading modules
    warns: bool = False  # the kernel warns of what is done, between marks

    def lacking(self, kernel: str, arch: Arch) -> str:
        """Return why it does not run on a kernel of an architecture; "" if it does."""
        own = "the lab has perf" if self.perf else X86_64_ONLY.get(self.family)
        if own and arch is not X86_64:
            return f"{self.name}: {own} for x86_64 only"
        if self.stock and kinds.find(kernel):
            lack = f"the kernel {kernel} lacks what Debian's own has"
            if self.family == PACKAGES:
                lack = f"Debian has no packages of the kernel {kernel}"
            return f"{self.name}: {lack}"
        kind = kinds.find(kernel)
        if kind and kind.no_disks and "nd_pmem" in self.modules:
            return (
                f"{self.name}: its disk would be reported on the kernel {kernel}, "
                "which frees disks before what they hold is released"
            )
        names = (kernel, kinds.series(kernel))
        if self.series and not any(n.startswith(self.series) for n in names):
            return f"{self.name} needs kernel {' or '.join(self.series)}, not {kernel}"
        return ""

    def runs_on(self, kernel: str, arch: Arch = X86_64) -> bool:
        """Tell if a kernel, a series or a release, has what it needs."""
        return not self.lacking(kernel, arch)


PMEM, CLEAR, VMAP, PACKAGES, HMM = "pmem", "clear", "vmap", "packages", "hmm"
HOTPLUG, POPULATE, SUITES = "hotplug", "populate", "suites"
FAMILIES = (PMEM, HMM, CLEAR, VMAP, HOTPLUG, POPULATE, SUITES, PACKAGES)
X86_64_ONLY = {  # families, and what of theirs is
    POPULATE: "the lab has its machine",
    SUITES: "the suites are built",
    PACKAGES: "the packages are built",
}
LIVE_PATCH = 1 << 15  # the taint of one
NVDIMM = ("libnvdimm", "nfit", "nd_btt", "nd_pmem", "dax_pmem", "device_dax")
CHECK = (
    "every struct page and pageblock type byte for byte against the kernel's own; "
    "one word flipped must be seen; "
)
ZERO = (
    "every byte of every folio zero, by every way to fault, in every mode and with "
    "every backend forced; a planted byte must be seen; hits counted"
)
ZONES = (
    "after every step the node's zones, free lists and page types as without the "
    "module, and if the kernel takes them for contiguous; memory filled, moved away "
    "with its blocks, and read back"
)
MAPPED = (
    "random page arrays against a model: every entry's size and bits, the page behind "
    "every address, data both ways, nothing left; a wrong page must be seen"
)

SCENARIOS = (
    Scenario(
        name="pmem-fsdax-100g",
        family=PMEM,
        marked=True,
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
        marked=True,
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
        name="hmm-private-64g",
        family=PMEM,
        marked=True,
        mode="private",
        measures="memmap_init_zone_device() and the whole memremap_pages() of "
        "device-private memory",
        check=CHECK.removesuffix("; "),
        published=("the series: 3 % slower on a reviewer's AMD and Arrow Lake",),
        seconds=240,
        size="64G",
        series=("7.3",),
    ),
    Scenario(
        name="upstream-hmm",
        family=HMM,
        measures="nothing: the running kernel's own lib/test_hmm.c, a driver of "
        "device-private memory, to which pages migrate and from which they come back",
        check="every word, every page where it belongs, without the module and in "
        "every mode; a planted word must be seen; hits counted",
        seconds=60,
        memory=1024,
        series=("7.3",),
        upstream="test_hmm",
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
        name="hook-faults",
        family=PMEM,
        mode="fsdax",
        modules=NVDIMM,
        measures="nothing: what ftrace, symbols and a signal can do to a hook, on a "
        "test build",
        check="no warning; hook, mode and log say what is so; the machine works on, "
        "and the device comes up as the kernel would have it",
        seconds=90,
        size="2G",
        faults=True,
    ),
    Scenario(
        name="hook-kasan",
        family=PMEM,
        mode="fsdax",
        measures="nothing: which paths attach on a kernel with KASAN",
        check="those that do not name the option, once in the log, and stay off; the "
        "others attach, and the module goes",
        seconds=20,
        size="2G",
        faults=True,
        series=("kasan",),
    ),
    Scenario(
        name="hook-kobject",
        family=PMEM,
        mode="private",
        measures="nothing: the module comes and goes, fails to load and is held on to "
        "where every kobject is released late",
        check="nothing is freed that lives on, and it loads again at once; "
        "device-private memory comes up as the kernel would have it",
        seconds=300,
        size="2G",
        faults=True,
        series=("debug-kobject",),
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
        marked=True,
        measures="what a call of folio_zero_user() costs besides the stores",
        check="called on folios of 1 to 512 pages with hints at both ends and outside, "
        "in every mode and with every backend forced: all of it zero, nothing beside "
        "it changed; what is spoilt on purpose must be seen",
        seconds=40,
        memory=1024,
    ),
    Scenario(
        name="clear-populate",
        family=CLEAR,
        measures="nothing: which ways to bring a huge page in count as populating, "
        "those of devices and guests among them",
        check="each page bypasses the cache if it was populated, and is left in it if "
        "it was touched; with cached_max 0 all bypass it",
        seconds=60,
        memory=1024,
        modules=("kvm_amd", "vfio_pci", "vfio_iommu_type1"),
        stock=True,
        devices=("intel-iommu,intremap=off", "edu"),
    ),
    Scenario(
        name="mthp-pair",
        family=CLEAR,
        marked=True,
        measures="faulting in pages of 64 KiB on two CPUs at once",
        check="both at once, hits counted",
        seconds=60,
        memory=1024,
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
    Scenario(
        name="vmap-100m-order8",
        family=VMAP,
        marked=True,
        measures="vmap() of 100 MiB in blocks of order 8, as they are allocated",
        check=MAPPED,
        published=("RK3588: 1235 -> 149 us, 8.3x",),
        seconds=60,
        memory=1024,
    ),
    Scenario(
        name="vmap-128m-mixed",
        family=VMAP,
        marked=True,
        measures="vmap() of 128 MiB of orders 8, 4 and 0, as a dma-buf heap has them",
        check=MAPPED,
        published=("phone SoC: 42.5 -> 2.47 ms, 17x",),
        seconds=60,
        memory=1024,
    ),
    Scenario(
        name="vmap-order9",
        family=VMAP,
        marked=True,
        measures="vmap() of 100 MiB in compound pages of order 9",
        check=MAPPED,
        seconds=60,
        memory=1024,
    ),
    Scenario(
        name="vmap-order0",
        family=VMAP,
        marked=True,
        measures="vmap() of 16 MiB in scattered single pages",
        check=MAPPED,
        seconds=60,
        memory=1024,
    ),
    Scenario(
        name="vmap-1page",
        family=VMAP,
        marked=True,
        measures="vmap() of one page: the cost of the hooks",
        check=MAPPED,
        seconds=60,
        memory=1024,
    ),
    Scenario(
        name="vm_map_ram",
        family=VMAP,
        marked=True,
        measures="vm_map_ram() of 64 KiB and of 4 MiB",
        check=MAPPED,
        seconds=90,
        memory=1024,
    ),
    Scenario(
        name="vmalloc-1m",
        family=VMAP,
        marked=True,
        measures="mapping what vmalloc_huge() allocated (1 MiB, 4 MiB), and vmalloc() "
        "of 1 MiB as a whole",
        check=MAPPED,
        published=("RK3588, huge, mapping only: 5.00 -> 3.53 us, 1.42x",),
        seconds=120,
        memory=1024,
    ),
    Scenario(
        name="ioremap-1m",
        family=VMAP,
        marked=True,
        measures="ioremap() of 1 MiB as a whole, and its mapping alone",
        check=MAPPED,
        published=("RK3588: 3407 -> 2526 ns, 1.35x",),
        seconds=90,
        memory=1024,
    ),
    Scenario(
        name="vmap-check",
        family=VMAP,
        measures="nothing: 100000 page arrays of random shape, every public entry, "
        "parts unmapped and given other attributes",
        check=MAPPED,
        seconds=240,
        memory=1024,
    ),
    Scenario(
        name="vmap-faults",
        family=VMAP,
        measures="nothing: each page table refused in turn, bad requests, and two "
        "processes that map while modes and the module come and go",
        check="the original's answer, warning and state each time; " + MAPPED,
        seconds=60,
        memory=1024,
        warns=True,
    ),
    Scenario(
        name="upstream-vmalloc",
        family=VMAP,
        measures="nothing: the running kernel's own lib/test_vmalloc.c",
        check="the same verdicts without the module and in every mode",
        seconds=240,
        memory=2048,
        upstream="test_vmalloc",
    ),
    *(
        Scenario(
            name=f"hotplug-kmem-{size}g",
            family=HOTPLUG,
            mode="kmem",
            size=f"{size}G",
            modules=(*NVDIMM, "kmem"),
            measures=f"a DAX device of {size} GiB that becomes ordinary memory and "
            "ceases to be, by kmem: the whole operation, and by function",
            check=ZONES,
            seconds=seconds,
            marked=True,
        )
        for size, seconds in ((32, 150), (4, 40))
    ),
    *(
        Scenario(
            name=f"hotplug-virtio-mem-{size}g",
            family=HOTPLUG,
            mode="virtio",
            size=f"{size}G",
            modules=("virtio_mem",),
            measures=f"{size} GiB of virtio-mem plugged and unplugged: the whole "
            "operation, and by function",
            check=ZONES,
            published=("a series of 2026, 512 GB: plug 36 -> 7 s, unplug 36 -> 9 s",),
            seconds=seconds,
        )
        for size, seconds in ((32, 900), (4, 120))
    ),
    Scenario(
        name="hotplug-faults",
        family=HOTPLUG,
        mode="faults",
        size="4G",
        modules=(*NVDIMM, "nd_e820", "kmem", "virtio_mem"),
        measures="nothing: every fault of the hotplug path is provoked in a test build",
        check="each answer against the walk of the kernel's own function; the zones as "
        "without the module",
        seconds=120,
        faults=True,
        warns=True,
    ),
    Scenario(
        name="populate-guest",
        family=POPULATE,
        marked=True,
        modules=NVDIMM,
        measures="memory made resident by the kernel's ways and by libbulkmm, with "
        "the module and without",
        check="every byte zero; the module knows what is populated and what is "
        "touched; nodes, DAX, pages of 1 GiB, cgroups and a broken page, as the "
        "library reports them",
        seconds=150,
        memory=4096,  # an aligned GiB is left whole at boot
        stock=True,  # cgroups of every kind, and asking where pages lie
        warns=True,
    ),
    Scenario(
        name="coexist",
        family=SUITES,
        measures="nothing: other users of the functions that the module hooks, before "
        "and after it, with a path on and off: tracers, probes, BPF, a live patch; "
        "ftrace switched off; kexec into the same kernel",
        check="who shares sees every call, who does not is refused or refuses, and "
        "the module says so; every byte zero whoever clears",
        seconds=120,
        memory=1024,
        suite="coexist",
        stock=True,
        taint=LIVE_PATCH,
    ),
    Scenario(
        name="ndctl-odd",
        family=SUITES,
        modules=NVDIMM,
        measures="nothing: namespaces of odd sizes, several on one device, come up at "
        "once in memory that was filled before",
        check=CHECK.removesuffix("; "),
        seconds=150,
        memory=4096,
    ),
    Scenario(
        name="upstream-mm",
        family=SUITES,
        measures="nothing: the running kernel's own tests of memory management "
        "(tools/testing/selftests/mm)",
        check="each test's verdict, and how many of its own passed, as without the "
        "module: with every path on, and with huge pages cleared past the caches",
        seconds=2400,
        memory=4096,
        counted=True,  # tests have time limits
        suite="mm",
        stock=True,
    ),
    Scenario(
        name="stress",
        family=SUITES,
        modules=NVDIMM,
        measures="nothing: stress-ng with --verify, huge pages and a device that comes "
        "and goes, while paths, backends and the module change",
        check="all that was stored is read back, every byte of huge pages zero, every "
        "struct page as the kernel's own",
        seconds=60,
        memory=2048,
        suite="stress",
    ),
    Scenario(
        name="packages",
        family=PACKAGES,
        modules=("virtio_blk", "ext4"),
        stock=True,
        measures="nothing: the Debian packages are installed, upgraded and purged, "
        "and the module is kept inert by its boot parameter",
        check="DKMS builds the module for the running kernel, it loads and attaches; "
        "inert hooks no function; purging leaves no file",
        seconds=150,
        memory=2048,
    ),
)


def find(name: str) -> Scenario:
    """Return the scenario with this name."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    raise unknown("scenario", name, (s.name for s in SCENARIOS))
