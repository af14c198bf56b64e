# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench kernel``: a kernel's own code against the module's, natively."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError, Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bulkmm.bench.take import Event
    from bulkmm.lab.progress import Progress
    from bulkmm.native.measure import Job
    from bulkmm.results import Document

SUBJECTS = ("memmap", "clear", "vmap")
NEEDS = ("elftools", "vmlinux_to_elf", "zstandard")
ABOUT = (
    "Run a stock kernel's own machine code, and the built module's, in a process on "
    "this CPU: no privilege, nothing loaded, no virtual machine. The module attaches "
    "to the kernel's functions as it would there, and all that it writes is compared "
    "with what the kernel's own code writes, in every round. Example: bulkmm bench "
    "kernel memmap --kernel 7.3 --quick"
)


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``kernel`` to the parser of ``bench``."""
    parser = what.add_parser(
        "kernel",
        help="time a stock kernel's own code against the module's",
        description=ABOUT,
    )
    parser.add_argument(
        "subject",
        nargs="?",
        default="all",
        choices=(*SUBJECTS, "all"),
        help="which functions to run; default all",
    )
    parser.add_argument(
        "--kernel",
        default="6.12",
        metavar="6.12|7.3|FILE",
        help="kernel of the lab, or a vmlinuz; default 6.12",
    )
    parser.add_argument(
        "--module",
        metavar="FILE",
        help="bulkmm.ko built for that kernel, or none; default: as the lab builds it",
    )
    parser.add_argument(
        "--mitigations",
        default="host",
        choices=("host", "on", "off"),
        help="what returns do: as this machine's kernel has them, or on, or off",
    )
    parser.add_argument("--size", help="size of the device, or of what is cleared")
    parser.add_argument(
        "--scenario",
        metavar="NAME",
        action="append",
        default=[],
        help="run this scenario only; may be given again",
    )
    parser.add_argument(
        "--fuzz",
        type=int,
        metavar="SECONDS",
        help="make up cases for so long, after those kept; 0: only those (memmap)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of made-up cases; default 1"
    )
    parser.add_argument(
        "--case",
        metavar="LINE",
        help="this case only, measured or, with --fuzz, compared",
    )
    parser.add_argument(
        "--break-one-word",
        action="store_true",
        help="break one word of what the module wrote: the run must fail",
    )


def run_kernel(args: argparse.Namespace, rounds: int, processes: int) -> int:
    """Measure, show and keep."""
    from bulkmm.bench import command  # noqa: PLC0415 - keeps --help fast
    from bulkmm.lab.progress import Progress  # noqa: PLC0415

    missing = [name for name in NEEDS if not importlib.util.find_spec(name)]
    if missing:
        raise BulkmmError(
            "bench kernel needs more packages: pip install bulkmm[native]"
        )
    from bulkmm.native import measure, summary  # noqa: PLC0415 - needs the packages

    command.check_file(args.json)
    progress = Progress()
    kernel, module = _files(args, progress)
    job = measure.Job(
        kernel=kernel,
        module=module,
        mitigations=args.mitigations,
        rounds=rounds,
        processes=processes,
        size=measure.parse_size(args.size) if args.size else None,
        quick=args.quick,
        only=args.scenario,
        backends=args.all_rows,
        spoil=args.break_one_word,
        seed=args.seed,
        case=args.case,
    )
    if args.fuzz is not None:
        return _fuzz(args, job, progress)
    names = SUBJECTS if args.subject == "all" else (args.subject,)
    document = shown(job, names, progress)
    command.write(args.json, document)
    summary.show(document, all_rows=args.all_rows)
    return command.verdict(document)


def shown(job: Job, names: Sequence[str], progress: Progress) -> Document:
    """Measure, and show how far it is."""
    from bulkmm.native import measure  # noqa: PLC0415 - needs the packages

    def seen(event: Event) -> None:
        if event["event"] == "sample":
            where = f"process {event['process'] + 1}, {event['scenario']}"
            progress.detail(f"bench kernel: {where}")

    with progress.console.status("bench kernel: starting") as progress.status:
        return measure.run(job, names, progress, seen)


def _fuzz(args: argparse.Namespace, job: Job, progress: Progress) -> int:
    """Compare cases; the first that differs ends it."""
    from bulkmm.native import fuzz  # noqa: PLC0415 - needs the packages

    if args.json or not 0 <= args.fuzz <= fuzz.LONGEST:
        raise UsageError(f"--fuzz: 0 to {fuzz.LONGEST} seconds, and no --json")
    subjects = fuzz.SIZES if args.subject == "all" else (args.subject,)
    code = Exit.OK
    for subject in subjects:
        with progress.console.status(f"fuzzing {subject}"):
            found = fuzz.run(job, subject, args.fuzz, progress)
        print(found)
        if found.differs:
            words = f"{subject} --kernel {args.kernel} --fuzz 0"
            words += f" --module {args.module}" if args.module else ""
            print(f"again: bulkmm bench kernel {words} --case '{found.differs}'")
            code = Exit.VERDICT
    return code


def _files(args: argparse.Namespace, progress: Progress) -> tuple[Path, Path | None]:
    """Return the kernel's image and the module; the lab has both."""
    named = None if args.module in (None, "none") else Path(args.module)
    if Path(args.kernel).is_file():
        if args.module is None:
            raise UsageError("a kernel of your own: name its --module, or none")
        return Path(args.kernel), named
    if "/" in args.kernel:
        raise BulkmmError(f"{args.kernel}: no such file")
    return of_lab(args.kernel, named, progress, build_module=args.module is None)


def of_lab(
    name: str, named: Path | None, progress: Progress, *, build_module: bool
) -> tuple[Path, Path | None]:
    """Return a kernel of the lab and its module; what is cached needs no lock."""
    from bulkmm.lab import build, kernels, paths, root  # noqa: PLC0415

    kernels.check_name(name)
    kernel = kernels.cached(root.of(paths.cache_dir()), name)
    if not kernel or (build_module and not build.place(kernel, []).is_dir()):
        with paths.locked(progress) as cache:
            kernel = kernels.ensure(root.ensure(cache, progress), name, progress)
            if build_module:
                build.ensure(kernel, [], progress)
    if build_module:
        named = build.place(kernel, []) / "module" / "bulkmm.ko"
    return kernel.image, named
