# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench serve``: what a start waits for, with memory of a server or without.

QEMU is timed until its guest is made and it answers: with memory that has no pages yet,
with its own prealloc, and with memory of ``bulkmm pool serve``, taken by this process
or by ``bulkmm pool take``. A program that needs content is timed until it has that:
read from a file that is in the page cache, the least that a start costs, or kept by
name. The stock is complete before each sample.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import amount, measure, populate, populate_peers
from bench.measure import Event, Observer
from bench.subjects import Amount, Arms, Request, Subject
from bulkmm.populate import library
from bulkmm.populate.libbulkmm import pool
from bulkmm.results.model import Document
from bulkmm.shell import size
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.size import MIB, name_size

LONGEST = 120  # seconds until stock is complete
COMMAND = [sys.executable, "-m", "bulkmm.cli", "pool"]
# of the lab's root, which has no /proc of its own: $0 is the root
IN_LAB = 'mount -t proc none "$0/proc" && exec chroot "$0" "$@"'
SOURCE_BYTES = 64 * MIB  # of the file with content, read over and over
# a program that needs content: of a server by its name, or read from a file
PROGRAM = """
import mmap, os, sys
from bulkmm.populate.libbulkmm import pool
socket, name, nbytes, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
full = False
if name:
    lease = pool.take(nbytes, name=name, path=socket)
    memory, full = lease.map(), lease.has_content
else:
    memory = mmap.mmap(-1, nbytes)
if not full:
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for at in range(0, nbytes, size):
            os.preadv(file.fileno(), [memoryview(memory)[at : at + size]], 0)
print("ready" if memory[-1] == 1 else "no content", flush=True)
sys.stdin.read()
"""
READY = b"ready"
PAGES = {"4K": "4k", "2M": "hugetlb"}  # as a server calls them, and results
NO_PAGES, PREALLOC, SERVER, TAKE = "no-pages", "prealloc", "server", "pool-take"
READ, BY_NAME = "read", "kept"
Arm = Callable[[], int]  # ns of a sample


class Starts(Subject):
    """The ways to start; those with a server are compared with all others."""

    def pairs(self, results: Arms) -> Iterator[tuple[str, str]]:
        """Return each way without a server as base of each with one."""
        for name in results:
            if name in (SERVER, TAKE, BY_NAME):
                bases = (base for base in results if base in self.bases)
                yield from ((base, name) for base in bases)


STARTS = Starts(name="serve", bases=(NO_PAGES, PREALLOC, READ))


@dataclass(frozen=True)
class Job:
    """What to measure: QEMU's memory, content kept by name, and in which pages."""

    size: int
    content: int
    pages: Sequence[str]
    processes: int


def measure_starts(job: Job, observer: Observer | None = None) -> Document:
    """Time all starts; ``observer`` is called for each event."""
    amount.check_memory(2 * job.size)
    library.find_library()
    find_qemu()
    request = Request(STARTS, Amount(job.size), processes=job.processes)
    return measure.measure_requests([(request, partial(_process, job))], observer)


def _process(job: Job, number: int, _padding: str) -> Iterator[Event]:
    """Time each way once, in random order."""
    chance = random.Random(f"serve {number}")  # noqa: S311 - to vary
    yield {"event": "start", "bytes": job.size}
    with tempfile.TemporaryDirectory(prefix="bulkmm-") as home:
        place = Path(home)
        for page in job.pages:
            with _serve_stock(place, f"{name_size(job.size)},page={page}") as path:
                yield from _run_arms(
                    f"start-{name_size(job.size).lower()}-{PAGES[page]}",
                    *(job.size, _list_starts(path, page, job.size), chance),
                )
        with _serve_stock(place, None) as path:
            yield from _run_arms(
                f"load-{name_size(job.content).lower()}-4k",
                *(job.content, _list_loads(path, place, job.content), chance),
            )


def _run_arms(
    scenario: str, nbytes: int, arms: dict[str, Arm], chance: random.Random
) -> Iterator[Event]:
    for name in chance.sample(sorted(arms), len(arms)):
        labels = {"scenario": scenario, "variant": name}
        yield {"event": "sample", **labels, "bytes": nbytes, "ns": arms[name]()}


