# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: measure the core natively on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError, Exit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from bulkmm.bench.memmap import Request
    from bulkmm.bench.take import Event, Seen
    from bulkmm.results import Document

QUICK_SIZE, QUICK_ROUNDS = "16G", 9
FULL_SIZE, FULL_ROUNDS = "100G", 15
QUICK_SWEEP_ROUNDS, FULL_SWEEP_ROUNDS = 9, 21  # of clear, of copy, and of all

MEMMAP = (
    "Time the ways to initialise the struct pages of a device: rebuilt one by one as "
    "the kernel does it, copied from a template as published, stamped by bulkmm with "
    "each backend, and the store-bandwidth limit. Interleaved in random order; every "
    "output is verified."
)
CLEAR = (
    "Time the ways to zero memory extent by extent, from 4 KiB to 1 GiB: REP STOSB "
    "over the extent or page by page, glibc's memset, libpmem2, a plain loop, bulkmm "
    "leaving the extent in the cache or going around it; each alone, and with every "
    "extent read in order, written, or read in random order at once. Interleaved in "
    "random order; every output is verified."
)
COPY = (
    "Time the ways to copy memory, from 4 KiB to 1 GiB at a time: glibc's memcpy, "
    "libpmem2, a plain loop, REP MOVSB, bulkmm; from and to memory that is in no "
    "cache, and up to 16 MiB between the same two places over and over. Interleaved "
    "in random order; every output is verified."
)
ALL = "Do memmap, clear and copy, one after the other: one table, one result."


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``bench`` to the parser of the whole command."""
    bench = sub.add_parser("bench", help="measure natively on this machine")
    what = bench.add_subparsers(dest="bench", required=True, metavar="WHAT")
    _add_memmap(what)
    _add_clear(what)
    _add_copy(what)
    _add_all(what)


def _add_memmap(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    memmap = what.add_parser(
        "memmap",
        help="ways to initialise the struct pages of a device",
        description=MEMMAP,
    )
    memmap.add_argument(
        "--size", help=f"of the device; default {FULL_SIZE}, --quick {QUICK_SIZE}"
    )
    _add_backend(memmap)
    _add_common(memmap, FULL_ROUNDS, QUICK_ROUNDS, "a smaller device, under 10 seconds")
    memmap.set_defaults(run=run_memmap)


def _add_clear(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    clear = what.add_parser(
        "clear",
        help="ways to zero memory, and what they cost its next user",
        description=CLEAR,
    )
    _add_backend(clear)
    _add_sweep(clear, "fewer extents, under 15 seconds")
    clear.set_defaults(run=run_sweep)


def _add_copy(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    copy = what.add_parser(
        "copy", help="ways to copy memory, by size", description=COPY
    )
    _add_backend(copy)
    _add_sweep(copy, "fewer sizes, under 10 seconds")
    copy.set_defaults(run=run_sweep)


def _add_all(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    every = what.add_parser("all", help="all of these", description=ALL)
    _add_sweep(every, "less of each, under 30 seconds")
    every.set_defaults(run=run_all)


def _add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", metavar="NAME", help="what bulkmm is to use")


def _add_sweep(parser: argparse.ArgumentParser, quick_help: str) -> None:
    _add_common(parser, FULL_SWEEP_ROUNDS, QUICK_SWEEP_ROUNDS, quick_help)


def _add_common(
    parser: argparse.ArgumentParser, full: int, quick: int, quick_help: str
) -> None:
    parser.add_argument(
        "--rounds",
        type=int,
        help=f"samples per variant; default {full}, --quick {quick}",
    )
    parser.add_argument("--quick", action="store_true", help=quick_help)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="draw throughput by size"
    )


def _rounds(args: argparse.Namespace, full: int, quick: int) -> int:
    default = quick if args.quick else full
    return default if args.rounds is None else int(args.rounds)


def _sweep_rounds(args: argparse.Namespace) -> int:
    return _rounds(args, FULL_SWEEP_ROUNDS, QUICK_SWEEP_ROUNDS)


def run_memmap(args: argparse.Namespace) -> int:
    """Measure the ways to write struct pages; see ``finish``."""
    from bulkmm.bench import memmap  # noqa: PLC0415 - keeps --help fast

    size = args.size or (QUICK_SIZE if args.quick else FULL_SIZE)
    request = memmap.Request(
        size=memmap.parse_size(size),
        rounds=_rounds(args, FULL_ROUNDS, QUICK_ROUNDS),
        backend=args.backend,
    )
    return _run(args, request.rounds, lambda seen: memmap.run_bench(request, seen))


def run_sweep(args: argparse.Namespace) -> int:
    """Measure the ways to clear or to copy memory; see ``finish``."""
    from bulkmm.bench import clear, copy, sweep  # noqa: PLC0415 - keeps --help fast

    request = sweep.plan(
        {"clear": clear.SUBJECT, "copy": copy.SUBJECT}[args.bench],
        quick=args.quick,
        rounds=_sweep_rounds(args),
        backend=args.backend,
    )
    return _run(args, request.rounds, lambda seen: sweep.run_bench(request, seen))


def run_all(args: argparse.Namespace) -> int:
    """Measure everything; see ``finish``."""
    from bulkmm.bench import everything  # noqa: PLC0415 - keeps --help fast

    request = everything.Request(rounds=_sweep_rounds(args), quick=args.quick)
    return _run(args, request.rounds, lambda seen: everything.run_bench(request, seen))


def _run(
    args: argparse.Namespace, rounds: int, bench: Callable[[Seen], Document]
) -> int:
    from bulkmm import plot  # noqa: PLC0415 - keeps --help fast

    check_file(args.json)
    plot.check_file(args.plot)
    document = show_progress(rounds, bench)
    code = finish(args.json, document)
    if args.plot:
        plot.save([document], args.plot)
    return code


def check_file(file: Path | None) -> None:
    """Refuse a result file that cannot be written, before all the work."""
    if file and not file.absolute().parent.is_dir():
        raise BulkmmError(f"the result file {file} cannot be written")


def finish(file: Path | None, document: Document) -> int:
    """Write and show the result, and say by the exit code if all was verified."""
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast

    if file:
        try:
            document.write(file)
        except OSError as error:
            message = f"the result file {file} cannot be written: {error.strerror}"
            raise BulkmmError(message) from error
    table.print_document(document)
    failed = [check for check in document.checks if not check.ok]
    for check in failed:
        sys.stderr.write(f"bulkmm: {check.name} {check.detail}\n")
    return Exit.VERDICT if failed else Exit.OK


def measure(request: Request) -> Document:
    """Run the bench of struct pages; on a terminal the progress is shown."""
    from bulkmm.bench import memmap  # noqa: PLC0415 - keeps --help fast

    return show_progress(request.rounds, lambda seen: memmap.run_bench(request, seen))


def show_progress(rounds: int, run: Callable[[Seen], Document]) -> Document:
    """Run a bench; on a terminal the progress is shown."""
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    with Console(stderr=True).status("bench: making the memory present") as status:

        def seen(event: Event) -> None:
            if event["event"] == "sample":
                what = f"{event['scenario']} {event['variant']}"
                status.update(f"bench: round {event['round'] + 1} of {rounds}, {what}")
            elif event["event"] == "verified":
                status.update(f"bench: verified {event['variant']}")

        return run(seen)
