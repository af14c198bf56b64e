# SPDX-License-Identifier: GPL-2.0-only
"""What no bench is begun with: senseless numbers, and more than memory holds."""

from bulkmm import machine
from bulkmm.errors import BulkmmError, UsageError

MOST = 10000  # the programs' range
SPARE = 64 << 20  # bytes that the program and the rest of the system keep


def check_counts(**counts: int) -> None:
    """Refuse numbers of rounds or processes that measure nothing, or never end."""
    for what, number in counts.items():
        if not 1 <= number <= MOST:
            raise UsageError(f"{number} {what}: give 1 to {MOST}")


def check_memory(nbytes: int, spare: int = SPARE) -> None:
    """Refuse what would drive the host out of memory."""
    need = nbytes + spare >> 20
    have = machine.memory_kib("MemAvailable")
    if have is not None and have >> 10 < need:
        raise BulkmmError(
            f"not enough memory: {need} MiB needed, {have >> 10} MiB available"
        )
