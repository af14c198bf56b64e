# SPDX-License-Identifier: GPL-2.0-only
"""How much is measured if nobody says."""

import argparse

FULL_ROUNDS, FULL_PROCESSES = 5, 6  # of six the range is an interval
QUICK_ROUNDS, QUICK_PROCESSES = 3, 3
FULL_SIZE, QUICK_SIZE = "100G", "16G"
POPULATE_PROCESSES = 7  # six of them carry an interval


def repeats(args: argparse.Namespace) -> tuple[int, int]:
    """Return how many rounds and processes are asked for."""
    rounds, processes = QUICK_ROUNDS, QUICK_PROCESSES
    if not args.quick:
        rounds, processes = FULL_ROUNDS, FULL_PROCESSES
    return (
        rounds if args.rounds is None else args.rounds,
        processes if args.processes is None else args.processes,
    )
