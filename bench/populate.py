# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench populate``: ways to make memory resident, by kind of page.

A sample is a separate process with its own memory. QEMU is measured by the time
until it answers with memory preallocated, less the time without, run in succession,
with as many threads as ours. Below 64 MiB a sample is the median of many calls, each
for a mapping of its own, and only calls of one thread are compared.
"""

import os
import random
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

from bench import amount, measure, program
from bench.measure import Event, Observer
from bench.subjects import Amount, Arms, Request, Subject
from bulkmm.control.pools import Pool
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool import grow
from bulkmm.results.model import AGAIN, BULKMM, LIMIT, Document
from bulkmm.shell import ending
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.size import GIB, MIB, PAGE, name_size

KINDS = ("4k", "thp", "memfd", "hugetlb")
BASE, RESIDENT = "madvise", "resident-madvise"
PROGRAM = "bmm-populate"
HUGE = 2 * MIB
POOL = Pool(SystemFiles(Path("/")), HUGE)
FEW = 64 * MIB  # below, a sample is the median of many calls
SPARE = GIB  # bytes that stay free besides what is populated
PR_SET_THP_DISABLE = 41
LATEST = 120  # seconds per sample
THREADS_MAX = 512  # of the library and of the program
QEMU_MEMORY = {
    "4k": "memory-backend-ram",
    "thp": "memory-backend-ram",
    "memfd": "memory-backend-memfd",
    "hugetlb": "memory-backend-memfd,hugetlb=on,hugetlbsize=2M",
}
READY = b"(qemu)"


class Ways(Subject):
    """The ways to populate; each thread count is compared with its peers."""

    def pairs(self, results: Arms) -> Iterator[tuple[str, str]]:
        """Return bases and variants: one thread's madvise, then each peer of ours."""
        yield from ((BASE, name) for name in results if name != BASE)
        for name, result in results.items():
            if result.arm != BULKMM:
                continue
            for peer in (BASE, "qemu", LIMIT):
                peers = {"way": peer, "threads": result.threads}
                yield from ((k, name) for k, r in results.items() if r.matches(peers))
            if result.threads > 1:
                yield "bulkmm-1", name
        if RESIDENT in results:
            yield RESIDENT, "resident-1"


WAYS = Ways(
    name="populate",
    bases=(BASE,),
    right="every page is there and zero",
    wrong="leaves pages to fault, or not zero",
)


@dataclass(frozen=True)
class Job:
    """What to measure."""

    size: int
    kinds: Sequence[str]
    processes: int
    quick: bool = False


def list_threads(*, quick: bool) -> list[int]:
    """Return the numbers of threads: 1, 2, 4 … and all CPUs; quick: the ends."""
    most = min(len(os.sched_getaffinity(0)), THREADS_MAX)
    steps = [1 << i for i in range(most.bit_length()) if 1 << i < most]
    return [*(steps[:1] if quick else steps), most]


def measure_populate(job: Job, observer: Observer | None = None) -> Document:
    """Measure every checked kind; ``observer`` is called for each event."""
    kinds, skipped = [], {}
    for kind in job.kinds:
        if kind == "hugetlb" and (pages := count_missing(job.size)):
            skipped[kind] = (
                f"hugetlb: {pages} more free pages of {name_size(HUGE)} needed: "
                "--reserve, or bulkmm pool grow"
            )
        else:
            kinds.append(kind)
    if not kinds:
        raise BulkmmError("; ".join(skipped.values()))
    if kinds != ["hugetlb"]:  # whose memory is in the pool by now
        amount.check_memory(job.size, SPARE)
    request = Request(WAYS, Amount(job.size), processes=job.processes)
    document = measure.measure_requests(
        [(request, partial(_process, job, kinds))], observer
    )
    document.run |= {"skipped": skipped, "threads": list_threads(quick=job.quick)}
    return document


def check_job(job: Job) -> None:
    """Reject what cannot be measured."""
    least = HUGE if {"thp", "hugetlb"} & set(job.kinds) else PAGE
    if job.size % least or job.size < least:
        raise UsageError(f"{job.size} bytes: give whole pages of {name_size(least)}")


