# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench populate``: ways to make memory resident, by kind of page.

Below 64 MiB a sample is the median of many calls in a process, each for a mapping of
its own, and only calls of one thread are compared. From there on it is the median of
three processes, because starts and hosts vary; other programs are among the ways, with
as many threads as ours, and the library as Python calls it.
"""

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path

from bench import amount, measure, populate_peers, program
from bench.measure import Event, Observer
from bench.populate_peers import HUGE, LATEST, THREADS_MAX, Peer, Program, Way
from bench.program import FILL, LIBRARY
from bench.subjects import Amount, Arms, Request, Subject
from bulkmm.control.pools import Pool
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool import grow
from bulkmm.results.model import AGAIN, BULKMM, LIMIT, Document, Result
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.size import GIB, MIB, PAGE, name_size

KINDS = ("4k", "thp", "memfd", "hugetlb")
BASE, RESIDENT = "madvise", "resident-madvise"
# a store to each huge page: to new ones; to some that a child of fork() shares
TOUCH, FORK = "touch", "fork"
PROGRAM = "bmm-populate"
PYTHON = "bench.populate_python"
# of numpy's algebra, whose second thread spins for 25 ms as it starts
PYTHON_THREADS = {"OPENBLAS_NUM_THREADS": "1"}
POOL = Pool(SystemFiles(Path("/")), HUGE)
FEW = 64 * MIB  # below, a sample is the median of many calls
RUNS = 3  # of a way for a sample, from there on
SPARE = GIB  # bytes that stay free besides what is populated
# ways that ours is compared with, each for as many threads
PEERS = (BASE, *(peer.name for peer in populate_peers.PEERS), FILL, LIMIT)


class Ways(Subject):
    """The ways to populate; each thread count is compared with its peers."""

    def pairs(self, results: Arms) -> Iterator[tuple[str, str]]:
        """Return bases and variants: one thread's madvise, then each peer of ours."""
        yield from ((BASE, name) for name in results if name != BASE)
        for name, result in results.items():
            for way, threads in _bases_of(result):
                base = {"way": way, "threads": threads}
                yield from ((k, name) for k, r in results.items() if r.matches(base))
        if RESIDENT in results:
            yield RESIDENT, "resident-1"


def _bases_of(result: Result) -> Iterator[tuple[str, int]]:
    """Yield way and threads of what one of ours is compared with."""
    threads = result.threads
    if result.way == BULKMM:
        yield from ((peer, threads) for peer in PEERS)
        if threads > 1:
            yield BULKMM, 1
    elif result.way == LIBRARY:
        yield from ((BULKMM, threads), (FILL, 1))


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

    @property
    def pooled(self) -> int:
        """Return the bytes of huge pages that the pool is to have: FORK copies all."""
        return self.size * (2 if self.size >= FEW else 1)


def list_threads(*, quick: bool) -> list[int]:
    """Return the numbers of threads: 1, 2, 4 … and all CPUs; quick: the ends."""
    most = min(len(os.sched_getaffinity(0)), THREADS_MAX)
    steps = [1 << i for i in range(most.bit_length()) if 1 << i < most]
    return [*(steps[:1] if quick else steps), most]


def measure_populate(job: Job, observer: Observer | None = None) -> Document:
    """Measure every checked kind; ``observer`` is called for each event."""
    kinds, skipped = [], {}
    for kind in job.kinds:
        if kind == "hugetlb" and (pages := count_missing(job.pooled)):
            skipped[kind] = (
                f"hugetlb: {pages} more free pages of {name_size(HUGE)} needed: "
                "--reserve, or bulkmm pool grow "
                f"--page {name_size(HUGE)} --size {name_size(pages * HUGE)}"
            )
        else:
            kinds.append(kind)
    if not kinds:
        raise BulkmmError("; ".join(skipped.values()))
    if kinds != ["hugetlb"]:  # whose memory is in the pool by now
        amount.check_memory(job.size, SPARE)
    programs: Mapping[Peer, Program] = {}
    if job.size >= FEW:
        programs, absent = populate_peers.find_peers(kinds, job.size)
        skipped |= absent
    ways = {kind: list_ways(kind, job, programs) for kind in kinds}
    request = Request(WAYS, Amount(job.size), processes=job.processes)
    document = measure.measure_requests(
        [(request, partial(_process, job, ways))], observer
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
    job: Job, ways_of: Mapping[str, Sequence[Way]], number: int, _padding: str
) -> Iterator[Event]:
    """Run one sample of each arm of each kind, in random order."""
    chance = random.Random(f"{[*ways_of]} {number}")  # noqa: S311 - to vary
    yield {"event": "start", "bytes": job.size}
    for kind, ways in ways_of.items():
        scenario = f"populate-{name_size(job.size).lower()}-{kind}"
        for name, way in chance.sample(ways, len(ways)):
            for event in _run_way(job, kind, partial(way, scenario)):
                yield {**event, "variant": name}


def _run_way(
    job: Job, kind: str, way: Callable[[], Iterator[Event]]
) -> Iterator[Event]:
    """Run a way several times; yield every verdict, and the median as the sample."""
    samples = []
    for _ in range(RUNS if job.size >= FEW else 1):
        if kind != "hugetlb":  # whose pages are in the pool, and stay
            # A host takes pages that are free in a guest away, and gives them back at
            # the guest's first store, which lasts longer than what is measured.
            list(_time_way("back", kind=kind, size=job.size, way=BASE))
        for event in way():
            if event["event"] == "sample":
                samples.append(event)
            else:
                yield event
    median = sorted(samples, key=itemgetter("ns"))[len(samples) // 2]
    if median["ns"] <= 0:  # the difference of two starts
        raise BulkmmError(
            f"{median['scenario']}: a start varies by more than populating takes: "
            "give a larger --size"
        )
    yield median


def list_ways(kind: str, job: Job, programs: Mapping[Peer, Program]) -> list[Way]:
    """Return the available ways by name."""
    counts = list_threads(quick=job.quick)
    names = [BASE, "resident-1"]
    if job.size < FEW:
        names += ["bulkmm-1", RESIDENT]
    else:
        names += ["memset", "limit", f"{FILL}-1"]
        names += ["map-populate"] if kind != "thp" else []
        names += [TOUCH, FORK] if kind == "hugetlb" else []
        names += [f"{way}-{n}" for way in (BULKMM, LIBRARY) for n in counts]
        names += [f"{way}-{n}" for way in (BASE, "limit") for n in counts if n > 1]
    ways: list[Way] = [
        (name, partial(_time_way, kind=kind, size=job.size, way=way))
        for name, way in [(f"{BASE}-{AGAIN}", BASE), *((name, name) for name in names)]
    ]
    return [*ways, *populate_peers.list_ways(programs, kind, job.size, counts)]


def _time_way(scenario: str, *, kind: str, size: int, way: str) -> Iterator[Event]:
    """Run one of our programs and yield its events."""
    start: list[object] = [program.find_program().with_name(PROGRAM)]
    if way.startswith(LIBRARY):
        start = [sys.executable, "-m", PYTHON]
    command = [*start, scenario, kind, size, way]
    late = f"{scenario}, {way}: ran out of time ({LATEST} s)"
    completed = program.run_program(
        command,
        LATEST,
        "the bench program",
        late,
        environment={**os.environ, **PYTHON_THREADS},
    )
    if completed.returncode:
        lines = completed.stderr.strip().splitlines() or ["failed"]
        raise BulkmmError(f"{scenario}, {way}: {lines[-1]}")
    yield from map(program.parse_event, completed.stdout.splitlines())
