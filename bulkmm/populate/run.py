# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: fill a file of memory before its user starts."""

import argparse
import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich import progress as bars

from bulkmm.populate import library, target
from bulkmm.populate.target import Target
from bulkmm.shell import bar, size
from bulkmm.shell.ending import KILLED_FIRST, OOM_SCORE
from bulkmm.shell.errors import BulkmmError, Exit, UsageError

LARGEST = "64T"
BYTES = (
    bars.DownloadColumn(binary_units=True),
    bars.TransferSpeedColumn(),
    bars.TimeRemainingColumn(),
)


def populate_target(args: argparse.Namespace) -> int:
    """Fill the target; with a memfd, exec the command."""
    _check_words(args)
    wanted = size.parse_bytes(args.size, LARGEST) if args.size else None
    if not args.memfd:
        with (
            _killed_first(),
            target.open_file(Path(args.words[0]), wanted, args.node) as file,
        ):
            lines = _fill_target(file, args)
        print(*lines, sep="\n", flush=True)
        return Exit.OK
    if not wanted:
        raise UsageError("--memfd: --size says how much to fill")
    huge = size.parse_bytes(args.huge, "16G") if args.huge else 0
    if huge & (huge - 1):
        raise UsageError(f"--huge {args.huge}: not a page size")
    with target.create_memfd(wanted, huge, args.node) as file:
        with _killed_first():
            lines = _fill_target(file, args)
        print(*lines, sep="\n", flush=True)
        _exec_command(args.words, file.fd)
    return Exit.OK


@contextmanager
def _killed_first() -> Iterator[None]:
    """Have the OOM killer choose this process: pages of a file are nobody's to it."""
    usual = "0"
    with suppress(OSError):
        usual = OOM_SCORE.read_text(encoding="ascii")
        OOM_SCORE.write_text(KILLED_FIRST, encoding="ascii")
    try:
        yield
    finally:
        with suppress(OSError):
            OOM_SCORE.write_text(usual, encoding="ascii")


def _check_words(args: argparse.Namespace) -> None:
    if args.memfd and not args.words:
        raise UsageError(
            "--memfd needs a command after --: the memory is freed with its last user"
        )
    if not args.memfd and len(args.words) != 1:
        raise UsageError("populate: give one FILE, or --memfd and a command")
    if args.huge and not args.memfd:
        raise UsageError("--huge only applies to --memfd: a file has its own pages")


def _fill_target(file: Target, args: argparse.Namespace) -> list[str]:
    """Fill it; return what to print."""
    with file.map_shared() as mapping, bar.show_bar(file.name, BYTES) as show:
        report = library.populate_mapping(
            mapping,
            lambda so_far: show(so_far, file.size),
            label=file.name,
            threads=args.threads,
            node=args.node,
        )
    nbytes, ns, threads, slow = report.nbytes, report.ns, report.threads, report.text
    record = {
        "file": file.name,
        "bytes": nbytes,
        "page_bytes": file.page,
        "threads": threads,
        "ns": ns,
        "slow": slow or None,
    }
    if args.json:
        return [json.dumps({"schema_version": 1, "populate": record})]
    summary = f"{nbytes >> 20} MiB in {ns / 1e9:.3f} s, {nbytes / ns:.1f} GB/s"
    lines = [f"{file.name}: {summary}, {threads} thread{'s' * (threads != 1)}"]
    return lines + ([f"slow: {slow}"] if slow else [])


def _exec_command(words: Sequence[str], fd: int) -> None:
    """Replace this process by the command, with the memfd open."""
    os.set_inheritable(fd, True)  # noqa: FBT003 - its only argument
    place = f"/proc/self/fd/{fd}"
    command = [word.replace("{}", place) for word in words]
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(signum, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - what was asked for
    except OSError as error:
        raise BulkmmError(f"{command[0]}: {error.strerror}") from error
