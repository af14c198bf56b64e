# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench serve``: what a start waits for, with memory of a server or without.

QEMU is timed until its guest is made and it answers: with memory that has no pages yet,
with its own prealloc, and with memory of ``bulkmm pool serve``, taken by this process
or by ``bulkmm pool take``. A program that needs content is timed until it has that:
read from a file that is in the page cache, the least that a start costs, or kept by
name. The stock is complete before each sample.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from bench import amount, populate, populate_peers
from bulkmm.populate import library
from bulkmm.populate.libbulkmm import pool
from bulkmm.shell import size
from bulkmm.shell.errors import BulkmmError, Exit
from bulkmm.shell.files import need_place, write_file
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
Arm = Callable[[], int]  # ns of a sample


def measure_starts(args: argparse.Namespace) -> int:
    """Time the starts in turn; print medians and ranges."""
    need_place(args.output, "output")
    nbytes, content_bytes = (size.parse_bytes(t, "1T") for t in (args.size, args.keep))
    library.find_library()
    samples: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory(prefix="bulkmm-") as home:
        place = Path(home)
        for page in args.page or ("4K", "2M"):
            amount.check_memory(2 * nbytes)
            with _serve_stock(place, f"{args.size},page={page}") as path:
                _run_rounds(_list_starts(path, page, nbytes), args.rounds, samples)
        with _serve_stock(place, None) as path:
            _run_rounds(_list_loads(path, place, content_bytes), args.rounds, samples)
    record = {"size": nbytes, "keep": content_bytes, "ns": samples}
    text = json.dumps({"schema_version": 1, "serve": record}, indent=1)
    if args.output:
        write_file(args.output, f"{text}\n", "output")
    print(*([text] if args.json else _list_lines(samples)), sep="\n")
    return Exit.OK


def _list_lines(samples: dict[str, list[int]]) -> Iterator[str]:
    """Yield a line for each arm, and how much later than the first of its group."""
    for name, times in samples.items():
        group = name.partition(" ")[0]
        base = next(values for key, values in samples.items() if key.startswith(group))
        ms, least, most = (f(times) / 1e6 for f in (median, min, max))
        later = ms - median(base) / 1e6
        span = f"{least:.1f} to {most:.1f}, n = {len(times)}"
        yield f"{name}: {ms:.1f} ms ({span}), {later:+.1f} ms"


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


def _run_rounds(
    arms: dict[str, Arm], rounds: int, samples: dict[str, list[int]]
) -> None:
    """Run each arm once a round, in random order."""
    for name in arms:
        samples[name] = []
    for _ in range(rounds):
        for name in random.sample(sorted(arms), len(arms)):
            samples[name].append(arms[name]())


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
    """Return the ways to start QEMU; the first has no pages yet."""
    qemu = find_qemu()
    huge = ",hugetlb=on,hugetlbsize=2M" if page == "2M" else ""
    memfd = f"memory-backend-memfd,share=on{huge}"
    threads = os.cpu_count() or 1
    filled = f"{memfd},prealloc=on,prealloc-threads={threads}"
    start = partial(_time_qemu, qemu, nbytes, path)
    words = ["take", "--socket", path, "--size", name_size(nbytes), "--page", page]
    take = [*COMMAND, *words, "--"]
    group = f"qemu-{page}"
    return {
        f"{group} no pages": partial(start, memfd),
        f"{group} prealloc": partial(start, filled),
        f"{group} server": partial(_time_leased, start, path, page, nbytes),
        f"{group} pool take": partial(start, _on_path("{}"), before=take),
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
    return {
        "load-4K own": partial(start, ""),
        "load-4K kept": partial(start, "content"),
    }
