# SPDX-License-Identifier: GPL-2.0-only
"""The ``bulkmm lab`` command."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm import table
from bulkmm.errors import BulkmmError, Exit
from bulkmm.lab import accel, build, kernels, pmem, run, scenario
from bulkmm.lab.paths import locked, need_sources
from bulkmm.lab.progress import Progress

if TYPE_CHECKING:
    import argparse
    from types import FrameType

    from rich.console import Console

    from bulkmm.results import Document

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001


def add_parser(sub: Subparsers) -> None:
    """Add ``lab`` and what stands below it."""
    lab = sub.add_parser("lab", help="measure on stock kernels in virtual machines")
    below = lab.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_run(below)
    listing = below.add_parser("list", help="list the scenarios")
    listing.set_defaults(run=list_scenarios)
    ready = below.add_parser("prepare", help="fetch and build everything needed")
    ready.add_argument("--kernel", action="append", metavar="NAME")
    ready.add_argument("--module-defines", nargs="+", default=[], metavar="NAME")
    ready.add_argument(
        "--strict", action="store_true", help="fail on any compiler warning (W=1)"
    )
    ready.set_defaults(run=prepare)
    clean = below.add_parser("clean", help="remove everything the lab has cached")
    clean.set_defaults(run=remove_cache)


def _add_run(below: Subparsers) -> None:
    one = below.add_parser("run", help="run a scenario off and on in one boot")
    one.add_argument("scenario", metavar="SCENARIO", help="see: bulkmm lab list")
    one.add_argument(
        "--kernel", default="6.12", help="6.12, 7.3 or a full release (default: 6.12)"
    )
    one.add_argument("--size", help="of the device (default: 100G)")
    one.add_argument(
        "--rounds", type=int, default=5, help="binds of each arm (default: 5)"
    )
    one.add_argument("--align", choices=pmem.ALIGNS, default="2M", help="devdax only")
    one.add_argument(
        "--map", choices=pmem.MAPS, default="dev", help="where struct pages lie"
    )
    one.add_argument("--accel", choices=accel.CHOICES, default="auto")
    one.add_argument("--json", type=Path, metavar="FILE", help="write the result here")
    one.add_argument("--keep", action="store_true", help="keep the run's files")
    one.add_argument("--backend", default="", metavar="NAME", help="store backend")
    one.add_argument("--seed", type=int, help="repeat the order of another run")
    one.add_argument(
        "--module-defines",
        nargs="+",
        default=[],
        metavar="NAME",
        help="make variables of a test build, as in BMM_FAULTS=1",
    )
    one.add_argument(
        "--break-one-word",
        action="store_true",
        help="change one word on purpose: the run must fail",
    )
    one.set_defaults(run=run_one)


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Let a signal end the lab as Ctrl-C does: nothing is left behind."""
    raise KeyboardInterrupt


def run_one(args: argparse.Namespace) -> int:
    """Run a scenario, show its table, and say by the exit code if it held."""
    wanted = scenario.find(args.scenario)
    seed = {} if args.seed is None else {"seed": args.seed}
    options = pmem.Options(
        size=pmem.parse_size(args.size or wanted.size),
        rounds=args.rounds,
        align=args.align,
        map=args.map,
        backend=args.backend,
        break_one_word=args.break_one_word,
        **seed,
    )
    need_writable(args.json)
    work = pmem.Work(wanted, options)
    request = run.Request(work, args.kernel, args.accel, args.keep, args.module_defines)
    signal.signal(signal.SIGTERM, interrupt)
    document = run.run_scenario(request)
    if args.json:
        document.write(args.json)
    if document.results:
        table.print_document(document)
    else:
        print_checks(document)
    return verdict(document)


def print_checks(document: Document) -> None:
    """Print what a scenario that measures nothing has to show."""
    console = _console()
    for check in document.checks:
        console.print(f"{'ok' if check.ok else 'FAILED':6} {check.name}", markup=False)
    passed = sum(check.ok for check in document.checks)
    console.print(f"Checks passed: {passed} of {len(document.checks)}.")


def need_writable(file: Path | None) -> None:
    """Refuse before the run a result file that could not be written after."""
    if file and (file.is_dir() or not file.absolute().parent.is_dir()):
        raise BulkmmError(f"the result file {file} cannot be written")


def verdict(document: Document) -> int:
    """Return the exit code, naming on stderr the checks that failed."""
    failed = [check for check in document.checks if not check.ok]
    for check in failed:
        _console(stderr=True).print(
            f"bulkmm: check failed: {check.name}: {check.detail}", markup=False
        )
    return Exit.VERDICT if failed else Exit.OK


def list_scenarios(_args: argparse.Namespace) -> int:
    """Print what each scenario is."""
    console = _console()
    for one in scenario.SCENARIOS:
        console.print(f"{one.name}", markup=False)
        console.print(f"  measures   {one.measures}", markup=False)
        console.print(f"  checks     {one.check}", markup=False)
        for line in one.published:
            console.print(f"  published  {line}", markup=False)
        console.print(f"  guest      {one.memory} MiB, about {one.seconds} s under TCG")
    return Exit.OK


def prepare(args: argparse.Namespace) -> int:
    """Make everything that a run needs, without running a guest."""
    defines = build.check_defines(args.module_defines)
    names = args.kernel or kernels.SERIES
    for name in names:
        kernels.check_name(name)
    need_sources()
    run.need_root()
    signal.signal(signal.SIGTERM, interrupt)
    progress = Progress()
    modules = scenario.SCENARIOS[0].modules
    with locked(progress) as cache:
        for name in names:
            ready = run.prepare(cache, name, modules, defines, progress)
            if args.strict:
                build.ensure(ready.kernel, defines, progress, strict=True)
            progress.note(f"ready: {ready.kernel.release}")
    return Exit.OK


def remove_cache(_args: argparse.Namespace) -> int:
    """Remove what the lab has cached (nothing of it is ever mounted)."""
    run.need_root()
    with locked(Progress()) as cache:
        for pattern in ("root-*", "*.part"):
            for path in cache.glob(pattern):
                shutil.rmtree(path)
    return Exit.OK
