# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench kernel``: a kernel's own code against the module's, natively."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError, Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bulkmm.bench.take import Event
    from bulkmm.lab.progress import Progress
    from bulkmm.native.measure import Job
    from bulkmm.results import Document

SUBJECTS = ("memmap", "clear", "vmap")  # that the module serves
ALONE = ("hotplug",)  # that it leaves to the kernel, for what is seen here
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
        choices=(*SUBJECTS, *ALONE, "all"),
        help="which functions to run; default all that the module serves",
    )
    parser.add_argument(
        "--kernel",
        default="6.12",
        metavar="6.12|7.3|RELEASE|FILE",
        help="kernel of the lab or below /boot, a vmlinuz, or a .deb; default 6.12",
    )
    parser.add_argument(
        "--module",
        metavar="FILE",
        help="bulkmm.ko for that kernel, or none; default: the lab's, or installed, or "
        "built against installed headers",
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

    need_packages("bench kernel")
    from bulkmm.native import find, measure, summary  # noqa: PLC0415

    command.check_file(args.json)
    progress = Progress()
    size = measure.parse_size(args.size) if args.size else None
    with find.files(args.kernel, args.module, progress) as (kernel, module):
        job = measure.Job(
            kernel=kernel,
            module=module,
            mitigations=args.mitigations,
            rounds=rounds,
            processes=processes,
            size=size,
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


def need_packages(what: str) -> None:
    """Refuse to go on without the libraries that read kernels."""
    if not all(map(importlib.util.find_spec, NEEDS)):
        raise BulkmmError(f"{what} needs more packages: pip install bulkmm[native]")


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
