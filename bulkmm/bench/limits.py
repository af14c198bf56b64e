# SPDX-License-Identifier: GPL-2.0-only
"""Reject senseless numbers, and sizes that exceed memory, before a bench starts."""

from bulkmm import machine
from bulkmm.errors import BulkmmError, UsageError

MOST = 10000  # upper bound of the programs
SPARE = 64 << 20  # bytes for the program and the rest of the system


def check_counts(**counts: int) -> None:
    """Reject numbers of rounds or processes that measure nothing, or never end."""
    for what, number in counts.items():
        if not 1 <= number <= MOST:
            raise UsageError(f"{number} {what}: give 1 to {MOST}")


def check_memory(nbytes: int, spare: int = SPARE) -> None:
    """Reject sizes that would exhaust the host's memory."""
    need = nbytes + spare >> 20
    have = machine.memory_kib("MemAvailable")
    if have is not None and have >> 10 < need:
        raise BulkmmError(
            f"not enough memory: {need} MiB needed, {have >> 10} MiB available"
        )
