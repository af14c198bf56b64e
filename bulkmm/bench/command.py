# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: measure the core natively on this machine: its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulkmm import options
from bulkmm.bench import amount
from bulkmm.native import command as native

if TYPE_CHECKING:
    import argparse

RUN = "bulkmm.bench.run"
HOW = (
    "In several processes, each with fresh memory and an order of its own; in each "
    "round of a process every variant runs once, in random order. Every output is "
    "verified."
)
POPULATE = (
    "Time the ways to make memory resident, by kind of page: memset, MAP_POPULATE, "
    "MADV_POPULATE_WRITE by one thread and by plain shares of several, bulkmm by at "
    "most so many threads, QEMU's prealloc and Java's AlwaysPreTouch where these are "
    "installed; memory that is resident already; and the limit of the stores. Each "
    "sample is a process of its own."
)
WHAT = {  # a phrase, sentences, an example
    "memmap": (
        "time the ways to initialise the struct pages of a device",
        (
            "Time the ways to initialise the struct pages of a device: rebuilt one "
            "by one as the kernel does it, copied from a template as published, "
            "stamped by bulkmm with each backend, and the limit of what stores can "
            "do."
        ),
        "--quick --size 4G",
    ),
    "clear": (
        "time the ways to zero memory, and what they cost its next user",
        (
            "Time the ways to zero memory by extents of 4 KiB to 1 GiB: REP STOSB "
            "over the extent or page by page, glibc's memset, libpmem2, a plain "
            "loop, bulkmm leaving the extent in the cache or bypassing it; cold, "
            "hot, and with every extent read in order, written, or read in random "
            "order at once."
        ),
        "--quick --plot clear.svg",
    ),
    "copy": (
        "time the ways to copy memory, by size",
        (
            "Time the ways to copy memory, from 4 KiB to 1 GiB at a time: glibc's "
            "memcpy, libpmem2, a plain loop, REP MOVSB, bulkmm; cold, hot and "
            "misaligned."
        ),
        "--quick --all-rows",
    ),
    "first-use": (
        "time what it costs to measure the backends at first use",
        (
            "Time a gigabyte of work that begins with nothing measured, and the "
            "same work once every backend is picked."
        ),
        "--quick",
    ),
    "all": (
        "measure all of these: one table, one result",
        "Measure memmap, clear, copy and first-use in one result.",
        "--quick -o a.json",
    ),
}


def add_parser(sub: options.Subparsers[Any]) -> None:
    """Add ``bench`` to the parser of the whole command."""
    bench = sub.add_parser("bench", help="measure natively on this machine")
    what = bench.add_subparsers(dest="bench", required=True, metavar="WHAT")
    for name, (does, about, example) in WHAT.items():
        said = f"bulkmm bench {name} {example}"
        parser = options.add(
            what, name, does, f"{about} {HOW}", run=f"{RUN}:bench", example=said
        )
        if name == "memmap":
            usual = f"{amount.FULL_SIZE}, --quick {amount.QUICK_SIZE}"
            parser.add_argument(
                "--size",
                metavar="SIZE",
                help=f"set the size of the device (default: {usual})",
            )
        if name != "all":
            parser.add_argument(
                "--backend", metavar="NAME", help="force bulkmm to use this backend"
            )
        _add_common(parser)
    _add_populate(what)
    _add_common(native.add_parser(what))
    goals = options.add(
        what,
        "goals",
        "tell which goals kept results reach",
        "Tell of each goal whether the ratios in kept results reach it.",
        run=f"{RUN}:goals",
        example="bulkmm bench goals a.json",
    )
    options.add_results(goals)


def _add_populate(what: options.Subparsers[Any]) -> None:
    parser = options.add(
        what,
        "populate",
        "time the ways to make memory resident, those of QEMU and Java among them",
        POPULATE,
        run=f"{RUN}:populate",
        example="bulkmm bench populate --quick --kind thp",
    )
    parser.add_argument(
        "--size",
        metavar="SIZE",
        help="populate so many bytes (default: 1G, --quick 256M)",
    )
    parser.add_argument(
        "--kind",
        action="append",
        choices=("4k", "thp", "memfd", "hugetlb"),
        help="measure this kind of pages only; may be given again",
    )
    parser.add_argument(
        "--reserve",
        action="store_true",
        help="reserve huge pages for hugetlb while it runs (root)",
    )
    parser.add_argument(
        "--processes", type=int, metavar="N", help="take N samples of each variant"
    )
    _add_ends(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    for name, full, quick in (
        ("processes", amount.FULL_PROCESSES, amount.QUICK_PROCESSES),
        ("rounds", amount.FULL_ROUNDS, amount.QUICK_ROUNDS),
    ):
        said = f"run N {name} (default: {full}, --quick {quick})"
        parser.add_argument(f"--{name}", type=int, metavar="N", help=said)
    parser.add_argument(
        "--all-rows", action="store_true", help="show every backend and limit too"
    )
    _add_ends(parser)


def _add_ends(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="measure less of each")
    options.add_json(parser)
    options.add_output(parser, "all samples, as JSON,")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE.svg",
        help="draw the samples, or throughput by size, into this file",
    )
