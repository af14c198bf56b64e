# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench kernel``: a kernel's own code against the module's, natively."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from bench import amount
from bench.kernel import find, fuzz, measure, scenarios
from bench.kernel.measure import Job
from bulkmm.report import output
from bulkmm.results import finish, result_tables
from bulkmm.shell import size
from bulkmm.shell.errors import Exit, UsageError
from bulkmm.shell.progress import Progress

SUBJECTS = ("memmap", "clear", "copy", "vmap")  # of all, without --against
# with --quick, and nothing else: the headlines, and where the module may cost
QUICK = (
    *("pmem-fsdax-16g", "pmem-devdax-16g", "thp-2m-populate", "thp-2m", "copy-2m"),
    *("vmap-100m-order8", "vmap-1page", "vmalloc-100m-huge"),
)
# options that do not apply when comparing cases
UNFUZZED = (
    *("json", "output", "submit_file", "all_rows"),
    *("quick", "rounds", "processes", "scenario", "against"),
)


def run_kernel(args: argparse.Namespace) -> int:
    """Measure; show and write the result."""
    finish.need_place(args)
    for name in UNFUZZED if args.fuzz is not None else ():
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} does not apply to --fuzz")
    names = list_subjects(args)
    scenarios.check_scenarios(args.scenario or (), names)
    if args.case is not None:
        measure.check_case(args.case, names)
    progress = Progress()
    with _prepare_job(args, progress) as job:
        if args.fuzz is not None:
            return _fuzz(args, job, progress)
        total = job.processes * len(names)
        with progress.follow_events(
            "bench kernel: starting", "bench kernel", total, len(names)
        ) as observer:
            document = measure.measure_kernel(job, names, progress, observer)
    wanted = result_tables.Show(all_rows=args.all_rows)
    return finish.finish_run(
        args, document, lambda: output.print_results([document], wanted)
    )


def list_subjects(args: argparse.Namespace) -> Sequence[str]:
    """Return the subjects to run; kernels are compared in all."""
    if args.subject != "all":
        return (args.subject,)
    return tuple(measure.SUBJECTS) if args.against else SUBJECTS


def _choose_scenarios(args: argparse.Namespace) -> Sequence[str]:
    """Return the scenarios to run if none is named; none: all."""
    selection = args.subject != "all" or args.size or args.case or args.against
    return QUICK if args.quick and not selection else ()


@contextmanager
def _prepare_job(args: argparse.Namespace, progress: Progress) -> Iterator[Job]:
    """Yield what the command line asks for, with the kernels and the module found."""
    rounds, processes = amount.read_repeats(args)
    wanted = args.module or (find.NO_MODULE if args.against else find.OWN_MODULE)
    wanted = None if wanted == find.OWN_MODULE else wanted
    files = find.find_files(args.kernel, wanted, progress)
    with files as (image, module), ExitStack() as stack:
        against = None
        if args.against:
            base = find.find_files(args.against, find.NO_MODULE, progress)
            against, _ = stack.enter_context(base)
        yield Job(
            kernel=image,
            module=module,
            mitigations=args.mitigations,
            rounds=rounds,
            processes=processes,
            size=size.parse_size(args.size, "1T") if args.size else None,
            quick=args.quick,
            only=args.scenario or _choose_scenarios(args),
            backends=args.all_rows,
            corrupt=args.break_one_word,
            seed=args.seed,
            case=args.case,
            against=against,
        )


def _fuzz(args: argparse.Namespace, job: Job, progress: Progress) -> int:
    """Compare cases until one differs."""
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
