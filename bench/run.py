# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: measure the core natively on this machine."""

import argparse
from contextlib import nullcontext
from functools import partial

from bench import amount, goals, measure, populate, serve, stage, subjects
from bench.subjects import Request
from bulkmm.results import finish, result_tables
from bulkmm.results.model import Document
from bulkmm.results.table import print_lines
from bulkmm.shell import size
from bulkmm.shell.errors import Exit
from bulkmm.shell.progress import Progress


def run_bench(args: argparse.Namespace) -> int:
    """Measure; show and write the result."""
    finish.need_place(args)
    plan = make_requests(args)
    first = "bench: making the memory present"
    total = sum(request.processes for request in plan)
    progress = Progress().follow_events(first, "bench", total, len(plan))
    with progress as observer:
        document = measure.run_bench(plan, observer)

    def show() -> None:
        result_tables.print_documents(
            [document], show=result_tables.Show(all_rows=args.all_rows)
        )
        outcomes = goals.judge_goals(document)
        for line in goals.list_missed(outcomes, selections=True):
            print(line)

    return finish.finish_run(args, document, show)


def make_requests(args: argparse.Namespace) -> list[Request]:
    """Return the request that the command line makes."""
    by_name = subjects.SUBJECTS
    rounds, processes = amount.read_repeats(args)
    plan = []
    for subject in by_name.values() if args.action == "all" else [by_name[args.action]]:
        much = subject.quick if args.quick else subject.full
        backend = getattr(args, "backend", None)
        plan.append(Request(subject, much, rounds, processes, backend=backend))
    return plan


def run_populate(args: argparse.Namespace) -> int:
    """Measure the ways to populate."""
    finish.need_place(args)
    size_text = args.size or ("256M" if args.quick else "1G")
    job = populate.Job(
        size=size.parse_bytes(size_text, "1T"),
        kinds=args.kind or populate.KINDS,
        processes=args.processes or amount.FULL_PROCESSES,
        quick=args.quick,
    )
    populate.check_job(job)
    pool = populate.reserve_pages(job.pooled) if args.reserve else nullcontext()
    progress = Progress().follow_events("bench: populate", "bench", job.processes)
    with progress as observer, pool:
        document = populate.measure_populate(job, observer)

    return finish.finish_run(args, document, partial(_print_ways, document))


def _print_ways(document: Document) -> None:
    result_tables.print_documents([document], show=result_tables.Show(full=True))
    for why in document.run.get("skipped", {}).values():
        print(f"left out: {why}")


def run_stage(args: argparse.Namespace) -> int:
    """Measure the ways to have a file in memory."""
    finish.need_place(args)
    nbytes = size.parse_bytes(args.size or ("256M" if args.quick else "4G"), "1T")
    processes = args.processes or amount.FULL_PROCESSES
    progress = Progress().follow_events("bench: stage", "bench", processes)
    with progress as observer, stage.make_file(args.file, nbytes) as path:
        job = stage.Job(path, processes)
        with populate.reserve_pages(job.size + stage.BUFFERS):
            document = stage.measure_stage(job, observer)

    return finish.finish_run(args, document, partial(_print_ways, document))


def run_serve(args: argparse.Namespace) -> int:
    """Measure starts with memory of a server and without."""
    finish.need_place(args)
    default, content = ("256M", "128M") if args.quick else ("4G", "2G")
    job = serve.Job(
        size=size.parse_bytes(args.size or default, "1T"),
        content=size.parse_bytes(args.keep or content, "1T"),
        pages=args.page or [*serve.PAGES],
        processes=args.processes or amount.FULL_PROCESSES,
    )
    progress = Progress().follow_events("bench: serve", "bench", job.processes)
    with progress as observer:
        document = serve.measure_starts(job, observer)

    return finish.finish_run(args, document, partial(_print_ways, document))


def print_goals(args: argparse.Namespace) -> int:
    """Print the outcome of each goal."""
    missed = False
    for path in args.results:
        document = Document.read(path)
        if len(args.results) > 1:
            print(f"{path}:")
        outcomes = goals.judge_goals(document)
        goals.make_table(outcomes).print()
        lines = goals.list_missed(outcomes) + goals.list_disagreements(document)
        print_lines(lines)
        missed = missed or bool(lines)
    return Exit.VERDICT if missed else Exit.OK
