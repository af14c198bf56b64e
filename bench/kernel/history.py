# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench history``: the code of kernel after kernel, on this CPU.

Each kernel's own code only. The process is the unit: every kernel has one before
any has the next, in random order.
"""

import argparse
import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench import amount, judge
from bench import measure as bench
from bench.kernel import find, measure
from bench.measure import Event, Observer
from bench.subjects import Request, Subject
from bulkmm.control import requirements
from bulkmm.control.format import format_duration
from bulkmm.results import conditions, finish, result_tables, row_names
from bulkmm.results.model import AGAIN, Document, Result
from bulkmm.results.table import Table, print_lines
from bulkmm.shell.progress import Progress

if TYPE_CHECKING:  # numpy takes long to load
    from bench.kernel.process import Prepared


def _time(arm: Result) -> str:
    return format_duration(arm.median)


def _rate(arm: Result) -> str:
    return f"{arm.bytes / arm.median:.1f} GB/s"


def _entry(arm: Result) -> str:
    return f"{arm.median / (arm.bytes / 8):.2f} ns"


class Column(NamedTuple):
    """A column: a scenario of a subject, and how its times are written."""

    heading: str
    subject: str
    scenario: str
    formatter: Callable[[Result], str]


COLUMNS = (
    Column("memmap, 16 GiB", "memmap", "pmem-fsdax-16g", _time),
    Column("clear, 2 MiB", "clear", "thp-2m", _rate),
    Column("copy, 2 MiB", "copy", "copy-2m", _rate),
    Column("vmap, a page", "vmap", "vmap-100m-order0", _entry),
    Column("vmap, a page of a run", "vmap", "vmap-100m-order9", _entry),
)


def measure_history(args: argparse.Namespace) -> int:
    """Measure; show and write the result."""
    finish.need_place(args)
    rounds, processes = amount.read_repeats(args)
    progress = Progress()
    job = measure.Job(Path(), None, rounds=rounds, processes=processes, quick=True)
    with ExitStack() as stack:
        with progress.show_status("bench history: starting"):
            files = stack.enter_context(_images(args.kernels, progress))
            from bench.kernel import process

            kernels = [
                stack.enter_context(
                    process.prepare_kernel(file, None, "host", progress)
                )
                for file in files
            ]
        # of two of the same release, the last
        ready = {kernel.release: kernel for kernel in kernels}
        observer = stack.enter_context(
            progress.follow_events("bench history", "bench history", processes)
        )
        document = measure_kernels(list(ready.values()), job, observer)

    def show() -> None:
        report = make_table(document)
        print(*report.markdown(), sep="\n") if args.markdown else report.print()
        print_lines(list_notes(document))

    return finish.finish_run(args, document, show)


@contextmanager
def _images(names: Sequence[str], progress: Progress) -> Iterator[list[Path]]:
    """Yield the images named or, if none is, the newest of each series there is."""
    if names:
        with ExitStack() as stack:
            contexts = [
                find.find_files(name, find.NO_MODULE, progress) for name in names
            ]
            yield [stack.enter_context(context)[0] for context in contexts]
        return
    from bench.kernel import archive
    from lab import paths
    from lab.machine import cached, root

    paths.need_sources()
    cached.need_root()
    with paths.make_scratch("bulkmm-history-") as directory:
        with paths.lock_cache(progress) as cache:
            repository = archive.Archive(root.ensure_root(cache, progress))
            repository.update(progress)
            from bench.kernel import vmlinux

            newest = {offer.series: offer for offer in reversed(repository.offers())}
            for offer in newest.values():
                file = directory / offer.release
                step = progress.step(f"fetching {offer.release}")
                with step, repository.fetched((offer.image,)) as debs:
                    file.write_bytes(vmlinux.boot_file(debs[0]))
        yield sorted(directory.iterdir())


def measure_kernels(
    kernels: Sequence["Prepared"], job: measure.Job, observer: Observer
) -> Document:
    """Return what all kernels take for the scenarios of all columns."""
    kernels = sorted(
        kernels, key=lambda kernel: requirements.parse_version(kernel.release)
    )
    oldest = kernels[0].release
    subject = Subject(
        name="history",
        bases=(oldest,),
        right="the same in every round",
        wrong="differs",
    )
    chance = random.Random(job.seed)  # noqa: S311

    def start(number: int, padding: str) -> Iterator[Event]:
        yield {"event": "start", "rounds": job.rounds}
        for column in COLUMNS:
            only = dataclasses.replace(job, only=(column.scenario,))
            size = measure.make_request(
                only, measure.SUBJECTS[column.subject]
            ).amount.size
            words = [
                *measure.make_arguments(only, column.subject, size, number),
                "--stock",
            ]
            for kernel in chance.sample(kernels, len(kernels)):
                for event in measure.read_events(kernel, words, padding):
                    arm = row_names.read_variant(event.get("variant", ""))
                    again = arm["control"] and f"-{AGAIN}"
                    # the control is the oldest's; of others it is only verified
                    if kernel.release == oldest:
                        yield {**event, "variant": oldest + again}
                    elif event["event"] != "sample" or not again:
                        yield {**event, "variant": kernel.release}

    request = Request(subject, subject.full, processes=job.processes, seed=job.seed)
    result = bench.measure_requests([(request, start)], observer)
    # whose code ran is in the names of the variants, too
    result.run["host_kernel"] = result.machine["kernel"]
    result.run["returns"] = kernels[0].mitigations
    result.machine["kernel"] = kernels[-1].release
    return result


def make_table(document: Document) -> Table:
    """Return a row per kernel, oldest first, with its ratio to the oldest."""
    scenarios = judge.by_scenario(document.results)
    ratios = {(one.scenario, one.variant): one for one in document.ratios}
    columns = [one for one in COLUMNS if one.scenario in scenarios]
    first = scenarios[columns[0].scenario]
    names = [name for name, result in first.items() if not result.control]
    rows = [
        [
            f"{name}",
            *(
                one.formatter(scenarios[one.scenario][name])
                + (f", {result_tables.format_ratio(ratio)}" if ratio else "")
                for one in columns
                for ratio in [ratios.get((one.scenario, name))]
            ),
        ]
        for name in names
    ]
    return Table(("kernel", *(one.heading for one in columns)), rows)


def list_notes(document: Document) -> list[str]:
    """Return the lines below the table."""
    first = document.results[0].variant
    summary = (
        f"Each kernel's own code; {result_tables.TIMES}: how often as fast as {first}."
    )
    machine = (
        f"native: {conditions.describe_cpu(document)}; n = {document.run['processes']}"
    )
    quiet = conditions.describe_noise(document)
    return [
        summary,
        f"{machine} processes.",
        *quiet,
        conditions.describe_checks(document),
        result_tables.LEGEND,
    ]
