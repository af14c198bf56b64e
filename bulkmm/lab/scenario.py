# SPDX-License-Identifier: GPL-2.0-only
"""The lab's scenarios; their names are the interface."""

from dataclasses import dataclass
from functools import partial

from bulkmm.control.needs import at_least
from bulkmm.errors import unknown
from bulkmm.lab.machine import kinds
from bulkmm.lab.machine.arch import X86_64, Arch


@dataclass(frozen=True)
class Scenario:
    """What a scenario measures and what it needs."""

    name: str
    measures: str
    check: str
    family: str  # PMEM, CLEAR, VMAP, ...: implements job and checks
    seconds: int  # for one run at full size under TCG, without set-up
    published: tuple[str, ...] = ()
    memory: int = 4096  # MiB of the guest
    modules: tuple[str, ...] = ()  # kernel modules that the guest needs
    devices: tuple[str, ...] = ()  # of QEMU, on x86-64
    cpu: str = ""  # likewise; "": the architecture's default
    mode: str = ""  # PMEM: namespace mode, fsdax or devdax; or private
    size: str = "100G"  # PMEM: default size of the device
    counted: bool = False  # the guest's clock counts instructions
    marked: bool = False  # TCG: the work of its operations is counted
    faults: bool = False  # injected, into a test build; measures nothing
    production: bool = False  # faults: into a build for production
    since: str = ""  # the oldest kernel that supports it; "": all do
    kind: str = ""  # of the lab's own kernels: runs on no other
    stock: bool = False  # needs what the lab's own kernels lack
    upstream: str = ""  # a test from the kernel's source, built as a module
    suite: str = ""  # programs of others in the guest (machine/suites.py)
    taint: int = 0  # expected taint, besides that of loading modules
    warns: bool = False  # warnings are expected between marks

    @property
    def path(self) -> str:
        """Return the module's path that it tests, if any."""
        return PATHS.get(self.family, self.family)

    def lacking(self, kernel: str, arch: Arch) -> str:
        """Return why it cannot run on a kernel of an architecture; "" if it can."""
        own = X86_64_ONLY.get(self.family) or X86_64_ONLY.get(self.mode)
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
        if self.kind not in ("", kernel):
            return f"{self.name} needs kernel {self.kind}, not {kernel}"
        if self.since and not at_least(kinds.series(kernel), self.since):
            return f"{self.name} needs kernel {self.since} or later, not {kernel}"
        return ""

    def runs_on(self, kernel: str, arch: Arch = X86_64) -> bool:
        """Return whether it runs on a kernel, given as series or release."""
        return not self.lacking(kernel, arch)


PMEM, CLEAR, VMAP, PACKAGES, HMM = "pmem", "clear", "vmap", "packages", "hmm"
HOTPLUG, POPULATE, SUITES = "hotplug", "populate", "suites"
KMEM, VIRTIO, CXL, FAULTS = "kmem", "virtio", "cxl", "faults"  # modes of HOTPLUG
FAMILIES = (PMEM, HMM, CLEAR, VMAP, HOTPLUG, POPULATE, SUITES, PACKAGES)
PATHS = {PMEM: "memmap", HMM: "memmap", POPULATE: "clear"}  # others: same name
X86_64_ONLY = {  # family or mode: what of it is x86-64 only
    POPULATE: "the lab has its machine",
    SUITES: "the suites are built",
    PACKAGES: "the packages are built",
    CXL: "QEMU has CXL devices",
}
LIVE_PATCH = 1 << 15  # taint of a live patch
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

# defaults for the scenarios of a family
_nvdimm = partial(Scenario, family=PMEM, mode="fsdax", modules=NVDIMM)
_device = partial(_nvdimm, marked=True, seconds=60)
_faults = partial(_nvdimm, size="2G", faults=True, seconds=20)
_clear = partial(Scenario, family=CLEAR, seconds=60, memory=1024)
_zero = partial(_clear, check=ZERO, seconds=120)
_vmap = partial(Scenario, family=VMAP, check=MAPPED, seconds=60, memory=1024)
_mapped = partial(_vmap, marked=True)
_hotplug = partial(Scenario, family=HOTPLUG, check=ZONES)
_suite = partial(Scenario, family=SUITES)

