# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor``: what it says of the machine, and whether there is work for it."""

import mmap
from collections.abc import Callable

import pytest
from commandlib import ROOT, Command
from fakekernel import CONFIG, OLD, RELEASE, RELEASED, Fake, load_module, make_pool

from bulkmm.control import devices, doctor
from bulkmm.control.system_files import SystemFiles
from bulkmm.worth import gain

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
OF_SIZE = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled"
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
DAX, SIZE = "/sys/block/pmem0/queue/dax", "/sys/block/pmem0/size"
ZONE = "/proc/zoneinfo"
SPANNED = "Node 0, zone   Device\n  pages free     0\n        spanned  131072\n"
MADVISE = "always [madvise] never"


def list_early(root: SystemFiles) -> list[gain.Early]:
    """Return what worth says of devices."""
    return gain.estimate_early(root, gain.Figures("", {}))


def test_devices_that_were_up_before_the_module(kernel: Fake, bulkmm: Command) -> None:
    def get_message() -> str:
        checks = bulkmm("doctor", "--json").json["checks"]
        return next((c["says"] for c in checks if c["name"] == "device memory"), "")

    def disk(name: str, gib: int, dax: int) -> None:
        kernel.write(f"/sys/block/{name}/size", str(gib << 21))
        kernel.write(f"/sys/block/{name}/queue/dax", str(dax))

    disk("vda", 50, 1)
    disk("pmem0s", 3, 0)  # a sector namespace has none
    assert not get_message()
    disk("pmem1", 100, 1)
    driver = "/sys/bus/dax/drivers/device_dax"
    kernel.write(f"{driver}/dax0.0/size", str(2 << 30))
    kernel.write(f"{driver}/new_id", "")
    assert get_message() == "struct pages of 102 GiB were built without bulkmm"
    load_module(kernel)
    late = "were built before the module was loaded or memmap was on"
    kernel.counters("memmap", hits=0, fallback_off=0, fallback_small=0)
    assert get_message() == f"struct pages of 102 GiB {late}"
    kernel.counters("memmap", fallback_small=1)
    assert get_message() == f"struct pages of 2 GiB of 102 GiB {late}"
    kernel.counters("memmap", hits=1)
    assert not get_message()


def test_memory_of_gpus_is_one_device(kernel: Fake, bulkmm: Command) -> None:
    def list_lines() -> list[str]:
        lines = bulkmm("doctor").out.splitlines()
        return [line for line in lines if "struct pages of 512 MiB were built" in line]

    kernel.write(ZONE, SPANNED)
    assert len(list_lines()) == len(list_early(SystemFiles(kernel.root))) == 1
    load_module(kernel)
    kernel.counters("memmap", hits=0, fallback_off=0, fallback_small=0)
    assert len(list_lines()) == len(list_early(SystemFiles(kernel.root))) == 1
    kernel.counters("memmap", hits=1)
    assert not list_lines()
    assert not list_early(SystemFiles(kernel.root))


@pytest.mark.parametrize("find", [doctor.examine_kernel, list_early])
def test_devices_are_listed_once(
    kernel: Fake,
    monkeypatch: pytest.MonkeyPatch,
    find: Callable[[SystemFiles], object],
) -> None:
    """On a machine with thousands of them, each has files."""
    kernel.write(DAX, "1")
    kernel.write(SIZE, str(512 << 11))
    lists: list[str] = []
    names = SystemFiles.names
    monkeypatch.setattr(
        SystemFiles, "names", lambda self, name: lists.append(name) or names(self, name)
    )
    assert "512 MiB" in str(find(SystemFiles(kernel.root)))
    places = (devices.DISKS, f"{devices.DRIVERS}/device_dax")
    assert [lists.count(place) for place in places] == [1, 1]


def test_the_smallest_device_is_the_modules() -> None:
    source = (ROOT / "module" / "memmap.c").read_text()
    size = f"{devices.SMALLEST // mmap.PAGESIZE} = 512 MiB on x86-64"
    assert f"default: four sections, {size}" in source


