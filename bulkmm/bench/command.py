# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: measure the core natively on this machine: the options."""

from bulkmm import options
from bulkmm.bench import amount
from bulkmm.native import command as native

RUN = "bulkmm.bench.run"
HOW = """In several processes, each with fresh memory and an order of its own; in each
round of a process every variant runs once, in random order. Every output is
verified."""
POPULATE = """Time the ways to make memory resident, by kind of page: memset,
MAP_POPULATE, MADV_POPULATE_WRITE by one thread and by plain shares of several, bulkmm
by at most so many threads, QEMU's prealloc where it is installed; memory that is
already resident; and the limit of the stores. Each sample is a process of its own."""
BACKEND = "--backend NAME  force bulkmm to use this backend"
SIZE = f"""--size SIZE  set the size of the device (default: {amount.FULL_SIZE}, --quick
    {amount.QUICK_SIZE})"""
# per command: help, description, example, additional arguments
WHAT = {
    "memmap": (
        "time the ways to initialise the struct pages of a device",
        """Time the ways to initialise the struct pages of a device: rebuilt one by
        one as the kernel does it, copied from a template as published, stamped by
        bulkmm with each backend, and the limit of what stores can do.""",
        "--quick --size 4G",
        f"{SIZE}\n{BACKEND}",
    ),
    "clear": (
        "time the ways to zero memory, and what they cost its next user",
        """Time the ways to zero memory by extents of 4 KiB to 1 GiB: REP STOSB over
        the extent or page by page, glibc's memset, libpmem2, a plain loop, bulkmm
        leaving the extent in the cache or bypassing it; cold, hot, and with every
        extent read in order, written, or read in random order at once.""",
        "--quick -o clear.json",
        BACKEND,
    ),
    "copy": (
        "time the ways to copy memory, by size",
        """Time the ways to copy memory, from 4 KiB to 1 GiB at a time: glibc's
        memcpy, libpmem2, a plain loop, REP MOVSB, bulkmm; cold, hot and
        misaligned.""",
        "--quick --all-rows",
        BACKEND,
    ),
    "first-use": (
        "time what it costs to measure the backends at first use",
        """Time a gigabyte of work that begins with nothing measured, and the same
        work once calibration is done.""",
        "--quick",
        BACKEND,
    ),
    "all": (
        "measure all of these: one table, one result",
        "Measure memmap, clear, copy and first-use in one result.",
        "--quick -o a.json",
        "",
    ),
}
ENDS = f"""\
--quick  measure less of each
{options.JSON}
{options.SAMPLES}
--submit-file FILE  write the result without anything that tells whose machine it is,
    to be sent to the project (docs/contributing.md)
"""
OFTEN = f"""\
--processes N<1..{amount.MOST}>  run N processes (default: {amount.FULL_PROCESSES},
    --quick {amount.QUICK_PROCESSES})
--rounds N<1..{amount.MOST}>  run N rounds (default: {amount.FULL_ROUNDS}, --quick
    {amount.QUICK_ROUNDS})
"""
COMMON = f"{OFTEN}{options.ALL_ROWS}\n{ENDS}"
HISTORY = f"{OFTEN}{options.MARKDOWN}\n{ENDS}"
RESIDENT = f"""\
--size SIZE  populate so many bytes (default: 1G, --quick 256M)
--kind {{4k,thp,memfd,hugetlb}}...  measure these pages only; may be given again
--reserve  reserve huge pages for hugetlb while it runs (root)
--processes N<1..{amount.MOST}>  take N samples of each variant
{ENDS}"""


def add_parser(sub: options.Subparsers) -> None:
    """Add ``bench`` to the parser of the whole command."""
    bench = sub.add_parser("bench", help="measure natively on this machine")
    what = bench.add_subparsers(dest="bench", required=True, metavar="WHAT")

    def add(
        name: str, run: str, does: str, more: str, example: str, *tables: str
    ) -> None:
        parser = options.add(what, name, does, more, run=run, example=example)
        for table in filter(None, tables):
            options.take(parser, table)

    for name, (does, more, example, table) in WHAT.items():
        example = f"bulkmm bench {name} {example}"  # noqa: PLW2901 - the whole of it
        add(name, f"{RUN}:bench", does, f"{more} {HOW}", example, table, COMMON)
    residency = "time the ways to make memory resident, QEMU's too"
    example = "bulkmm bench populate --quick --kind thp"
    add("populate", f"{RUN}:populate", residency, POPULATE, example, RESIDENT)
    tables = (native.TABLE, COMMON)
    run = "bulkmm.native.run:kernel"
    add("kernel", run, native.DOES, native.ABOUT, native.EXAMPLE, *tables)
    what.choices["kernel"].set_defaults(**native.DEFAULTS)
    tables = (native.HISTORY, HISTORY)
    run, does = "bulkmm.native.history:history", native.HISTORY_DOES
    example = native.HISTORY_EXAMPLE
    add("history", run, does, native.HISTORY_ABOUT, example, *tables)
    reached = "tell which goals kept results reach"
    more = "Tell for each goal whether the ratios in kept results reach it."
    example = "bulkmm bench goals a.json"
    add("goals", f"{RUN}:goals", reached, more, example, options.RESULTS)
