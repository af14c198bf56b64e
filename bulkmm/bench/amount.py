# SPDX-License-Identifier: GPL-2.0-only
"""How much is measured by default."""

import argparse

FULL_ROUNDS, FULL_PROCESSES = 5, 6  # the range of six is a 95 % interval
QUICK_ROUNDS, QUICK_PROCESSES = 3, 3
FULL_SIZE, QUICK_SIZE = "100G", "16G"
POPULATE_PROCESSES = 7  # six are enough for an interval


def repeats(args: argparse.Namespace) -> tuple[int, int]:
    """Return the requested rounds and processes."""
    rounds, processes = QUICK_ROUNDS, QUICK_PROCESSES
    if not args.quick:
        rounds, processes = FULL_ROUNDS, FULL_PROCESSES
    return (
        rounds if args.rounds is None else args.rounds,
        processes if args.processes is None else args.processes,
    )