@pytest.mark.parametrize(
    ("files", "verdict", "paths"),
    [
        ({}, "not needed", []),
        ({THP: MADVISE, "/proc/cmdline": "init_on_alloc=0"}, "not needed", []),
        ({THP: MADVISE, OF_SIZE: "[inherit] never"}, "maybe", ["alloc"]),
        ({THP: MADVISE, OF_SIZE: "inherit [never]"}, "not needed", []),
        ({RELEASED: OLD, THP: MADVISE}, "maybe", ["clear"]),
        ({THP: MADVISE, POOL: "64"}, "load", ["alloc", "clear"]),
        ({POOL: "64"}, "load", ["clear"]),
        ({DAX: "1", SIZE: str((512 << 11) - 1)}, "not needed", []),
        ({DAX: "1", SIZE: str((512 << 11) - 1), ZONE: SPANNED}, "not needed", []),
        ({DAX: "1", SIZE: str(512 << 11)}, "load", ["memmap"]),
        ({ZONE: SPANNED}, "load", ["memmap"]),
        ({ZONE: SPANNED.replace("131072", "131071")}, "not needed", []),
        ({"/sys/bus/virtio/drivers/virtio_mem/virtio5": ""}, "load", ["hotplug"]),
        ({RELEASED: "99.1.1-amd64", POOL: "64"}, "wait", ["clear"]),
    ],
)
def test_whether_this_machine_has_work_for_it(
    kernel: Fake, bulkmm: Command, files: dict[str, str], verdict: str, paths: list[str]
) -> None:
    kernel.write(f"/boot/config-{OLD}", kernel.read(CONFIG))
    for name, text in files.items():
        kernel.write(name, text)
    fit = bulkmm("doctor", "--json").json["fit"]
    assert fit["verdict"] == verdict, fit
    assert [
        why.replace(":", " ").split()[0] for why in fit["reasons"] if paths
    ] == paths


def test_work_that_the_kernel_does_itself(kernel: Fake, bulkmm: Command) -> None:
    kernel.write(POOL, "64")
    symbols = kernel.read("/proc/kallsyms")
    kernel.write("/proc/kallsyms", f"{symbols}\n0 T __clear_pages_nt")
    why = "clear: a pool of 128 MiB in 2M pages, but the kernel does this work itself"
    fit = bulkmm("doctor", "--json").json["fit"]
    assert fit == {"verdict": "not needed", "reasons": [why]}
    kernel.write(DAX, "1")
    kernel.write(SIZE, str(512 << 11))
    fit = bulkmm("doctor", "--json").json["fit"]
    assert fit["verdict"] == "load"
    assert [why.partition(":")[0] for why in fit["reasons"]] == ["memmap"]


def test_a_pool_that_is_not_ready_and_what_makes_it_so(
    kernel: Fake, bulkmm: Command
) -> None:
    def get_reasons() -> list[str]:
        reasons = bulkmm("doctor", "--json").json["fit"]["reasons"]
        return [why for why in reasons if why.startswith("prezero: ")]

    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 0)})
    cleared = "free 2M pages are cleared when a program takes them"
    remedy = "bulkmm on prezero, then bulkmm pool zero"
    off = f"prezero: at least 10 of 10 {cleared}: {remedy}"
    assert get_reasons() == [off]
    # a remedy that cannot work is none
    kernel.write(RELEASED, "99.1.1-amd64")
    no_use = f"prezero: at least 10 of 10 {cleared}, but it does not attach here"
    assert get_reasons() == [no_use]
    kernel.write(RELEASED, RELEASE)
    load_module(kernel)
    assert get_reasons() == [off]
    kernel.write("/sys/kernel/bulkmm/prezero/mode", "off [on]")
    kernel.write("/sys/kernel/bulkmm/prezero/known", "2048 0 5\n2048 1 4")
    assert get_reasons() == [f"prezero: at least 1 of 10 {cleared}: bulkmm pool zero"]
    kernel.write("/sys/kernel/bulkmm/prezero/known", "2048 0 6\n2048 1 4")
    assert not get_reasons()


@pytest.mark.parametrize(
    ("release", "pool", "size"),
    [
        (OLD, "1048576kB 1", "1 GiB"),
        (RELEASE, "64kB 16", "64 KiB"),
        (RELEASE, "1048576kB 0", ""),
        (RELEASE, "2048kB 16", ""),
        ("6.1.0-56-cloud-amd64", "1048576kB 1", "1 GiB"),
        ("6.12.117+deb13-amd64", "1048576kB 1", "1 GiB"),
        ("6.12.118+deb13-amd64", "1048576kB 1", ""),
        ("5.10.0-40-amd64", "1048576kB 1", ""),
    ],
)
def test_pages_that_fork_loses(
    kernel: Fake, bulkmm: Command, release: str, pool: str, size: str
) -> None:
    kernel.write(RELEASED, release)
    name, pages = pool.split()
    kernel.write(f"/sys/kernel/mm/hugepages/hugepages-{name}/nr_hugepages", pages)
    checks = bulkmm("doctor", "--json").json["checks"]
    forks = [check for check in checks if check["name"] == "hugetlb and fork"]
    assert [check["state"] for check in forks] == (["care"] if size else [])
    assert all(check["says"].endswith(f" of {size}") for check in forks)
