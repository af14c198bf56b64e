# SPDX-License-Identifier: GPL-2.0-only
"""Run the harness process by process; its events become a result document."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import measure as bench
from bench import program
from bench.amount import check_memory
from bench.measure import Event, Observer
from bench.subjects import Amount, Request, Subject
from bulkmm.control.format import format_size
from bulkmm.results import row_names, size_grid
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError, Exit, UsageError
from bulkmm.shell.progress import Progress
from bulkmm.shell.size import GIB, MIB

if TYPE_CHECKING:  # numpy takes long to load: errors in the arguments come first
    from bench.kernel.process import Prepared

LIMIT = 600  # seconds per process; more than may be fuzzed
KERNEL = "kernel"
SPARE = 512 << 20  # bytes for images, tables and the rest of the system


def _subject(
    name: str,
    own_variants: tuple[str, ...],
    size: int,
    memory: float,
    *,
    quick: int = 0,  # as much as in full: other sizes have other ratios
    cached: tuple[str, ...] = (),
    limited: tuple[str, ...] = ("",),
) -> Subject:
    return Subject(
        name=name,
        full=Amount(size),
        quick=Amount(quick or size),
        memory=memory,
        own_variants=own_variants,
        bases=(size_grid.STOCK,),
        limited=limited,
        cached=cached,
        right="as the kernel's own code leaves it, in every round",
        wrong="differs from what the kernel's own code leaves",
    )


# what a path does when it picks by itself
PICKED = {
    **dict.fromkeys(("memmap", "clear", "copy"), ("bulkmm",)),
    "vmap": ("pte", "block"),
}
WRITING = ("bulkmm", "bulkmm-cached", "bulkmm-streaming")
SUBJECTS = {
    one.name: one
    for one in (
        # a struct page and its checksum per page of the device
        _subject("memmap", ("bulkmm",), 100 * GIB, 72 / 4096, quick=16 * GIB),
        _subject(
            "clear",
            WRITING,
            256 * MIB,
            1.02,
            cached=WRITING[:2],  # by itself it may leave all in a large cache
            limited=("", "populate"),
        ),
        # source and destination
        _subject("copy", WRITING, 256 * MIB, 2.1),
        # the scenarios' names include the size of the arrays
        _subject("vmap", ("pte", "block"), 100 * MIB, 1),
        # memory blocks, whose struct pages exceed the caches
        _subject("hotplug", (), 16 * GIB, 72 / 4096, limited=("", "then-free")),
    )
}


@dataclass(frozen=True)
class Job:
    """What to run."""

    kernel: Path
    module: Path | None
    mitigations: str = "host"
    rounds: int = 5
    processes: int = 6
    seed: int = 1
    size: int | None = None
    quick: bool = False
    only: Sequence[str] = ()  # names of scenarios; (): all
    backends: bool = False  # each backend, too
    corrupt: bool = False  # break one word of what the module wrote
    case: str | None = None  # runs instead of the scenarios
    against: Path | None = None  # the kernel to compare with, instead of a module


def measure_kernel(
    job: Job, names: Sequence[str], progress: Progress, observer: Observer | None = None
) -> Document:
    """Measure and compare these subjects; ``observer`` is called for each event."""
    from bench.kernel import process

    for name in names:
        make_request(job, SUBJECTS[name])  # reject bad requests at once
    images = job.kernel, job.module, job.against
    with process.prepare_kernels(*images, job.mitigations, progress) as ready:
        return measure_prepared(ready, job, names, observer)


def measure_prepared(
    ready: "Prepared",
    job: Job,
    names: Sequence[str],
    observer: Observer | None = None,
) -> Document:
    """Return the measurements of a prepared kernel."""
    requests = [
        make_request(job, _adapt_subject(ready, job, SUBJECTS[name])) for name in names
    ]
    starts = [(request, partial(_process, ready, job, request)) for request in requests]
    document = bench.measure_requests(starts, observer)
    if not document.results:
        raise UsageError(
            f"{' and '.join(job.only)}: not with this size, or not on "
            f"{ready.release}: see docs/native.md"
        )
    document.run |= {
        "host_kernel": document.machine["kernel"],
        "returns": ready.mitigations,
    }
    document.machine["kernel"] = ready.release  # whose code it is
    if ready.against:
        document.run["against"] = ready.against.release
    return document


def check_case(case: str, subjects: Sequence[str]) -> None:
    """Reject a case whose variant a subject lacks, before all the work.

    The harness knows the backends and the numbers.
    """
    variant = case.split(" ", maxsplit=1)[0] or "a blank"
    for subject in subjects:
        names = SUBJECTS[subject].own_variants or PICKED["memmap"]
        if not re.fullmatch(rf"({'|'.join(names)})(-\d+t)?(:.*)?", variant):
            raise UsageError(
                f"{subject}: a case begins with a variant, not with {variant}: there "
                f"are {', '.join(names)}"
            )


def _adapt_subject(ready: "Prepared", job: Job, subject: Subject) -> Subject:
    """Return a subject as it is if there is a kernel to compare with."""
    if not ready.against:
        return subject
    release = ready.against.release
    return replace(
        subject,
        own_variants=(KERNEL, *subject.own_variants),
        bases=(size_grid.AGAINST,),
        limited=subject.limited if job.module else (),
        right=f"as the code of {release} leaves it, in every round",
        wrong=f"differs from what the code of {release} leaves",
    )


def make_request(job: Job, subject: Subject) -> Request:
    """Return what to run of a subject; rejects what cannot be."""
    amount = subject.quick if job.quick else subject.full
    request = Request(
        subject,
        replace(amount, size=_choose_size(job, subject.name, amount.size)),
        rounds=job.rounds,
        processes=job.processes,
        seed=job.seed,
    )
    check_memory(int(request.amount.size * subject.memory), SPARE)
    return request


def _choose_size(job: Job, subject: str, usual: int) -> int:
    """Return the size of the device, which its scenarios name, or of the memory."""
    scenarios = map(row_names.read_scenario, job.only)
    sizes = {f.get("size", 0) for f in scenarios if f["operation"] == subject}
    if subject != "memmap":
        least = GIB if GIB in sizes else 0  # a page of 1 GiB
        return job.size or max(usual, least)
    sizes = {*sizes, job.size or 0} - {0}  # some scenarios have no size
    if len(sizes) > 1:
        listing = " and ".join(map(format_size, sorted(sizes)))
        raise UsageError(f"a run has devices of one size, not of {listing}")
    return max(sizes, default=usual)


def _process(
    ready: "Prepared", job: Job, request: Request, number: int, padding: str
) -> list[Event]:
    arguments = make_arguments(job, request.subject.name, request.amount.size, number)
    return read_events(ready, arguments, padding)


def make_arguments(job: Job, subject: str, size: int, number: int = 0) -> list[str]:
    """Return the harness's arguments for one process."""
    arguments = [subject, f"--size={size}", f"--rounds={job.rounds}"]
    arguments += [f"--seed={job.seed + number}"]
    arguments += [f"--only={','.join(job.only)}"] if job.only else []
    arguments += ["--backends"] if job.backends else []
    # of two kernels alone
    arguments += ["--stock"] if job.against and not job.module else []
    arguments += ["--break-one-word"] if job.corrupt else []
    return arguments + ([] if job.case is None else [f"--case={job.case}"])


def read_events(ready: "Prepared", words: list[str], padding: str) -> list[Event]:
    """Run one process; padding in its environment shifts its stack."""
    late = f"{words[0]} of {ready.release}: not done in {LIMIT} s"
    command = ready.command(words)
    environment = {"BULKMM_BENCH_PADDING": padding}
    completed = program.run_program(
        command, LIMIT, "the native harness", late, environment=environment
    )
    if completed.returncode not in (0, program.WRONG_OUTPUT):
        error_lines = completed.stderr.strip().splitlines() or [
            f"ended with {completed.returncode}"
        ]
        error = UsageError if completed.returncode == Exit.USAGE else BulkmmError
        raise error(f"{words[0]} of {ready.release}: {error_lines[-1]}")
    return [json.loads(line) for line in completed.stdout.splitlines()]
