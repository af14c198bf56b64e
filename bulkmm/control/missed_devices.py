# SPDX-License-Identifier: GPL-2.0-only
"""Struct pages that were built before the module was there.

While memmap is on, the module counts every call of memmap_init_zone_device(), served
or not, and no device comes up without one (pagemap_range() in mm/memremap.c, 6.12 and
7.3). So if there are more devices than calls, the rest came up without the module: at
least as much memory as the smallest have. A device that came up twice hides another
one, and so does one that sysfs has no size of (device-private memory).
"""

import re
from collections.abc import Iterable, Iterator

from bulkmm.control import module as modules
from bulkmm.control.format import format_size
from bulkmm.control.system_files import SystemFiles

SECTOR = 512
PAGE = 4096  # of x86-64; with larger ones there are fewer struct pages
ZONE = re.compile(r"zone +Device\n(?:(?!Node ).*\n)*? +spanned +(\d+)")
SMALLEST = 512 << 20  # memmap_min_pages (module/memmap.c)
DISKS = "/sys/block"
DRIVERS = "/sys/bus/dax/drivers"
DAX = ("device_dax", "fsdev_dax")  # kmem makes RAM of it


def describe_missed(root: SystemFiles) -> str:
    """Return how much memory came up without the module; "" if none is known to."""
    late, total, module = measure_missed(root)
    if not late:
        return ""
    when = (
        "before the module was loaded or memmap was on" if module else "without bulkmm"
    )
    of = f" of {format_size(total)}" if late < total else ""
    return f"struct pages of {format_size(late)}{of} were built {when}"


def measure_missed(root: SystemFiles) -> tuple[int, int, modules.Module | None]:
    """Return bytes of devices that the module has missed, of all, and the module.

    Of those only that it serves.
    """
    devices = sorted(_list_devices(root))
    module = modules.read_module(root)
    missed = devices[: max(len(devices) - count_calls(module), 0)]
    return _sum_large(missed), _sum_large(devices), module


def measure_served(root: SystemFiles) -> int:
    """Return bytes of devices that the module serves, or would."""
    devices = list(_list_devices(root))
    return _sum_large(devices) if devices else _sum_large([zone_bytes(root)])


def _sum_large(sizes: Iterable[int]) -> int:
    """Return the bytes of devices that are not too small to be served."""
    return sum(nbytes for nbytes in sizes if nbytes >= SMALLEST)


def zone_bytes(root: SystemFiles) -> int:
    """Return what zone Device spans, where no file names the devices (GPUs)."""
    zones = ZONE.findall(f"{root.read('/proc/zoneinfo') or ''}\n")
    return sum(map(int, zones)) * PAGE


def count_calls(module: modules.Module | None) -> int:
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
