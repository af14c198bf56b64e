# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab matrix``: one run after the other, one table."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bulkmm import files, table
from bulkmm.errors import BulkmmError, Exit, UsageError
from bulkmm.lab import matrix, run
from bulkmm.lab.command import add_run_options
from bulkmm.lab.commands.run import request
from bulkmm.lab.machine import arch
from bulkmm.lab.progress import Progress
from bulkmm.results import Document

if TYPE_CHECKING:
    from pathlib import Path


def every(args: argparse.Namespace) -> int:
    """Run one cell of the matrix after the other; show and keep what they say."""
    wanted = [arch.find(args.arch)] if args.arch else list(arch.ALL)
    need_places(args)
    chosen = matrix.cells(matrix.QUICK if args.quick else matrix.FULL, wanted)
    progress, lines = Progress(), []
    for number, cell in enumerate(chosen, 1):  # none keeps the next from running
        progress.note(f"run {number} of {len(chosen)}: {cell.name}")
        lines.append(_run_cell(cell, args.json_dir, resume=args.resume))
    page = matrix.markdown(lines, " --quick" if args.quick else "")
    if args.output:
        files.write(args.output, page, "the page")
    if args.markdown:
        print(page, end="")
    else:
        table.print_lines(matrix.HEADINGS, [line.cells() for line in lines])
        print(matrix.NOTE)
        print(matrix.summary(lines))
    return Exit.OK if all(line.ok for line in lines) else Exit.VERDICT


def need_places(args: argparse.Namespace) -> None:
    """Refuse before hours of work what could not be written after."""
    if args.output:
        files.need_place(args.output, "the page")
    if args.resume and not args.json_dir:
        raise UsageError("--resume needs --json-dir: it says where the results lie")
    if args.json_dir:
        args.json_dir.mkdir(parents=True, exist_ok=True)


def _run_cell(cell: matrix.Cell, to: Path | None, *, resume: bool) -> matrix.Line:
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    file = to / f"{cell.name}.json" if to else None
    try:
        asked = request(parser.parse_args(cell.words))
        document = _resumed(asked, file) if resume and file else None
        if document is None:
            document = run.run_scenario(asked)
            if file:
                document.write(file)
    except BulkmmError as error:
        return matrix.failed(cell, str(error).splitlines()[0])
    return matrix.judged(cell, document)


def _resumed(request: run.Request, file: Path) -> Document | None:
    """Return the result of an earlier run, if it passed and is of the same."""
    if not file.is_file():
        return None
    document = Document.read(file)
    same = run.would_be_of(request).items() <= document.run.items()
    return document if same and all(check.ok for check in document.checks) else None
