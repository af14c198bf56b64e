# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab matrix``: run every cell in turn; make one table."""

import argparse
import re
from dataclasses import replace
from pathlib import Path

from bulkmm import files
from bulkmm.errors import BulkmmError, Exit, UsageError
from bulkmm.lab import matrix, run
from bulkmm.lab.commands.run import asked
from bulkmm.lab.machine import arch, kernels, pins, root
from bulkmm.lab.paths import locked
from bulkmm.lab.progress import Progress
from bulkmm.results import Document
from bulkmm.sheet import Sheet


def every(args: argparse.Namespace) -> int:
    """Run the cells of the matrix in turn; show and keep their results."""
    chosen = _chosen(args)
    need_places(args)
    if args.newest:
        chosen = _newer(chosen)
        if not chosen:
            return Exit.OK
    about = matrix.DEBUG if args.debug else matrix.STOCK
    progress, page = Progress(), ""
    lines: list[matrix.Line] = []
    for number, cell in enumerate(chosen, 1):  # a failure does not stop the rest
        progress.note(f"run {number} of {len(chosen)}: {cell.name}")
        lines.append(_run_cell(cell, args.json_dir, resume=args.resume))
        page = matrix.markdown(lines, _flags(args), about)
        if args.output:  # keeps partial results if interrupted
            files.write(args.output, page, "the page")
    if args.markdown:
        print(page, end="")
    else:
        rows = [line.cells()[: about.columns] for line in lines]
        Sheet(matrix.HEADINGS[: about.columns], rows).print()
        print(about.note)
        print(matrix.summary(lines))
    return Exit.OK if all(line.ok for line in lines) else Exit.VERDICT


def _chosen(args: argparse.Namespace) -> list[matrix.Cell]:
    if args.debug and (args.quick or args.arch or args.newest):
        raise UsageError(
            "--debug has runs of its own: without --quick, --arch and --newest"
        )
    wanted = [arch.find(args.arch)] if args.arch else list(arch.ALL)
    cells = matrix.checked() if args.debug else matrix.cells(wanted, quick=args.quick)
    found = [cell for cell in cells if pattern(args.only).search(cell.name)]
    if not found:
        raise UsageError(f"--only {args.only}: in no name, as {cells[0].name} is one")
    return found


def _flags(args: argparse.Namespace) -> str:
    given = [name for name in ("quick", "debug", "newest") if getattr(args, name)]
    return "".join(f" --{name}" for name in given)


def _newer(cells: list[matrix.Cell]) -> list[matrix.Cell]:
    """Return the cells on the archive's newest releases, without those pinned."""
    run.need_root()
    progress, newer = Progress(), {}
    with locked(progress) as cache:
        made = root.ensure(cache, progress)
        kernels.update(made, progress)
        for name, on in {(cell.kernel, arch.find(cell.arch)) for cell in cells}:
            if (release := kernels.newest(made, name, on)) != pins.kernel(name, on):
                newer[name, on.name] = release
    where = ", ".join(sorted(newer.values())) or "none"
    progress.note(f"newer than what is pinned: {where}")
    there = [cell for cell in cells if (cell.kernel, cell.arch) in newer]
    return [replace(one, kernel=newer[one.kernel, one.arch]) for one in there]


def pattern(given: str | None) -> re.Pattern[str]:
    """Return the pattern a name must contain; without --only it is empty."""
    try:
        return re.compile(given or "")
    except re.error as error:
        raise UsageError(f"--only {given}: {error}") from error


def need_places(args: argparse.Namespace) -> None:
    """Reject unwritable outputs before hours of work."""
    if args.output:
        files.need_place(args.output, "the page")
    if args.resume and not args.json_dir:
        raise UsageError("--resume needs --json-dir: it says where the results lie")
    if args.json_dir:
        args.json_dir.mkdir(parents=True, exist_ok=True)


def _run_cell(cell: matrix.Cell, to: Path | None, *, resume: bool) -> matrix.Line:
    file = to / f"{cell.name}.json" if to else None
    try:
        wanted = asked(cell.words)
        document = _resumed(wanted, file) if resume and file else None
        if document is None:
            document = run.run_scenario(wanted)
            if file:
                document.write(file)
    except BulkmmError as error:
        return matrix.failed(cell, str(error).splitlines()[0])
    except OSError as error:
        return matrix.failed(cell, str(error))
    return matrix.judged(cell, document)


def _resumed(request: run.Request, file: Path) -> Document | None:
    """Return an earlier run's result, if it passed and its identity matches."""
    if not file.is_file():
        return None
    document = Document.read(file)
    same = run.would_be_of(request).items() <= document.run.items()
    return document if same and not document.failed else None
