# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: measure the core natively on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulkmm.errors import BulkmmError, Exit

if TYPE_CHECKING:
    import argparse

    from bulkmm.bench.memmap import Request
    from bulkmm.results import Document

QUICK_SIZE, QUICK_ROUNDS = "16G", 9
FULL_SIZE, FULL_ROUNDS = "100G", 15


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``bench`` to the parser of the whole command."""
    bench = sub.add_parser("bench", help="measure natively on this machine")
    what = bench.add_subparsers(dest="bench", required=True, metavar="WHAT")
    memmap = what.add_parser(
        "memmap",
        help="ways to initialise the struct pages of a device",
        description="Time the ways to initialise the struct pages of a device: "
        "rebuilt one by one as the kernel does it, copied from a template as "
        "published, stamped by bulkmm with each backend, and the store-bandwidth "
        "limit. Interleaved in random order; every output is verified.",
    )
    memmap.add_argument(
        "--size", help=f"of the device; default {FULL_SIZE}, --quick {QUICK_SIZE}"
    )
    memmap.add_argument(
        "--rounds",
        type=int,
        help=f"samples per variant; default {FULL_ROUNDS}, --quick {QUICK_ROUNDS}",
    )
    memmap.add_argument(
        "--quick", action="store_true", help="a smaller device, under ten seconds"
    )
    memmap.add_argument("--backend", metavar="NAME", help="what bulkmm is to use")
    memmap.add_argument("--json", type=Path, metavar="FILE", help="write all samples")
    memmap.set_defaults(run=run_memmap)


def _request(args: argparse.Namespace) -> Request:
    from bulkmm.bench import memmap  # noqa: PLC0415 - keeps --help fast

    size = args.size or (QUICK_SIZE if args.quick else FULL_SIZE)
    rounds = QUICK_ROUNDS if args.quick else FULL_ROUNDS
    return memmap.Request(
        size=memmap.parse_size(size),
        rounds=rounds if args.rounds is None else args.rounds,
        backend=args.backend,
    )


def run_memmap(args: argparse.Namespace) -> int:
    """Measure, show the table, and say by the exit code if all was verified."""
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast

    if args.json and not args.json.absolute().parent.is_dir():
        raise BulkmmError(f"the result file {args.json} cannot be written")
    document = measure(_request(args))
    if args.json:
        try:
            document.write(args.json)
        except OSError as error:
            message = f"the result file {args.json} cannot be written: {error.strerror}"
            raise BulkmmError(message) from error
    table.print_document(document)
    failed = [check for check in document.checks if not check.ok]
    for check in failed:
        sys.stderr.write(f"bulkmm: {check.name} {check.detail}\n")
    return Exit.VERDICT if failed else Exit.OK


def measure(request: Request) -> Document:
    """Run the bench; on a terminal the progress is shown."""
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    from bulkmm.bench import memmap  # noqa: PLC0415

    with Console(stderr=True).status("bench: making the memory present") as status:

        def seen(event: dict[str, Any]) -> None:
            if event["event"] == "sample":
                done = f"bench: round {event['round'] + 1} of {request.rounds}"
                status.update(f"{done}, {event['variant']}")
            elif event["event"] == "verified":
                status.update(f"bench: verified {event['variant']}")

        return memmap.run_bench(request, seen)
