# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: fill a file of memory before its user starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError, Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from bulkmm.populate.library import Populated
    from bulkmm.populate.target import Target

LARGEST = "64T"
ABOUT = (
    "Fill a file of tmpfs or hugetlbfs, or a DAX device, by as many threads as pay: "
    "its pages are in memory, zeroed, before the program that maps it starts. What the "
    "file holds already stays. With --memfd the memory has no name: the command that "
    "stands behind -- is run and finds it where its words say {}. Example: bulkmm "
    "populate /dev/shm/guest --size 4G"
)


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``populate`` to the parser of the whole command."""
    parser = sub.add_parser(
        "populate", help="fill memory before its user starts", description=ABOUT
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="FILE",
        help="file to fill; with --memfd the command to run, behind --",
    )
    parser.add_argument(
        "--memfd", action="store_true", help="fill a memfd, and run a command with it"
    )
    parser.add_argument(
        "--huge", metavar="2M|1G", help="take huge pages of this size for the memfd"
    )
    parser.add_argument(
        "--size",
        metavar="SIZE",
        help="bytes to fill, as in 4G; a file is made or grows; default all of it",
    )
    parser.add_argument(
        "--node", type=int, metavar="N", help="take pages of this memory node alone"
    )
    parser.add_argument(
        "--threads",
        default="auto",
        metavar="N|auto",
        help="start no more threads than this; default as many as pay",
    )
    parser.add_argument(
        "--json", action="store_true", help="print what was done as JSON"
    )
    parser.set_defaults(run=run_populate)


def run_populate(args: argparse.Namespace) -> int:
    """Fill what is asked for; with a memfd, become the command."""
    from bulkmm import size  # noqa: PLC0415 - keeps --help fast
    from bulkmm.populate import target  # noqa: PLC0415

    _check(args)
    wanted = size.parse_bytes(args.size, LARGEST) if args.size else None
    if not args.memfd:
        with target.file(Path(args.words[0]), wanted) as held:
            _fill(held, args)
        return Exit.OK
    if not wanted:
        raise UsageError("--memfd: --size says how much to fill")
    huge = size.parse_bytes(args.huge, "16G") if args.huge else 0
    if huge & (huge - 1):
        raise UsageError(f"--huge {args.huge}: no size of a page")
    with target.memfd(wanted, huge) as held:
        _fill(held, args)
        _become(args.words, held.fd)
    return Exit.OK


def _check(args: argparse.Namespace) -> None:
    if args.memfd and not args.words:
        raise UsageError(
            "--memfd: a memfd ends with its user: name a command behind --"
        )
    if not args.memfd and len(args.words) != 1:
        raise UsageError("populate: give one FILE, or --memfd and a command")
    if args.huge and not args.memfd:
        raise UsageError("--huge is of --memfd: a file has its file system's pages")
    if args.node is not None and args.node < 0:
        raise UsageError(f"--node {args.node}: nodes are counted from 0")
    _threads(args.threads)


def _threads(text: str) -> int:
    if text == "auto":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 16:
        raise UsageError(f"--threads {text}: give a number, or auto")
    return int(text)


def _fill(held: Target, args: argparse.Namespace) -> None:
    from bulkmm.populate import library  # noqa: PLC0415 - loads libbulkmm

    with held.mapped() as mapping:
        threads = _threads(args.threads)

        def fill(progress: Callable[[int], None]) -> Populated:
            return library.populate(mapping, progress, threads=threads, node=args.node)

        done = _shown(fill, held)
    if done.error:
        raise BulkmmError(f"{held.name}: {done.said}")
    _say(held, done, as_json=args.json)


def _shown(
    fill: Callable[[Callable[[int], None]], Populated], held: Target
) -> Populated:
    """Fill it; on a terminal with a bar."""
    from rich import progress as bars  # noqa: PLC0415 - slow to import
    from rich.console import Console  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.DownloadColumn(binary_units=True),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with bars.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(held.name.replace("[", "\\["), total=held.size)
        return fill(lambda done: bar.update(task, completed=done))


def _say(held: Target, done: Populated, *, as_json: bool) -> None:
    import json  # noqa: PLC0415 - keeps --help fast

    if as_json:
        said = {
            "file": held.name,
            "bytes": done.done,
            "page_bytes": held.page,
            "threads": done.threads,
            "ns": done.ns,
            "slow": done.said or None,
        }
        print(json.dumps({"schema_version": 1, "populate": said}), flush=True)
        return
    rate = done.done / done.ns
    print(
        f"{held.name}: {done.done >> 20} MiB in {done.ns / 1e9:.3f} s, "
        f"{rate:.1f} GB/s, {done.threads} threads",
        flush=True,
    )
    if done.said:
        print(f"slow: {done.said}", flush=True)


def _become(words: Sequence[str], fd: int) -> None:
    """Run the command in place of this one, with the memfd open."""
    os.set_inheritable(fd, True)  # noqa: FBT003 - its only argument
    place = f"/proc/self/fd/{fd}"
    command = [word.replace("{}", place) for word in words]
    try:
        os.execvp(command[0], command)  # noqa: S606 - what was asked for
    except OSError as error:
        raise BulkmmError(f"{command[0]}: {error.strerror}") from error