def count_missing(size: int) -> int:
    """Return how many huge pages the pool has too few to spare for a size."""
    return max(0, size // HUGE - POOL.count_spare())


def reserve_pages(size: int) -> AbstractContextManager[None]:
    """Grow the pool of huge pages to a size while the block runs."""
    if not (pages := count_missing(size)):
        return nullcontext()
    if os.geteuid():
        raise BulkmmError("--reserve needs root")
    return grow.borrow_pages(POOL, pages)


def _process(
    job: Job, kinds: Sequence[str], number: int, _padding: str
) -> Iterator[Event]:
    """Run one sample of each arm of each kind, in random order."""
    chance = random.Random(f"{kinds} {number}")  # noqa: S311 - to vary
    yield {"event": "start", "bytes": job.size}
    for kind in kinds:
        scenario = f"populate-{name_size(job.size).lower()}-{kind}"
        ways = list_ways(kind, job)
        chance.shuffle(ways)
        if not number:  # the host's first use of the memory
            list(_time_way(scenario, kind=kind, size=job.size, way="bulkmm-1"))
        for name, way in ways:
            yield from ({**event, "variant": name} for event in way(scenario))


Way = tuple[str, "Callable[[str], Iterator[Event]]"]


def list_ways(kind: str, job: Job) -> list[Way]:
    """Return the available ways by name."""
    counts = list_threads(quick=job.quick)
    few = job.size < FEW
    names = [BASE, "resident-1"]
    if few:
        names += ["bulkmm-1", RESIDENT]
    else:
        names += ["memset", "limit"]
        names += ["map-populate"] if kind != "thp" else []
        names += [f"bulkmm-{n}" for n in counts]
        names += [f"{way}-{n}" for way in (BASE, "limit") for n in counts if n > 1]
    ways: list[Way] = [
        (name, partial(_time_way, kind=kind, size=job.size, way=way))
        for name, way in [(f"{BASE}-{AGAIN}", BASE), *((name, name) for name in names)]
    ]
    if not few and (start := _qemu()):
        ways += [
            (f"qemu-{n}", partial(_preallocated, start, kind, job.size, n))
            for n in counts
        ]
    return ways


def _time_way(scenario: str, *, kind: str, size: int, way: str) -> Iterator[Event]:
    command = [program.find_program().with_name(PROGRAM), scenario, kind, size, way]
    late = f"{scenario}, {way}: ran out of time ({LATEST} s)"
    completed = program.run_program(command, LATEST, "the bench program", late)
    if completed.returncode:
        raise BulkmmError(f"{scenario}, {way}: {completed.stderr.strip() or 'failed'}")
    yield from map(program.parse_event, completed.stdout.splitlines())


def _qemu() -> list[str]:
    """Return the command for QEMU: the lab's, else the system's, if any."""
    from lab import paths
    from lab.machine import root

    name = "qemu-system-x86_64"
    if os.geteuid() == 0 and paths.VERSIONS.exists():
        lab_root = root.locate_root(paths.cache_dir())
        if (lab_root.path / "usr/bin" / name).exists():
            return ["chroot", str(lab_root.path), name]
    return [name] if shutil.which(name) else []


def _preallocated(
    start: list[str], kind: str, size: int, count: int, scenario: str
) -> Iterator[Event]:
    """Time QEMU with memory that some threads preallocate, less the time without."""
    words = [*start, "-machine", "none", "-nodefaults", "-display", "none"]
    words += ["-monitor", "stdio", "-object"]
    memory = f"{QEMU_MEMORY[kind]},id=m,size={size}"
    prealloc = f"{memory},prealloc=on,prealloc-threads={count}"
    small = kind != "thp"
    without = _until_ready([*words, memory], small=small)
    ns = _until_ready([*words, prealloc], small=small) - without
    if ns <= 0:
        message = (
            "QEMU's start varies by more than populating takes: give a larger --size"
        )
        raise BulkmmError(f"{scenario}: {message}")
    yield {"event": "sample", "scenario": scenario, "bytes": size, "ns": ns}


def _until_ready(command: list[str], *, small: bool) -> int:
    """Return the ns until QEMU answers, without what follows; it has LATEST."""
    start, output = time.monotonic_ns(), b""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=partial(_prepare, small=small),  # noqa: PLW1509 - no threads here
    ) as child:
        stdout = cast("IO[bytes]", child.stdout)
        try:
            while READY not in output:
                timeout = LATEST - (time.monotonic_ns() - start) / 1e9
                readable, _, _ = select.select([stdout], [], [], max(0, timeout))
                more = os.read(stdout.fileno(), 4096) if readable else b""
                if not more:
                    how = "ended" if readable else f"ran out of time ({LATEST} s)"
                    text = output.decode(errors="replace").strip() or "(nothing)"
                    last = text.splitlines()[-1]
                    raise BulkmmError(f"{command[0]} {how} and said: {last}")
                output += more
            return time.monotonic_ns() - start
        finally:  # however the wait ended, even by an interrupt
            child.kill()


def _prepare(*, small: bool) -> None:
    """In the program: end with the parent, even if that is interrupted in Popen()."""
    ending.end_with_parent()
    if small:
        ending.LIBC.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
