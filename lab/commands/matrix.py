# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab matrix``: scenarios over kernels and architectures, in one table.

A cell is one run of a scenario, as by ``bulkmm lab run`` with the same options.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bulkmm.control import requirements
from bulkmm.control.module import parse_hooks
from bulkmm.results import conditions, result_tables
from bulkmm.results.model import Document, Ratio
from bulkmm.shell.errors import BulkmmError, Exit, UsageError
from bulkmm.shell.progress import Progress
from lab import run
from lab.choices import compile_pattern, need_places
from lab.commands import page
from lab.commands.grid import Grid
from lab.commands.run import parse_request
from lab.machine import arch as archs
from lab.machine import cached, kernel_kinds, kernels, root, versions
from lab.paths import lock_cache, need_sources
from lab.scenario import SCENARIOS, Scenario

NOTE = (
    "All in virtual machines. Instructions, by the guest's clock under icount, are "
    "neither times nor hardware figures, and each turn of a string instruction counts."
)
DEBUG_NOTE = "All in virtual machines, emulated. Nothing is measured in these runs."
# pairs per path; "absent" is a kernel without the module
RATED = {
    "memmap": (("off", "on"),),
    "hotplug": (("absent", "on"),),
}


@dataclass(frozen=True)
class Cell:
    """A scenario with options, on one kernel."""

    path: str
    arch: str
    kernel: str
    scenario: str
    options: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """Return the arguments of ``bulkmm lab run``."""
        where = ["--arch", self.arch, "--kernel", self.kernel]
        return [self.scenario, *where, *self.options]

    @property
    def name(self) -> str:
        """Return a name for the cell's files."""
        words = "".join(self.options).replace("--", "-").replace("=", "-")
        return f"{self.scenario}-{self.kernel}-{self.arch}{words}"


@dataclass(frozen=True)
class Line:
    """A cell and its result."""

    cell: Cell
    text: str
    ok: bool
    release: str = ""


def run_matrix(args: argparse.Namespace) -> int:
    """Run the cells of the matrix in turn; show and keep their results."""
    selection = _select_cells(args)
    need_places(args)
    # or each run would fail, and the page say so of each
    need_sources()
    cached.need_root()
    if args.newest:
        selection = _newer(selection)
        if not selection:
            return Exit.OK
    note = DEBUG_NOTE if args.debug else NOTE
    progress = Progress()
    lines: list[Line] = []
    grid = Grid()
    joins = bool(args.only or args.kernel)  # what the page has of others
    # a failure does not stop the rest
    for cell in progress.count_items("run", selection, lambda cell: cell.name):
        lines.append(_run_cell(cell, args.json_dir, resume=args.resume))
        add_line(grid, lines[-1])
        if args.output:  # keeps partial results if interrupted
            _write_line(args, lines[-1], note, joins=joins or len(lines) > 1)
    grid.table().print()
    print(note)
    print(summarise_lines(lines))
    return Exit.OK if all(line.ok for line in lines) else Exit.VERDICT


def _write_line(
    args: argparse.Namespace, line: Line, note: str, *, joins: bool
) -> None:
    """Write a verdict to the page, beside what is there now if it joins that.

    Another matrix may have written to the page since the last verdict.
    """
    label = " quick" if args.quick else ""
    grid = Grid(page.read_part(args.output, label) if joins else "")
    add_line(grid, line)
    lines = [*grid.markdown(), *page.wrap_text(note), ""]
    page.write_page(args.output, lines, label)


def _select_cells(args: argparse.Namespace) -> list[Cell]:
    if args.debug and (args.quick or args.arch or args.newest or args.kernel):
        raise UsageError(
            "--debug has runs of its own: without --quick, --arch, --kernel and "
            "--newest"
        )
    wanted = [archs.find_arch(args.arch)] if args.arch else archs.ARCHES
    for name in args.kernel or ():
        kernels.check_name(name, *wanted)
    candidates = (
        list_debug_cells()
        if args.debug
        else list_cells(wanted, args.kernel or (), quick=args.quick)
    )
    pattern = compile_pattern(args.only)
    matches = [cell for cell in candidates if pattern.search(cell.name)]
    if not matches:
        raise UsageError(
            f"--only {args.only} is in no name, such as {candidates[0].name}"
        )
    return matches


def _newer(cells: list[Cell]) -> list[Cell]:
    """Return the cells on the archive's newest releases, without those pinned."""
    progress, newer = Progress(), {}
    with lock_cache(progress) as cache:
        debian_root = root.ensure_root(cache, progress)
        kernels.update_index(debian_root, progress)
        for name, on in {(cell.kernel, archs.find_arch(cell.arch)) for cell in cells}:
            try:
                release = kernels.find_newest(debian_root, name, on)
            except UsageError as error:  # a series may have left the archive
                progress.note(f"{on.name}: {error}")
                continue
            pinned = versions.find_release(name, on)
            if kernels.split_release(release) > kernels.split_release(pinned):
                newer[name, on.name] = release
    where = ", ".join(sorted(newer.values())) or "none"
    progress.note(f"newer than what is pinned: {where}")
    newer_cells = [cell for cell in cells if (cell.kernel, cell.arch) in newer]
    return [replace(one, kernel=newer[one.kernel, one.arch]) for one in newer_cells]


