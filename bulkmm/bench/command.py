# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: measure the core natively on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError, Exit
from bulkmm.native import command as native

if TYPE_CHECKING:
    import argparse

    from bulkmm import table
    from bulkmm.bench.subjects import Request
    from bulkmm.bench.take import Event
    from bulkmm.results import Document

FULL_ROUNDS, FULL_PROCESSES = 5, 5
QUICK_ROUNDS, QUICK_PROCESSES = 3, 3
FULL_SIZE, QUICK_SIZE = "100G", "16G"

POPULATE_PROCESSES = 7  # six of them carry an interval

POPULATE = (
    "Time the ways to make memory resident, by kind of page: memset, MAP_POPULATE, "
    "MADV_POPULATE_WRITE by one thread and by plain shares of several, bulkmm by at "
    "most so many threads, QEMU's prealloc and Java's AlwaysPreTouch where these are; "
    "memory that is there already; and the limit of the stores. Each sample is a "
    "process of its own. Example: bulkmm bench populate --quick --kind thp"
)
HOW = (
    "In several processes, each with fresh memory and an order of its own; in each "
    "round of a process every variant runs once, in random order. Every output is "
    "verified."
)
HELP = {
    "memmap": "time the ways to initialise the struct pages of a device",
    "clear": "time the ways to zero memory, and what they cost its next user",
    "copy": "time the ways to copy memory, by size",
    "first-use": "time what it costs to measure the backends at first use",
    "all": "do all of these: one table, one result",
}
ABOUT = {
    "memmap": (
        "Time the ways to initialise the struct pages of a device: rebuilt one by one "
        "as the kernel does it, copied from a template as published, stamped by "
        "bulkmm with each backend, and the limit of what stores can do."
    ),
    "clear": (
        "Time the ways to zero memory by extents of 4 KiB to 1 GiB: REP STOSB over the "
        "extent or page by page, glibc's memset, libpmem2, a plain loop, bulkmm "
        "leaving the extent in the cache or bypassing it; cold, hot, and with every "
        "extent read in order, written, or read in random order at once."
    ),
    "copy": (
        "Time the ways to copy memory, from 4 KiB to 1 GiB at a time: glibc's memcpy, "
        "libpmem2, a plain loop, REP MOVSB, bulkmm; cold, hot and misaligned."
    ),
    "first-use": (
        "Time a gigabyte of work that begins with nothing measured, and the same work "
        "once every backend is picked."
    ),
    "all": "Do memmap, clear, copy and first-use in one result.",
}


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``bench`` to the parser of the whole command."""
    bench = sub.add_parser("bench", help="measure natively on this machine")
    what = bench.add_subparsers(dest="bench", required=True, metavar="WHAT")
    for name, about in ABOUT.items():
        said = f"{about} {HOW}"
        parser = what.add_parser(name, help=HELP[name], description=said)
        if name == "memmap":
            size = f"size of the device; default {FULL_SIZE}, --quick {QUICK_SIZE}"
            parser.add_argument("--size", help=size)
        if name != "all":
            parser.add_argument("--backend", metavar="NAME", help="what bulkmm uses")
        _add_common(parser)
    _add_populate(what)
    native.add_parser(what)
    _add_common(what.choices["kernel"])
    goals = what.add_parser("goals", help="tell which goals kept results reach")
    goals.add_argument("results", nargs="+", type=Path, metavar="FILE", help="a result")
    goals.set_defaults(run=run_goals)


def _add_populate(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    said = "time the ways to make memory resident, those of QEMU and Java among them"
    parser = what.add_parser("populate", help=said, description=POPULATE)
    parser.add_argument("--size", help="bytes to populate; default 1G, --quick 256M")
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
    parser.add_argument("--processes", type=int, metavar="N", help="samples of an arm")
    parser.add_argument("--quick", action="store_true", help="measure less of each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="draw the samples"
    )
    parser.set_defaults(run=run_populate)


def run_populate(args: argparse.Namespace) -> int:
    """Measure the ways to populate."""
    from contextlib import nullcontext  # noqa: PLC0415 - keeps --help fast

    from rich.console import Console  # noqa: PLC0415

    from bulkmm import plot, size, table  # noqa: PLC0415
    from bulkmm.bench import populate  # noqa: PLC0415

    check_file(args.json)
    plot.check_file(args.plot)
    asked = args.size or ("256M" if args.quick else "1G")
    usual = QUICK_PROCESSES if args.quick else POPULATE_PROCESSES
    processes = usual if args.processes is None else args.processes
    job = populate.Job(
        size=size.parse_bytes(asked, "1T"),
        kinds=args.kind or populate.KINDS,
        processes=processes,
        quick=args.quick,
    )
    populate.check(job)
    with Console(stderr=True).status("bench: populate") as status:

        def seen(event: Event) -> None:
            what = f"{event['scenario']} {event['variant']}"
            status.update(f"bench: process {event['process'] + 1}, {what}")

        room = populate.reserved(job.size) if args.reserve else nullcontext()
        with room:
            document = populate.run(job, seen)
    write(args.json, document)
    table.print_documents([document], show=table.Show(full=True))
    for why in document.run.get("skipped", {}).values():
        print(f"left out: {why}")
    if args.plot:
        plot.save([document], args.plot)
    return verdict(document)


def _add_common(parser: argparse.ArgumentParser) -> None:
    for name, full, quick in (
        ("processes", FULL_PROCESSES, QUICK_PROCESSES),
        ("rounds", FULL_ROUNDS, QUICK_ROUNDS),
    ):
        said = f"number of {name}; default {full}, --quick {quick}"
        parser.add_argument(f"--{name}", type=int, metavar="N", help=said)
    parser.add_argument("--quick", action="store_true", help="measure less of each")
    parser.add_argument(
        "--all-rows", action="store_true", help="show every backend and limit too"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="draw throughput by size"
    )
    parser.set_defaults(run=run_bench)


def repeats(args: argparse.Namespace) -> tuple[int, int]:
    """Return how many rounds and processes are asked for."""
    rounds, processes = QUICK_ROUNDS, QUICK_PROCESSES
    if not args.quick:
        rounds, processes = FULL_ROUNDS, FULL_PROCESSES
    return (
        rounds if args.rounds is None else args.rounds,
        processes if args.processes is None else args.processes,
    )


def requests(args: argparse.Namespace) -> list[Request]:
    """Return what the command line asks for."""
    from dataclasses import replace  # noqa: PLC0415 - keeps --help fast

    from bulkmm.bench import subjects  # noqa: PLC0415

    every = subjects.SUBJECTS
    rounds, processes = repeats(args)
    asked = [
        subjects.plan(
            subject,
            quick=args.quick,
            rounds=rounds,
            processes=processes,
            backend=getattr(args, "backend", None),
        )
        for subject in (every.values() if args.bench == "all" else [every[args.bench]])
    ]
    if size := getattr(args, "size", None):
        amount = subjects.Amount(subjects.parse_device(size))
        asked = [replace(one, amount=amount) for one in asked]
    return asked


def run_bench(args: argparse.Namespace) -> int:
    """Measure; see ``finish``."""
    from bulkmm import plot, table  # noqa: PLC0415 - keeps --help fast

    if args.bench == "kernel":
        return native.run_kernel(args, *repeats(args))
    check_file(args.json)
    plot.check_file(args.plot)
    document = measure(requests(args))
    code = finish(args.json, document, table.Show(all_rows=args.all_rows))
    if args.plot:
        plot.save([document], args.plot)
    return code


def run_goals(args: argparse.Namespace) -> int:
    """Print what became of each goal."""
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast
    from bulkmm.bench import goals  # noqa: PLC0415
    from bulkmm.results import Document  # noqa: PLC0415

    for path in args.results:
        document = Document.read(path)
        if len(args.results) > 1:
            print(f"{path}:")
        table.print_lines(goals.HEADINGS, goals.rows(document))
        for line in goals.missed(document):
            print(line)
    return Exit.OK


def check_file(file: Path | None) -> None:
    """Refuse a result file that cannot be written, before all the work."""
    if file and not file.absolute().parent.is_dir():
        raise BulkmmError(f"the result file {file} cannot be written")


def finish(file: Path | None, document: Document, show: table.Show) -> int:
    """Write and show the result, and say by the exit code if all was verified."""
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast
    from bulkmm.bench import goals  # noqa: PLC0415

    write(file, document)
    table.print_documents([document], show=show)
    for line in goals.missed(document, goals.PICK):
        print(line)
    return verdict(document)


def write(file: Path | None, document: Document) -> None:
    """Write the result to the file that was asked for."""
    if file:
        try:
            document.write(file)
        except OSError as error:
            message = f"the result file {file} cannot be written: {error.strerror}"
            raise BulkmmError(message) from error


def verdict(document: Document) -> int:
    """Tell what failed, and return the exit code that says so."""
    failed = [check for check in document.checks if not check.ok]
    for check in failed:
        sys.stderr.write(f"bulkmm: {check.name} {check.detail}\n")
    return Exit.VERDICT if failed else Exit.OK


def measure(asked: list[Request]) -> Document:
    """Run the bench; on a terminal the progress is shown."""
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    from bulkmm.bench import measure as work  # noqa: PLC0415

    with Console(stderr=True).status("bench: making the memory present") as status:

        def seen(event: Event) -> None:
            if event["event"] in ("sample", "verified"):
                what = f"{event['scenario']} {event['variant']}"
                status.update(f"bench: process {event['process'] + 1}, {what}")

        return work.run_bench(asked, seen)
