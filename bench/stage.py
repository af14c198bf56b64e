# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench stage``: ways to have a file in memory, from the disk or its cache.

Each way is a process of its own; ours fills hugetlb pages, and so do a copy from a
mapping and fio with huge pages; and small pages. dd and fio keep nothing, cp fills
tmpfs, vmtouch the page cache.
"""

import json
import mmap
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import amount, measure, program
from bench.measure import Event, Observer
from bench.populate import BASE, PROGRAM, SPARE
from bench.populate_peers import LATEST
from bench.subjects import Amount, Arms, Request, Subject
from bulkmm.results.model import BULKMM, Document
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.size import MIB, name_size

COPY, STREAMING = "mmap-copy", "streaming"
POPULATED, PRIVATE = "populate-streaming", "populate-private"
HUGE, SMALL = "hugetlb", "4k"
# ours by kind of page, from the disk and from the page cache, and programs beside them
FROM_DISK = {HUGE: (BULKMM, COPY), SMALL: (BULKMM,)}
CACHED = {
    HUGE: (BULKMM, COPY, STREAMING, POPULATED),
    SMALL: (BULKMM, POPULATED, PRIVATE),
}
WITH_SMALL = ("fio", "cp")
TMPFS = Path("/dev/shm")  # noqa: S108 - that file system itself
FIO = ["fio", "--name=x", "--rw=read", "--direct=1", "--output-format=json"]
RING = ["--ioengine=io_uring", "--iodepth=32", "--bs=1M"]
BUFFERS = 32 * MIB  # of fio, in all


class Ways(Subject):
    """The ways; ours is compared with each other."""

    def pairs(self, results: Arms) -> Iterator[tuple[str, str]]:
        """Return each other way as base of ours."""
        yield from ((name, BULKMM) for name in results if name != BULKMM)


WAYS = Ways(
    name="stage",
    bases=(COPY,),
    right="every byte is that of the file",
    wrong="differs from the file",
)


@dataclass(frozen=True)
class Job:
    """What to measure: a file."""

    path: Path
    processes: int

    @property
    def size(self) -> int:
        """Return the bytes of the file."""
        return self.path.stat().st_size


@contextmanager
def make_file(name: str | None, size: int) -> Iterator[Path]:
    """Give the file, or make one on the disk while the block runs."""
    if name:
        if not Path(name).is_file() or Path(name).stat().st_size % (2 * MIB):
            raise UsageError(f"{name}: give a file of whole 2 MiB")
        yield Path(name)
        return
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="bulkmm-") as file:
        block = os.urandom(16 * MIB)
        for at in range(0, size, len(block)):
            file.write(block[: size - at])
        file.flush()
        os.fsync(file.fileno())
        yield Path(file.name)


def measure_stage(job: Job, observer: Observer | None = None) -> Document:
    """Measure all ways; ``observer`` is called for each event."""
    amount.check_memory(2 * job.size, SPARE)
    programs = {
        "fio": [*FIO, *RING],
        "fio-huge": [*FIO, *RING, "--mem=mmaphuge", "--hugepage-size=2M"],
        "fio-threads": [
            *(*FIO, "--mem=mmaphuge", "--hugepage-size=2M", "--ioengine=psync"),
            *(
                f"--bs={min(8 * MIB, job.size // 4)}",
                "--numjobs=4",
                "--thread",
                "--group_reporting",
            ),
            *(f"--size={job.size // 4}", f"--offset_increment={job.size // 4}"),
        ],
        "dd": ["dd", "of=/dev/null", "iflag=direct", "bs=16M", f"if={job.path}"],
        "cp": ["cp", str(job.path)],
        "vmtouch": ["vmtouch", "-q", "-t", "-m", "1000G", str(job.path)],
    }
    present = {
        name: words for name, words in programs.items() if shutil.which(words[0])
    }
    request = Request(WAYS, Amount(job.size), processes=job.processes)
    document = measure.measure_requests(
        [(request, partial(_process, job, present))], observer
    )
    document.run["skipped"] = {
        name: f"{name}: {words[0]} is not installed"
        for name, words in programs.items()
        if name not in present
    }
    return document


def _process(
    job: Job, programs: dict[str, list[str]], number: int, _padding: str
) -> Iterator[Event]:
    """Run each way once from the disk, then from the page cache, in random order.

    The first process verifies what it has: that reads the file once more.
    """
    verified = not number
    chance = random.Random(f"stage {number}")  # noqa: S311 - to vary
    yield {"event": "start", "bytes": job.size}
    for kind in (HUGE, SMALL):
        scenario = f"stage-{name_size(job.size).lower()}-{kind}"
        beside = [name for name in programs if kind == HUGE or name in WITH_SMALL]
        names = [*FROM_DISK[kind], *beside]
        for name in chance.sample(names, len(names)):
            _make_cold(job.path)
            yield from _run_way(job, programs, scenario, name, verified=verified)
        names = [*CACHED[kind], *(name for name in programs if name == "cp")]
        for name in chance.sample(names, len(names)):
            _make_cached(job.path)
            again = f"{scenario}-again"
            yield from _run_way(job, programs, again, name, verified=verified)


def _run_way(
    job: Job,
    programs: dict[str, list[str]],
    scenario: str,
    name: str,
    *,
    verified: bool,
) -> Iterator[Event]:
    labels = {"scenario": scenario, "variant": name}
    if name in programs:
        ns = _time_program(job, name, programs[name])
        yield {"event": "sample", **labels, "bytes": job.size, "ns": ns}
        return
    _get_memory_back(job, SMALL if SMALL in scenario.split("-") else HUGE)
    command = [sys.executable, "-m", "bench.stage_ways", scenario, name, job.path]
    command += ["--unverified"] * (not verified)
    for line in _run(name, command).splitlines():
        yield program.parse_event(line)


def _time_program(job: Job, name: str, words: Sequence[str]) -> int:
    """Return the ns that a program takes; fio tells itself how long it read."""
    if name.startswith("fio"):
        read = json.loads(_run(name, [*words, f"--filename={job.path}"]))
        rate: float = read["jobs"][0]["read"]["bw_bytes"]
        return round(job.size / rate * 1e9)
    _get_memory_back(job, SMALL)
    with tempfile.TemporaryDirectory(dir=TMPFS, prefix="bulkmm-") as place:
        more = [f"{place}/copy"] if name == "cp" else []
        start = time.monotonic_ns()
        _run(name, [*words, *more])
        return time.monotonic_ns() - start


def _get_memory_back(job: Job, kind: str) -> None:
    """Have what a host has taken away before it is timed, as for populate.

    That a huge page is reserved does not mean that the host has given memory for it.
    """
    back = [program.find_program().with_name(PROGRAM), "back", kind, job.size, BASE]
    _run("back", back)


def _run(name: str, command: Sequence[object]) -> str:
    late = f"{name}: ran out of time ({LATEST} s)"
    completed = program.run_program(command, LATEST, name, late)
    if completed.returncode:
        lines = (completed.stderr or completed.stdout).strip().splitlines()
        raise BulkmmError(f"{name}: {(lines or ['failed'])[-1]}")
    return completed.stdout


def _make_cold(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _make_cached(path: Path) -> None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as m:
        m.madvise(mmap.MADV_WILLNEED)
        while file.read(16 * MIB):
            pass
