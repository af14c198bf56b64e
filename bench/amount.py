# SPDX-License-Identifier: GPL-2.0-only
"""How much is measured by default, and at most."""

import argparse

from bulkmm.shell.errors import BulkmmError

FULL_ROUNDS, FULL_PROCESSES = 5, 6  # the range of six is a 95 % interval
QUICK_ROUNDS, QUICK_PROCESSES = 2, 6  # fewer prove nothing
MOST = 10000  # upper bound of the programs
SPARE = 64 << 20  # bytes for the program and the rest of the system


def read_repeats(args: argparse.Namespace) -> tuple[int, int]:
    """Return the requested rounds and processes."""
    rounds, processes = QUICK_ROUNDS, QUICK_PROCESSES
    if not args.quick:
        rounds, processes = FULL_ROUNDS, FULL_PROCESSES
    return (
        rounds if args.rounds is None else args.rounds,
        processes if args.processes is None else args.processes,
    )


def check_memory(nbytes: int, spare: int = SPARE) -> None:
    """Reject sizes that would exhaust the host's memory."""
    # takes long, and every help needs this file
    from bulkmm.results import host

    need = nbytes + spare >> 20
    have = host.memory_kib("MemAvailable")
    if have is not None and have >> 10 < need:
        raise BulkmmError(
            f"not enough memory: {need} MiB needed, {have >> 10} MiB available"
        )
