# SPDX-License-Identifier: GPL-2.0-only
"""Devices with struct pages, and those that came up before the module was there.

While memmap is on, the module counts every call of memmap_init_zone_device(), served
or not, and no device comes up without one (pagemap_range() in mm/memremap.c, 6.12 and
7.3). So if there are more devices than calls, the rest came up without the module: at
least as much memory as the smallest have. A device that came up twice hides another
one, and so does device-private memory (GPUs), which sysfs does not list: if there is
nothing else, zone Device is taken for one device.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bulkmm.control import module as modules
from bulkmm.control.system_files import SystemFiles

SECTOR = 512
PAGE = 4096  # of x86-64; with larger ones there are fewer struct pages
ZONE = re.compile(r"zone +Device\n(?:(?!Node ).*\n)*? +spanned +(\d+)")
# Devices below it fall back to the kernel (memmap_min_pages in module/memmap.c): their
# struct pages are still in the cache, where stores that bypass it gain nothing.
SMALLEST = 512 << 20
DISKS = "/sys/block"
DRIVERS = "/sys/bus/dax/drivers"
DAX = ("device_dax", "fsdev_dax")  # kmem makes RAM of it


@dataclass(frozen=True)
class Devices:
    """Bytes of those devices that are large enough for the module."""

    size: int
    early_size: int  # of those that came up before the module


def survey_devices(root: SystemFiles, module: modules.Module | None) -> Devices:
    """Return what devices there are, and what of them came up before the module."""
    sizes = sorted(_list_devices(root)) or [_measure_zone(root)]
    early = sizes[: max(len(sizes) - _count_calls(module), 0)]
    return Devices(size=_sum_large(sizes), early_size=_sum_large(early))


def _sum_large(sizes: Iterable[int]) -> int:
    """Return the bytes of devices that are not too small to be served."""
    return sum(nbytes for nbytes in sizes if nbytes >= SMALLEST)


def _measure_zone(root: SystemFiles) -> int:
    """Return the bytes that zone Device spans."""
    zones = ZONE.findall(f"{root.read('/proc/zoneinfo') or ''}\n")
    return sum(map(int, zones)) * PAGE


def _count_calls(module: modules.Module | None) -> int:
    """Return how many devices, or parts of them, the module has seen come up."""
    path = module.path("memmap") if module else None
    return path.counters.get("hits", 0) + sum(path.fallbacks.values()) if path else 0


def _list_devices(root: SystemFiles) -> Iterator[int]:
    """Yield the bytes of each device that has struct pages."""
    for name in root.names(DISKS):
        # a disk of persistent memory has struct pages if it can be mapped
        if name.startswith("pmem") and root.read(f"{DISKS}/{name}/queue/dax") == "1":
            yield SECTOR * int(root.read(f"{DISKS}/{name}/size") or 0)
    for driver in DAX:
        for name in root.names(f"{DRIVERS}/{driver}"):
            yield int(root.read(f"{DRIVERS}/{driver}/{name}/size") or 0)
