# SPDX-License-Identifier: GPL-2.0-only
"""The ``bulkmm lab`` command."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm import files, table
from bulkmm.errors import BulkmmError, Exit, UsageError
from bulkmm.lab import matrix, run, scenario
from bulkmm.lab.families import clear, hmm, hotplug, huge, packages, pmem, vmap
from bulkmm.lab.machine import accel, arch, build, kernels, root, upstream
from bulkmm.lab.machine.arch import X86_64
from bulkmm.lab.paths import locked, need_sources
from bulkmm.lab.progress import Progress
from bulkmm.results import Document

if TYPE_CHECKING:
    from rich.console import Console

    from bulkmm.lab.work import Work

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001

# options that not every family of scenarios has
OPTIONS = {
    scenario.PMEM: ("size", "align", "map", "backend"),
    scenario.CLEAR: (
        *("folios", "way", "kib", "preempt", "seconds"),
        *sorted(huge.ZEROING),
    ),
    scenario.VMAP: ("arm", "arrays", "loops", "seconds"),
    scenario.HMM: (),
    scenario.HOTPLUG: ("size",),
}
COMMON = ("rounds", "seed")


def add_parser(sub: Subparsers) -> None:
    """Add ``lab`` and what stands below it."""
    lab = sub.add_parser("lab", help="measure on stock kernels in virtual machines")
    below = lab.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_run(below)
    _add_matrix(below)
    _add_kernels(below)
    listing = below.add_parser("list", help="list the scenarios")
    listing.set_defaults(run=list_scenarios)
    ready = below.add_parser("prepare", help="fetch and build everything needed")
    ready.add_argument("--arch", help="prepare no other (default: all)")
    ready.add_argument(
        "--kernel", action="append", metavar="NAME", help="prepare no other"
    )
    ready.add_argument(
        "--module-defines",
        nargs="+",
        default=[],
        metavar="NAME",
        help="make variables of a test build",
    )
    ready.add_argument(
        "--strict", action="store_true", help="fail on any compiler warning (W=1)"
    )
    ready.set_defaults(run=prepare)
    clean = below.add_parser("clean", help="remove everything the lab has cached")
    clean.set_defaults(run=remove_cache)


def _add_run(below: Subparsers) -> None:
    one = below.add_parser("run", help="run a scenario off and on in one boot")
    _add_run_options(one)
    one.set_defaults(run=run_one)


def _add_matrix(below: Subparsers) -> None:
    every = below.add_parser(
        "matrix", help="run the scenarios on all kernels and architectures"
    )
    every.add_argument(
        "--quick", action="store_true", help="one short run of each path only"
    )
    every.add_argument("--arch", help="no other (default: all)")
    every.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the matrix here as a page"
    )
    every.add_argument(
        "--json-dir", type=Path, metavar="DIR", help="write each result here"
    )
    every.add_argument(
        "--resume",
        action="store_true",
        help="keep what --json-dir has of this module on these kernels, if it passed",
    )
    every.set_defaults(run=run_matrix)


def _add_kernels(below: Subparsers) -> None:
    every = below.add_parser(
        "kernels",
        help="run the module natively on every kernel image of Debian's archive",
        description="Fetch each kernel of the supported range that Debian's archive "
        "offers for x86-64, build the module for it, and run both natively: attached, "
        "prototypes, every result against the kernel's own, ratios. The newest of "
        "each series comes first.",
    )
    every.add_argument(
        "--only", metavar="REGEX", help="only releases that this is found in"
    )
    every.add_argument("--count", type=int, metavar="N", help="only the first N")
    every.add_argument("--list", action="store_true", help="only say which there are")
    every.add_argument(
        "--json-dir", type=Path, metavar="DIR", help="write each kernel's row here"
    )
    every.add_argument(
        "--resume",
        action="store_true",
        help="keep what --json-dir has of these sources, if it held",
    )
    every.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table here as a page"
    )
    every.set_defaults(run=run_kernels)


def _add_run_options(one: argparse.ArgumentParser) -> None:
    one.add_argument("scenario", metavar="SCENARIO", help="see: bulkmm lab list")
    _add_machine(one.add_argument_group("machine"))
    one.add_argument("--rounds", type=int, help="visits of each arm (default: 5)")
    one.add_argument("--json", type=Path, metavar="FILE", help="write the result here")
    one.add_argument("--keep", action="store_true", help="keep the run's files")
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
    _add_pmem(one.add_argument_group("persistent memory"))
    _add_clear(one.add_argument_group("huge pages"))
    _add_vmap(one.add_argument_group("kernel mappings"))
    one.add_argument_group("packages").add_argument(
        "--no-upgrade",
        action="store_true",
        help="install and purge only: DKMS builds once, not twice",
    )


def _add_machine(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--arch",
        default=X86_64.name,
        help=f"{' or '.join(arch.NAMES)} (default: {X86_64.name})",
    )
    group.add_argument(
        "--kernel",
        default="",
        help="6.12, 7.3 or a full release (default: 6.12; on arm64: 7.3)",
    )
    group.add_argument(
        "--accel",
        choices=accel.CHOICES,
        default="auto",
        help="KVM if a guest boots under it, else TCG (default: auto)",
    )
    group.add_argument("--cpu", default="", help="QEMU's name of it (default: max)")
    group.add_argument(
        "--append", default="", metavar="WORDS", help="for the kernel's command line"
    )


def _add_pmem(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--size", help="of the device (default: 100G)")
    group.add_argument("--align", choices=pmem.ALIGNS, help="devdax only (default: 2M)")
    group.add_argument(
        "--map", choices=pmem.MAPS, help="where struct pages lie (default: dev)"
    )
    group.add_argument("--backend", metavar="NAME", help="store backend")


def _add_clear(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--folios", type=int, metavar="N", help="of each visit")
    group.add_argument(
        "--way", action="append", metavar="NAME", help="to fault in (default: all)"
    )
    group.add_argument(
        "--kib", action="append", type=int, metavar="N", help="of a folio (mthp)"
    )
    group.add_argument(
        "--init-on-alloc",
        choices=huge.INIT_ON_ALLOC,
        help="whether the allocator clears as well (default: the kernel's own)",
    )
    group.add_argument(
        "--init-on-free",
        choices=huge.INIT_ON_ALLOC,
        help="whether it clears what is freed instead (default: the kernel's own)",
    )
    group.add_argument(
        "--preempt",
        choices=huge.PREEMPT,
        help="model of the guest's kernel (default: its own)",
    )
    group.add_argument(
        "--seconds",
        type=int,
        metavar="N",
        help="of clear-faults and vmap-faults (default: 60)",
    )


def _add_vmap(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--arm", action="append", metavar="NAME", help="to visit (default: all)"
    )
    group.add_argument("--arrays", type=int, metavar="N", help="of random shape")
    group.add_argument(
        "--loops", type=int, metavar="N", help="of vmap-upstream (default: 1000)"
    )


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def run_one(args: argparse.Namespace) -> int:
    """Run a scenario, show its table, and say by the exit code if it held."""
    request = _request(args)
    need_writable(args.json)
    document = run.run_scenario(request)
    if args.json:
        document.write(args.json)
    if document.results:
        table.print_document(document)
    else:
        print_checks(document)
    return verdict(document)


def _request(args: argparse.Namespace) -> run.Request:
    return run.Request(
        _work(scenario.find(args.scenario), args),
        kernel=args.kernel,
        arch=arch.find(args.arch),
        accel=args.accel,
        cpu=args.cpu,
        append=args.append,
        keep=args.keep,
        defines=args.module_defines,
    )


def run_matrix(args: argparse.Namespace) -> int:
    """Run one cell of the matrix after the other; show and keep what they say."""
    wanted = [arch.find(args.arch)] if args.arch else list(arch.ALL)
    need_writable(args.markdown)
    if args.resume and not args.json_dir:
        raise UsageError("--resume needs --json-dir: it says where the results lie")
    if args.json_dir:
        args.json_dir.mkdir(parents=True, exist_ok=True)
    chosen = matrix.cells(matrix.QUICK if args.quick else matrix.FULL, wanted)
    progress, lines = Progress(), []
    for number, cell in enumerate(chosen, 1):  # none keeps the next from running
        progress.note(f"run {number} of {len(chosen)}: {cell.name}")
        lines.append(_run_cell(cell, args.json_dir, resume=args.resume))
    table.print_lines(matrix.HEADINGS, [line.cells() for line in lines])
    _console().print(matrix.NOTE, markup=False)
    _console().print(matrix.summary(lines), markup=False)
    if args.markdown:
        page = matrix.markdown(lines, " --quick" if args.quick else "")
        args.markdown.write_text(page, encoding="utf-8")
    return Exit.OK if all(line.ok for line in lines) else Exit.VERDICT


def _run_cell(cell: matrix.Cell, to: Path | None, *, resume: bool) -> matrix.Line:
    parser = argparse.ArgumentParser()
    _add_run_options(parser)
    file = to / f"{cell.name}.json" if to else None
    try:
        request = _request(parser.parse_args(cell.words))
        document = _resumed(request, file) if resume and file else None
        if document is None:
            document = run.run_scenario(request)
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


def run_kernels(args: argparse.Namespace) -> int:
    """Look at one kernel of the archive after the other."""
    from bulkmm.lab import breadth  # noqa: PLC0415 - needs bulkmm[native]
    from bulkmm.lab.machine import archive  # noqa: PLC0415 - needs bulkmm[native]

    need_writable(args.markdown)
    if args.resume and not args.json_dir:
        raise UsageError("--resume needs --json-dir: it says where the rows lie")
    try:
        chosen = re.compile(args.only or "")
    except re.error as error:
        raise UsageError(f"--only {args.only}: {error}") from error
    need_sources()
    run.need_root()
    progress = Progress()
    with locked(progress) as cache:
        held = archive.Archive(root.ensure(cache, progress))
        held.update(progress)
        found = [one for one in held.offers() if chosen.search(one.release)]
    if args.list:
        for one in found[: args.count]:
            print(one.release, "" if one.headers else "(no headers)")
        return Exit.OK
    with breadth.place(args.json_dir) as to:
        rows = []
        for number, one in enumerate(found[: args.count], 1):
            progress.note(f"kernel {number} of {len(found)}: {one.release}")
            row = breadth.kept(one, to) if args.resume else None
            rows.append(row or breadth.look_at(held, one, to, progress))
            if args.markdown:  # what there is stays, if this is interrupted
                files.write(
                    args.markdown, breadth.markdown(rows, len(found)), "the page"
                )
    table.print_lines(breadth.HEADINGS, [row.cells() for row in rows])
    _console().print(breadth.summary(rows, len(found)), markup=False)
    return Exit.OK if all(row.ok for row in rows) else Exit.VERDICT


def _work(wanted: scenario.Scenario, args: argparse.Namespace) -> Work:
    """Return the scenario with the options that were given; refuse others'."""
    given = {
        name: getattr(args, name)
        for name in (*(name for names in OPTIONS.values() for name in names), *COMMON)
        if getattr(args, name) is not None
    }
    if wanted.family == scenario.PACKAGES:
        given |= {"break_one_word": True} if args.break_one_word else {}
        return packages.Work(wanted, given, upgrade=not args.no_upgrade)
    if args.no_upgrade:
        raise UsageError(f"--no-upgrade is no option of {wanted.name}")
    for name in given:
        if name not in (*OPTIONS[wanted.family], *COMMON):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is no option of {wanted.name}")
    given["break_one_word"] = args.break_one_word
    if wanted.family == scenario.CLEAR:
        given["ways"] = tuple(given.pop("way", ()))
        given["kib"] = tuple(given.get("kib", ()))
        given["soak_seconds"] = given.pop("seconds", huge.SOAK_SECONDS)
        return clear.huge_work(wanted, huge.Options(**given))
    if wanted.family == scenario.VMAP:
        given["arms"] = tuple(given.pop("arm", ()))
        given["soak_seconds"] = given.pop("seconds", vmap.SOAK_SECONDS)
        return vmap.Work(wanted, vmap.Options(**given))
    if wanted.family == scenario.HMM:
        return hmm.Work(wanted, hmm.Options(**given))
    if wanted.family == scenario.HOTPLUG:
        given["size"] = pmem.parse_size(given.get("size", wanted.size))
        return hotplug.Work(wanted, hotplug.Options(**given))
    given["size"] = pmem.parse_size(given.get("size", wanted.size))
    return pmem.Work(wanted, pmem.Options(**given))


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
    wanted = [
        (one, name)
        for one in ([arch.find(args.arch)] if args.arch else arch.ALL)
        for name in args.kernel or one.series
    ]
    for one, name in wanted:
        kernels.check_name(name, one)
    need_sources()
    run.need_root()
    progress = Progress()
    sets = {one.modules for one in scenario.SCENARIOS}
    tests = [one for one in scenario.SCENARIOS if one.upstream]
    with locked(progress) as cache:
        for one, name in wanted:
            for modules in sets:
                ready = run.prepare(cache, name, modules, defines, progress, arch=one)
            if args.strict:
                build.ensure(ready.kernel, defines, progress, strict=True)
            for test in tests:
                if test.runs_on(name):
                    upstream.ensure(ready.kernel, test.upstream, progress)
            progress.note(f"ready: {ready.kernel.release}")
    return Exit.OK


def remove_cache(_args: argparse.Namespace) -> int:
    """Remove what the lab has cached (nothing of it is ever mounted)."""
    run.need_root()
    with locked(Progress()) as cache:
        for pattern in ("root-*", "packaging-*", "*.part"):
            for path in cache.glob(pattern):
                shutil.rmtree(path)
    return Exit.OK
