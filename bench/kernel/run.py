# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench kernel``: a kernel's own code against the module's, natively."""

import argparse
import importlib.util
from contextlib import ExitStack

from bench import amount
from bench.kernel.measure import Job
from bulkmm.results import finish
from bulkmm.shell import size
from bulkmm.shell.errors import BulkmmError, Exit, UsageError
from bulkmm.shell.progress import Progress

SUBJECTS = ("memmap", "clear", "copy", "vmap")  # those that the module serves
# options that do not apply when comparing cases
UNFUZZED = (
    *("json", "output", "submit_file", "all_rows"),
    *("quick", "rounds", "processes", "scenario", "against"),
)
NEEDS = ("elftools", "lz4", "vmlinux_to_elf", "zstandard")


def run_kernel(args: argparse.Namespace) -> int:
    """Measure; show and write the result."""
    need_packages()
    from bench.kernel import find, measure
    from bulkmm.results import result_tables

    finish.need_place(args)
    for name in UNFUZZED if args.fuzz is not None else ():
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} does not apply to --fuzz")
    progress = Progress()
    rounds, processes = amount.read_repeats(args)
    wanted = find.NO_MODULE if args.against and args.module is None else args.module
    with ExitStack() as stack:
        image, module = stack.enter_context(
            find.find_files(args.kernel, wanted, progress)
        )
        against = None
        if args.against:
            files = find.find_files(args.against, find.NO_MODULE, progress)
            against, _ = stack.enter_context(files)
        job = measure.Job(
            kernel=image,
            module=module,
            mitigations=args.mitigations,
            rounds=rounds,
            processes=processes,
            size=size.parse_size(args.size, "1T") if args.size else None,
            quick=args.quick,
            only=args.scenario or (),
            backends=args.all_rows,
            corrupt=args.break_one_word,
            seed=args.seed,
            case=args.case,
            against=against,
        )
        if args.fuzz is not None:
            return _fuzz(args, job, progress)
        names = SUBJECTS if args.subject == "all" else (args.subject,)
        with progress.follow_events(
            "bench kernel: starting", "bench kernel"
        ) as observer:
            document = measure.measure_kernel(job, names, progress, observer)
    wanted = result_tables.Show(all_rows=args.all_rows)
    return finish.finish_run(
        args, document, lambda: result_tables.print_documents([document], show=wanted)
    )


def need_packages() -> None:
    """Raise unless the libraries that read kernels are there."""
    if not all(map(importlib.util.find_spec, NEEDS)):
        raise BulkmmError(
            "bench kernel needs more packages: make build installs them in a checkout"
        )


def _fuzz(args: argparse.Namespace, job: Job, progress: Progress) -> int:
    """Compare cases until one differs."""
    from bench.kernel import fuzz

    subjects = fuzz.SIZES if args.subject == "all" else (args.subject,)
    code = Exit.OK
    for subject in subjects:
        with progress.show_status(f"fuzzing {subject}"):
            result = fuzz.fuzz_kernel(job, subject, args.fuzz, progress)
        print(result)
        if result.differs:
            words = f"{subject} --kernel {args.kernel} --fuzz 0"
            options = ((name, getattr(args, name)) for name in ("module", "size"))
            words += "".join(f" --{name} {value}" for name, value in options if value)
            print(f"again: bulkmm bench kernel {words} --case '{result.differs}'")
            code = Exit.VERDICT
    return code