SCENARIOS = (
    _device(
        "pmem-fsdax-100g",
        "memmap_init_zone_device() and the whole bind of nd_pmem",
        check=CHECK + "ext4 with DAX written and read back",
        published=(
            "v2 (7.1-rc3): 273.5 -> 111.1 ms",
            "v4 (7.1-rc6): 262.1 -> 108.4 ms, 2.42x",
            "v5 (7.2-rc1): 244.3 -> 96.8 ms, 2.52x",
        ),
    ),
    _device(
        "pmem-devdax-100g",
        "memmap_init_zone_device() and the whole bind of device_dax",
        check=CHECK + "the device mapped, written and read back",
        mode="devdax",
        published=(
            "v2 (7.1-rc3): 313.5 -> 110.2 ms",
            "v4 (7.1-rc6): 229.1 -> 100.2 ms, 2.29x",
            "v5 (7.2-rc1): 273.3 -> 119.0 ms, 2.30x",
        ),
    ),
    _device(
        "hmm-private-64g",
        "memmap_init_zone_device() and the whole memremap_pages() of device-private "
        "memory",
        check=CHECK.removesuffix("; "),
        mode="private",
        modules=(),
        published=("the series: 3 % slower on a reviewer's AMD and Arrow Lake",),
        seconds=240,
        size="64G",
        since="7.3",
    ),
    Scenario(
        "upstream-hmm",
        "nothing: the running kernel's own lib/test_hmm.c, a driver of device-private "
        "memory, to which pages migrate and from which they come back",
        "every word, every page where it belongs, without the module and in every "
        "mode; a planted word must be seen; hits counted",
        family=HMM,
        seconds=60,
        memory=1024,
        since="7.3",
        upstream="test_hmm",
    ),
    _faults(
        "pmem-faults",
        "nothing: every fault of the memmap path is provoked in a test build",
        "the kernel's own result, a counter and one line in the log each time",
    ),
    _faults(
        "pmem-verify",
        "nothing: memmap/verify in a build for production, of whose struct pages one "
        "is broken after stamping",
        "off does not see it; once and always do, keep the kernel's, count and log it, "
        "and serve none after it; a record of every device",
        production=True,
    ),
    _faults(
        "hook-faults",
        "nothing: what ftrace, symbols and a signal can do to a hook, on a test build",
        "no warning; hook, mode and log say what is so; the machine works on, and the "
        "device comes up as the kernel would have it",
        seconds=90,
    ),
    _faults(
        "hook-storm",
        "nothing: paths and the module come and go while tracers, a live patch, BPF "
        "and kprobes come and go on the same functions, and CPUs are held inside "
        "ftrace's list",
        "no warning; each of them succeeds now and then; huge pages zero; ftrace and "
        "the module work at the end, and the device comes up as the kernel would have "
        "it",
        taint=LIVE_PATCH,
    ),
    _faults(
        "hook-kasan",
        "nothing: which paths attach on a kernel with KASAN",
        "those that do not name the option, once in the log, and stay off; the others "
        "attach, and the module goes",
        modules=(),
        kind="kasan",
    ),
    _faults(
        "hook-kobject",
        "nothing: the module comes and goes, fails to load and is held on to where "
        "every kobject is released late",
        "nothing is freed that lives on, and it loads again at once; device-private "
        "memory comes up as the kernel would have it",
        mode="private",
        modules=(),
        seconds=300,
        kind="debug-kobject",
    ),
    _zero("thp-2m", "faulting in transparent huge pages of 2 MiB"),
    _zero("mthp", "faulting in transparent huge pages of 16 KiB to 1 MiB", seconds=300),
    _zero("hugetlb-2m", "faulting in hugetlb pages of 2 MiB"),
    _zero(
        "hugetlb-1g",
        "faulting in hugetlb pages of 1 GiB",
        seconds=600,
        memory=5120,  # two aligned GiB are left whole at boot
    ),
    _clear(
        "clear-cases",
        "what a call of folio_zero_user() costs besides the stores",
        "called on folios of 1 to 512 pages with hints at both ends and outside, in "
        "every mode and with every backend forced: all of it zero, nothing beside it "
        "changed; what is corrupted on purpose must be seen",
        seconds=40,
        marked=True,
    ),
    _clear(
        "clear-populate",
        "nothing: which ways to bring a huge page in count as populating, those of "
        "devices and guests among them",
        "each page bypasses the cache if it was populated, and is left in it if it was "
        "touched; with cached_max 0 all bypass it",
        modules=("kvm_amd", "vfio_pci", "vfio_iommu_type1"),
        stock=True,
        devices=("intel-iommu,intremap=off", "edu"),
    ),
    _clear(
        "mthp-pair",
        "faulting in pages of 64 KiB on two CPUs at once",
        "both at once, hits counted",
        marked=True,
    ),
    _clear(
        "clear-latency",
        "how late a real-time task gets the CPU on which hugetlb pages of 2 MiB and "
        "1 GiB are cleared: with targets of 10 ms and 1 ms",
        "the longest unit within 1.5 latency_us and a page, with each backend forced "
        "(kernels that do not preempt)",
        seconds=200,
        memory=4096,  # an aligned GiB is left whole at boot
        counted=True,
    ),
    _clear(
        "clear-faults",
        "nothing: modes, backends, unloading and the hugetlb pool change while four "
        "processes fault huge pages in",
        "every byte zero",
    ),
    _mapped(
        "vmap-100m-order8",
        "vmap() of 100 MiB in blocks of order 8, as they are allocated",
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
    _mapped("vm_map_ram", "vm_map_ram() of 64 KiB and of 4 MiB", seconds=90),
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
        published=("RK3588: 3407 -> 2526 ns, 1.35x",),
        seconds=90,
    ),
    _vmap(
        "vmap-check",
        "nothing: 100000 page arrays of random shape, every public entry, parts "
        "unmapped and given other attributes",
        seconds=240,
    ),
    _vmap(
        "vmap-faults",
        "nothing: each page table refused in turn, bad requests, and two processes "
        "that map while modes and the module come and go",
        check="the original's answer, warning and state each time; " + MAPPED,
        warns=True,
    ),
    _vmap(
        "upstream-vmalloc",
        "nothing: the running kernel's own lib/test_vmalloc.c",
        check="the same verdicts without the module and in every mode",
        seconds=240,
        memory=2048,
        upstream="test_vmalloc",
    ),
    *(
        _hotplug(
            f"hotplug-kmem-{size}g",
            f"a DAX device of {size} GiB that becomes ordinary memory and ceases to "
            "be, by kmem: the whole operation, and by function",
            mode=KMEM,
            size=f"{size}G",
            modules=(*NVDIMM, "kmem"),
            seconds=seconds,
            marked=True,
        )
        for size, seconds in ((32, 150), (4, 40))
    ),
    *(
        _hotplug(
            f"hotplug-virtio-mem-{size}g",
            f"{size} GiB of virtio-mem plugged and unplugged: the whole operation, and "
            "by function",
            mode=VIRTIO,
            size=f"{size}G",
            modules=("virtio_mem",),
            published=("a series of 2026, 512 GB: plug 36 -> 7 s, unplug 36 -> 9 s",),
            seconds=seconds,
        )
        for size, seconds in ((32, 900), (4, 120))
    ),
    _hotplug(
        "hotplug-cxl-4g",
        "a CXL device of 4 GiB whose memory becomes ordinary memory and ceases to be, "
        "by kmem: the whole operation, and by function",
        mode=CXL,
        size="4G",
        modules=("cxl_acpi", "cxl_pci", "cxl_mem", "dax_cxl", "kmem"),
        # no region starts where the kernel cannot flush caches, as in a guest
        cpu="max,hypervisor=off",
        seconds=60,
        marked=True,
        stock=True,
    ),
    _hotplug(
        "hotplug-faults",
        "nothing: every fault of the hotplug path is provoked in a test build",
        check="each answer against the walk of the kernel's own function; the zones as "
        "without the module",
        mode=FAULTS,
        size="4G",
        modules=(*NVDIMM, "nd_e820", "kmem", "virtio_mem"),
        seconds=120,
        faults=True,
        warns=True,
    ),
    Scenario(
        "populate-guest",
        "memory made resident by the kernel's ways and by libbulkmm, with the module "
        "and without",
        "every byte zero; the module knows what is populated and what is touched; "
        "nodes, DAX, pages of 1 GiB, cgroups and a broken page, as the library reports "
        "them",
        family=POPULATE,
        marked=True,
        modules=NVDIMM,
        seconds=150,
        memory=4096,  # an aligned GiB is left whole at boot
        stock=True,  # needs all cgroup controllers and page node queries
        warns=True,
    ),
    _suite(
        "coexist",
        "nothing: other users of the functions that the module hooks, before and after "
        "it, with a path on and off: tracers, probes, BPF, a live patch; ftrace "
        "switched off; kexec into the same kernel",
        "who shares sees every call, who does not is refused or refuses, and the "
        "module says so; every byte zero whoever clears",
        seconds=120,
        memory=1024,
        suite="coexist",
        stock=True,
        taint=LIVE_PATCH,
    ),
    _suite(
        "ndctl-odd",
        "nothing: namespaces of odd sizes, several on one device, come up at once in "
        "memory that was filled before",
        CHECK.removesuffix("; "),
        modules=NVDIMM,
        seconds=150,
    ),
    _suite(
        "upstream-mm",
        "nothing: the running kernel's own tests of memory management "
        "(tools/testing/selftests/mm)",
        "each test's verdict, and how many of its own passed, as without the module: "
        "with every path on, and with huge pages cleared past the caches",
        seconds=2400,
        counted=True,  # tests have time limits
        suite="mm",
        stock=True,
    ),
    _suite(
        "stress",
        "nothing: stress-ng with --verify, huge pages and a device that comes and "
        "goes, while paths, backends and the module change",
        "all that was stored is read back, every byte of huge pages zero, every struct "
        "page as the kernel's own",
        modules=NVDIMM,
        seconds=60,
        memory=2048,
        suite="stress",
    ),
    Scenario(
        "packages",
        "nothing: the Debian packages are installed, upgraded and purged, and the "
        "module is kept inert by its boot parameter",
        "DKMS builds the module for the running kernel, it loads and attaches; inert "
        "hooks no function; purging leaves no file",
        family=PACKAGES,
        modules=("virtio_blk", "ext4"),
        stock=True,
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