@contextmanager
def _serve_stock(place: Path, stock: str | None) -> Iterator[str]:
    """Have a server with one memory in stock, if any."""
    path = str(place / "pool")
    words = ["serve", "--socket", path, *(["--stock", stock] if stock else [])]
    huge = bool(stock and stock.endswith("=2M"))
    nbytes = size.parse_bytes(stock.partition(",")[0], "1T") if stock else 0
    # what is handed out, and what stock is made of meanwhile
    with (
        populate.reserve_pages(2 * nbytes if huge else 0),
        subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        try:
            if not (server.stdout and server.stdout.readline()):
                raise BulkmmError("the server did not start")
            yield path
        finally:
            server.terminate()


def _wait_for_stock(path: str) -> None:
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        status = pool.status(path=path)
        states = {memory["state"] for memory in status["memories"]}
        if states <= {"stock", "kept"} and all(s["ready"] for s in status["stock"]):
            return
        time.sleep(0.05)
    raise BulkmmError(
        f"the stock was not complete in {LONGEST} s: is the machine idle?"
    )


def _list_starts(path: str, page: str, nbytes: int) -> dict[str, Arm]:
    """Return the ways to start QEMU."""
    qemu = find_qemu()
    huge = ",hugetlb=on,hugetlbsize=2M" if page == "2M" else ""
    memfd = f"memory-backend-memfd,share=on{huge}"
    threads = os.cpu_count() or 1
    filled = f"{memfd},prealloc=on,prealloc-threads={threads}"
    start = partial(_time_qemu, qemu, nbytes, path)
    words = ["take", "--socket", path, "--size", name_size(nbytes), "--page", page]
    take = [*COMMAND, *words, "--"]
    return {
        NO_PAGES: partial(start, memfd),
        PREALLOC: partial(start, filled),
        SERVER: partial(_time_leased, start, path, page, nbytes),
        TAKE: partial(start, _on_path("{}"), before=take),
    }


def find_qemu() -> list[str]:
    """Return the command for QEMU, the lab's with a /proc for its descriptors."""
    qemu = populate_peers.find_qemu()
    if not qemu:
        raise BulkmmError("QEMU is not installed (qemu-system-x86)")
    if qemu.command[0] != "chroot":
        return qemu.command
    return ["unshare", "--mount", "sh", "-c", IN_LAB, *qemu.command[1:]]


def _on_path(path: str) -> str:
    return f"memory-backend-file,share=on,mem-path={path}"


def guest_words(backend: str, nbytes: int) -> list[str]:
    """Return QEMU's arguments for a guest that is made and not run."""
    memory = name_size(nbytes)
    return [
        *("-machine", "q35,accel=tcg,memory-backend=m", "-m", memory),
        *("-object", f"{backend},id=m,size={memory}", "-S"),
        *("-nodefaults", "-display", "none", "-monitor", "stdio"),
    ]


def _time_qemu(
    qemu: list[str],
    nbytes: int,
    path: str,
    backend: str,
    *,
    before: list[str] | None = None,
    lease_fds: tuple[int, ...] = (),
) -> int:
    if not lease_fds:
        _wait_for_stock(path)
    command = [*(before or []), *qemu, *guest_words(backend, nbytes)]
    ready = populate_peers.QEMU_READY
    return populate_peers.time_start(command, ready, is_small=True, fds=lease_fds)


def _time_leased(start: Callable[..., int], path: str, page: str, nbytes: int) -> int:
    """Return the ns to take memory, and to start QEMU with it."""
    _wait_for_stock(path)
    began = time.monotonic_ns()
    with pool.take(nbytes, page=page, path=path) as lease:
        taken_ns = time.monotonic_ns() - began
        backend = _on_path(f"/proc/self/fd/{lease.fd}")
        return taken_ns + start(backend, lease_fds=(lease.fd,))


def _list_loads(path: str, place: Path, nbytes: int) -> dict[str, Arm]:
    """Return the ways to have content; what is kept is there from now on."""
    source = place / "content"
    source.write_bytes(b"\1" * min(SOURCE_BYTES, nbytes))
    python = [sys.executable, "-c", PROGRAM, path]

    def start(name: str) -> int:
        command = [*python, name, str(nbytes), str(source)]
        _wait_for_stock(path)
        return populate_peers.time_start(command, READY, is_small=True)

    start("content")
    return {READ: partial(start, ""), BY_NAME: partial(start, "content")}
