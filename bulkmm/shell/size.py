# SPDX-License-Identifier: GPL-2.0-only
"""Sizes of memory, and as users write them."""

import re

from bulkmm.shell.errors import UsageError

PAGE = 4096
KIB, MIB, GIB, TIB = (1 << shift for shift in (10, 20, 30, 40))
UNITS = {"K": KIB, "M": MIB, "G": GIB, "T": TIB}
SECTION = 128 << 20  # of the memory map on x86-64: the least size of a device


def parse_size(text: str, largest: str) -> int:
    """Return the bytes of a size such as 100G, from a section to ``largest``."""
    size = parse_bytes(text, largest)
    if size < SECTION:
        raise UsageError(f"size {text} is below a section: at least 128M")
    return size


def parse_bytes(text: str, largest: str) -> int:
    """Return the bytes of a size such as 4K, up to ``largest``."""
    size = _parse_bytes(text)
    if size > _parse_bytes(largest):
        raise UsageError(f"size {text} is above the {largest} that is possible")
    return size


def name_size(nbytes: int) -> str:
    """Return a size as users write it: 2M, 1G."""
    unit = next(unit for unit in "TGMK" if nbytes % UNITS[unit] == 0)
    return f"{nbytes // UNITS[unit]}{unit}"


def _parse_bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,12})([KMGT])(?:i?B)?", text, re.IGNORECASE)
    if not match:
        raise UsageError(f"bad size {text}: give a number and K, M, G or T, as in 100G")
    return int(match[1]) * UNITS[match[2].upper()]
