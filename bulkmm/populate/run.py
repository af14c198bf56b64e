# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: fill files of memory before their user starts."""

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from rich import progress as bars

from bulkmm.populate import libbulkmm, library, target
from bulkmm.populate.library import Mapping, name_mapping
from bulkmm.populate.request import LARGEST, parse_requests
from bulkmm.populate.target import Target
from bulkmm.shell import bar, size
from bulkmm.shell.ending import KILLED_FIRST, OOM_SCORE
from bulkmm.shell.errors import Exit, UsageError
from bulkmm.shell.files import need_command
from bulkmm.shell.replace import replace_process

BYTES = (
    bars.DownloadColumn(binary_units=True),
    bars.TransferSpeedColumn(),
    bars.TimeRemainingColumn(),
)


def populate_target(args: argparse.Namespace) -> int:
    """Fill the files; or a memfd, and exec the command."""
    _check_words(args)
    usual_size = size.parse_bytes(args.size, LARGEST) if args.size else None
    if args.memfd:
        _populate_memfd(args, usual_size)
        return Exit.OK
    requests = parse_requests(args.words, usual_size, args.node)
    with killed_first(), target.open_files(requests) as files:
        lines = _fill_targets(files, args)
    print(*lines, sep="\n", flush=True)
    return Exit.OK


def _populate_memfd(args: argparse.Namespace, nbytes: int | None) -> None:
    if not nbytes:
        raise UsageError("--memfd: --size says how much to fill")
    huge = size.parse_bytes(args.huge, "16G") if args.huge else 0
    if huge & (huge - 1):
        raise UsageError(f"--huge {args.huge}: not a page size")
    with target.create_memfd(nbytes, huge, args.node) as file:
        with killed_first():
            lines = _fill_targets([file], args)
        print(*lines, sep="\n", flush=True)
        replace_process(args.words, file.fd)


@contextmanager
def killed_first() -> Iterator[None]:
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
    if args.memfd and "{}" not in args.words[0]:
        need_command(args.words[0])
    if args.huge and not args.memfd:
        raise UsageError("--huge only applies to --memfd: a file has its own pages")


def _fill_targets(files: Sequence[Target], args: argparse.Namespace) -> list[str]:
    """Fill them, all by the same threads; return what to print."""
    label = files[0].name if len(files) == 1 else f"{len(files)} files"
    with ExitStack() as stack:
        mappings = [
            Mapping(file.name, stack.enter_context(file.map_shared()), file.node)
            for file in files
        ]
        show = stack.enter_context(bar.show_bar(label, BYTES))
        report = library.populate_mappings(mappings, show, threads=args.threads)
        slow = report.text
        if report.slow and len(files) > 1:
            slow = f"{name_mapping(mappings, report.slow.address)}: {slow}"
    if args.json:
        record = _make_record(files, report, slow)
        return [json.dumps({"schema_version": 1, "populate": record})]
    nbytes, ns, threads = report.nbytes, report.ns, report.threads
    summary = f"{nbytes >> 20} MiB in {ns / 1e9:.3f} s, {nbytes / ns:.1f} GB/s"
    lines = [f"{label}: {summary}, {threads} thread{'s' * (threads != 1)}"]
    if all(file.was_allocated for file in files):
        seconds = f"looking at {nbytes >> 20} MiB took {ns / 1e9:.3f} s"
        lines = [f"{label}: all of it was allocated already; {seconds}"]
    return lines + ([f"slow: {slow}"] if slow else [])


def _make_record(
    files: Sequence[Target], report: libbulkmm.Report, slow: str
) -> dict[str, object]:
    """Return what --json prints; the name and the pages of a file if it is alone."""
    alone = files[0] if len(files) == 1 else None
    return {
        "file": alone.name if alone else None,
        "bytes": report.nbytes,
        "page_bytes": alone.page if alone else None,
        "threads": report.threads,
        "ns": report.ns,
        "slow": slow or None,
        "files": [
            {
                "file": file.name,
                "bytes": file.size,
                "page_bytes": file.page,
                "node": file.node,
            }
            for file in files
        ],
    }