def _run_cell(cell: Cell, to: Path | None, *, resume: bool) -> Line:
    file = to / f"{cell.name}.json" if to else None
    try:
        wanted = parse_request(cell.words)
        document = _resumed(wanted, file) if resume and file else None
        if document is None:
            document = run.run_scenario(wanted)
            if file:
                document.write(file)
    except BulkmmError as error:
        return make_failure(cell, str(error).splitlines()[0])
    except OSError as error:
        return make_failure(cell, str(error))
    return make_line(cell, document)


def _resumed(request: run.Request, file: Path) -> Document | None:
    """Return an earlier run's result, if it passed and nothing has changed."""
    if not file.is_file():
        return None
    try:
        document = Document.read(file)
    except BulkmmError:  # of another version
        return None
    unchanged = document.run.get("key") == run.identify_request(request)
    return document if unchanged and not document.failed else None


def list_debug_cells() -> list[Cell]:
    """Return the cells of the kernels that the lab builds."""
    return [
        Cell(one.path, kind.arch.name, kind.name, one.name, tuple(words.split()))
        for kind in kernel_kinds.KINDS
        for one in SCENARIOS
        for words in one.runs.debug.get(kind.name, ())
        if one.runs_on(kernels.read_name(kind.name, kind.arch))
    ]


def list_cells(
    wanted: Iterable[archs.Arch] = archs.ARCHES,
    names: Sequence[str] = (),
    *,
    quick: bool = False,
) -> list[Cell]:
    """Return the cells of kernels that can run them: these, or those pinned."""
    return [
        Cell(one.path, arch.name, kernel, one.name, tuple(words.split()))
        for one in SCENARIOS
        for words in (one.runs.quick if quick else one.runs.full)
        for arch in wanted
        for kernel in names or arch.series
        if not kernels.find_problem(kernel, arch)
        and supports_cell(arch, kernel, one, tuple(words.split()))
    ]


def supports_cell(
    arch: archs.Arch, kernel: str, scenario: Scenario, words: tuple[str, ...]
) -> bool:
    """Return whether a kernel supports a scenario with these options."""
    if (align := find_option(words, "--align")) and align not in arch.aligns:
        return False
    choice = kernels.read_name(kernel, arch)
    # a kernel built with several preemption models accepts only their names
    series = kernel if choice.kind else requirements.series_of(kernel)
    models = requirements.read_kernels(f"models-{arch.name}-{series}")
    model = find_option(words, "--preempt")
    # each of its models by name, or its only one
    if scenario.name == "clear-latency" and model not in (models or ("",)):
        return False
    return scenario.runs_on(choice)


def find_option(words: tuple[str, ...], name: str) -> str:
    """Return an option's value, "" if it is not given."""
    return words[words.index(name) + 1] if name in words else ""


def make_line(cell: Cell, document: Document) -> Line:
    """Return a cell's line from its run's result."""
    hook_summary = summarise_hooks(document.run.get("hooks", ()))
    where = conditions.get_accelerator(document)
    parts = [document.verdict, *([f"{hook_summary} hooked"] if hook_summary else [])]
    parts += [
        f"{ratio.variant} {result_tables.format_ratio(ratio)} {where}"
        for ratio in select_ratios(cell, document)
    ]
    release = str(document.run.get("kernel", ""))
    return Line(cell, "; ".join(parts), not document.failed, release)


def summarise_hooks(states: Iterable[str]) -> str:
    """Return the number of hooks seen attached, and the others."""
    hook_states = [hook for state in states for hook in parse_hooks(state)]
    symbols = {hook.symbol for hook in hook_states}
    attached = {hook.symbol for hook in hook_states if hook.attached}
    if not symbols:
        return ""
    detached = ", ".join(
        f"{hook.symbol} {hook.errno}"
        for hook in hook_states
        if hook.symbol not in attached
    )
    return f"{len(attached)} of {len(symbols)}" + (
        f": not {detached}" if detached else ""
    )


def select_ratios(cell: Cell, document: Document) -> list[Ratio]:
    """Return the ratios that represent a path: those of its first result.

    None of a kernel that the lab builds: its own checks take most of the time.
    """
    first = document.results[0].scenario if document.results else ""
    pairs = () if cell.kernel in kernel_kinds.NAMES else RATED.get(cell.path, ())
    return [
        ratio
        for base, variant in pairs
        for ratio in document.printed().ratios
        if (ratio.scenario, ratio.base, ratio.variant) == (first, base, variant)
    ]


def make_failure(cell: Cell, why: str) -> Line:
    """Return the line of a run without a verdict."""
    return Line(cell, f"FAILED: {why}", ok=False)


def add_line(grid: Grid, line: Line) -> None:
    """Add a run's line to a table."""
    cell = line.cell
    options = " ".join((cell.scenario, *cell.options))
    kernel = f"{line.release or cell.kernel} {cell.arch}"
    if not line.release:  # the run did not get that far
        kernel = grid.find_column(kernel)
    grid.add(cell.path, options, kernel, line.text)


def summarise_lines(lines: list[Line]) -> str:
    """Return how many runs passed."""
    return f"Runs passed: {sum(line.ok for line in lines)} of {len(lines)}."
