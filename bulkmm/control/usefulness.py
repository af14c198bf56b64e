# SPDX-License-Identifier: GPL-2.0-only
"""Whether this machine has work for the module (docs/worth.md)."""

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bulkmm.control import module as modules
from bulkmm.control import requirements
from bulkmm.control.devices import SMALLEST, Devices
from bulkmm.control.format import format_size
from bulkmm.control.kernel import Kernel
from bulkmm.control.pools import TOTAL, Pool, list_page_sizes
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.size import KIB, name_size

LOAD, MAYBE, WAIT = "load", "maybe", "wait"
NOT_NEEDED, UNKNOWN = "not needed", "unknown"
MEANINGS = {
    LOAD: "there is work for it",
    MAYBE: "count with bulkmm worth",
    WAIT: "there is work for it, but the paths that would do it do not attach",
    NOT_NEEDED: "there is no work for it",
    UNKNOWN: "too little can be read",
}
NOTHING = (
    f"no devices of {format_size(SMALLEST)} or more with struct pages, no huge pages "
    "to zero, no memory that grows"
)
MEMORY = "/sys/kernel/mm"  # every kernel has it
# Since then folio_zero_user() clears in ranges (mm/memory.c), and touched pages gain
# nothing any more.
RANGES_SINCE = "7.0"
HOME = "/sys/kernel/mm/transparent_hugepage"
# that of a size, since 6.8, goes before that of all, which it may inherit
THP = (f"{HOME}/hugepages-2048kB/enabled", f"{HOME}/enabled")
# devices that become RAM, by who drives them
GROWING = {
    "kmem devices": "/sys/bus/dax/drivers/kmem",
    "virtio-mem": "/sys/bus/virtio/drivers/virtio_mem",
    "CXL memory": "/sys/bus/cxl/drivers/cxl_mem",
}


@dataclass(frozen=True)
class Fit:
    """The answer, and why."""

    verdict: str
    reasons: list[str]


@dataclass(frozen=True)
class Use:
    """Work for a path."""

    path: str
    why: str
    remedy: str = ""  # what has to be done for it besides, where the path attaches
    sure: bool = True  # else only counting tells how much there is


def judge_usefulness(
    kernel: Kernel, devices: Devices, attach: Mapping[str, bool | None]
) -> Fit:
    """Return the answer; ``attach`` says which paths would, None if unknown.

    It has no path whose work the kernel does itself.
    """
    used = list(dict.fromkeys(_list_uses(kernel, devices)))
    ready = [use for use in used if attach.get(use.path)]
    reasons = [f"{use.path}: {use.why}{use.remedy}" for use in ready]
    doubtful = [
        f"{use.path}: {use.why}, but whether it attaches is unknown"
        for use in used
        if attach.get(use.path, False) is None
    ]
    later = [
        f"{use.path}: {use.why}, but it does not attach here"
        for use in used
        if attach.get(use.path) is False
    ]
    if ready:
        verdict = LOAD if any(use.sure for use in ready) else MAYBE
        return Fit(verdict, reasons + doubtful + later)
    if doubtful:
        return Fit(UNKNOWN, doubtful + later)
    if later:
        return Fit(WAIT, later)
    if not kernel.root.is_dir(MEMORY):
        return Fit(UNKNOWN, [f"there is no {MEMORY}: {modules.MOUNT}"])
    replaced = [
        f"{use.path}: {use.why}, but the kernel does this work itself"
        for use in used
        if use.path not in attach
    ]
    return Fit(NOT_NEEDED, replaced or [NOTHING])


def _list_uses(kernel: Kernel, devices: Devices) -> Iterator[Use]:
    """Yield what work there is, and for which path."""
    root = kernel.root
    if devices.size:
        yield Use("memmap", f"{format_size(devices.size)} of devices have struct pages")
    words = [modules.read_choice(root, file) for file in THP]
    thp = next((one for one in words if one not in ("", "inherit")), "never")
    if thp != "never":
        if kernel.zeroing == "allocator":
            why = f"transparent huge pages ({thp}), allocator zeroes"
            yield Use("alloc", why, sure=False)
        elif not requirements.is_at_least(kernel.release, RANGES_SINCE):
            yield Use("clear", f"transparent huge pages ({thp})", sure=False)
    for page in list_page_sizes(root):
        pool = Pool(root, page)
        if count := pool.read(TOTAL):
            size = format_size(count * page)
            yield Use("clear", f"a pool of {size} in {name_size(page)} pages")
            yield from _not_ready(pool)
    for driver, place in GROWING.items():
        if any(name[-1:].isdigit() for name in root.names(place)):
            yield Use("hotplug", driver)


def _not_ready(pool: Pool) -> Iterator[Use]:
    """Yield what of a pool would be cleared when a program takes it, and the remedy.

    A broken page that stays in the pool is never taken, nor can it be zeroed.
    """
    if (count := pool.count_uncleared()) > _broken_pages(pool.root):
        free = pool.count_free()
        on = modules.read_choice(pool.root, f"{modules.HOME}/prezero/mode") == "on"
        remedy = "" if on else "bulkmm on prezero, then "
        yield Use(
            "prezero",
            f"at least {count} of {free} free {name_size(pool.page)} pages are cleared "
            "when a program takes them",
            f": {remedy}bulkmm pool zero",
        )


def _broken_pages(root: SystemFiles) -> int:
    """Return how many small pages had memory errors, each in a page of its own."""
    for line in root.lines("/proc/meminfo"):
        name, _, amount = line.partition(":")
        if name == "HardwareCorrupted":
            return int(amount.split()[0]) * KIB // mmap.PAGESIZE
    return 0
