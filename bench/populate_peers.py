# SPDX-License-Identifier: GPL-2.0-only
"""Programs that make memory resident by their own code: the peers of populate.

QEMU and a JVM are timed until they answer: with memory that they populate as they
start, less without, in succession. perf times itself. None of them shows its pages, so
that nothing verifies them.
"""

import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

from bench import program
from bench.measure import Event
from bulkmm.shell import ending
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.size import MIB, PAGE, name_size

LATEST = 120  # seconds per sample, or start
HUGE = 2 * MIB
THREADS_MAX = 512  # of the library and of the programs
Way = tuple[str, Callable[[str], Iterator[Event]]]  # name; events by scenario


@dataclass(frozen=True)
class Program:
    """A program that is installed, and the most threads that it populates with."""

    command: list[str]
    threads_most: int = THREADS_MAX


@dataclass(frozen=True)
class Task:
    """What a program is to populate."""

    kind: str
    size: int
    threads: int

    @property
    def is_small(self) -> bool:
        """Return whether transparent huge pages are to be switched off."""
        return self.kind != "thp"


@dataclass(frozen=True)
class Peer:
    """A program to compare with, and what to say where it is not installed."""

    name: str
    kinds: tuple[str, ...]
    find: Callable[[], Program | None]
    time: Callable[[Program, Task], int]
    absent: str
    multiple: int = PAGE  # of the sizes that it can have


def find_peers(
    kinds: Sequence[str], size: int
) -> tuple[dict[Peer, Program], dict[str, str]]:
    """Return the programs for kinds and a size, and why others are left out."""
    programs, skipped = {}, {}
    for peer in PEERS:
        if not {*peer.kinds} & {*kinds}:
            continue
        if size % peer.multiple:
            unit = name_size(peer.multiple)
            skipped[peer.name] = f"{peer.name}: {size} bytes are no multiple of {unit}"
        elif installed := peer.find():
            programs[peer] = installed
        else:
            skipped[peer.name] = f"{peer.name}: {peer.absent}"
    return programs, skipped


def list_ways(
    programs: Mapping[Peer, Program], kind: str, size: int, counts: Sequence[int]
) -> Iterator[Way]:
    """Yield the programs' ways to populate a kind, for each number of threads."""
    for peer, installed in programs.items():
        most = min(installed.threads_most, size // HUGE)  # a share for each thread
        for count in counts if kind in peer.kinds else ():
            if count <= most:
                task = Task(kind, size, count)
                yield (f"{peer.name}-{count}", partial(_sample, peer, installed, task))


def _sample(
    peer: Peer, installed: Program, task: Task, scenario: str
) -> Iterator[Event]:
    """Yield the sample of a peer."""
    try:
        ns = peer.time(installed, task)
    except BulkmmError as error:
        label = f"{scenario}, {peer.name}-{task.threads}"
        raise BulkmmError(f"{label}: {error}") from error
    yield {"event": "sample", "scenario": scenario, "bytes": task.size, "ns": ns}


def _find_in_lab(name: str) -> list[str]:
    """Return the command for a program of the lab's root, if it is there."""
    from lab import paths
    from lab.machine import root

    if os.geteuid() == 0 and paths.VERSIONS.exists():
        lab_root = root.locate_root(paths.cache_dir())
        if (lab_root.path / "usr/bin" / name).exists():
            return ["chroot", str(lab_root.path), name]
    return []


def _find_in_path(name: str) -> list[str]:
    """Return the command for a program of the system, if it is there."""
    return [path] if (path := shutil.which(name)) else []


QEMU, QEMU_READY = "qemu-system-x86_64", b"(qemu)"
QEMU_MEMORY = {
    "4k": "memory-backend-ram",
    "thp": "memory-backend-ram",
    "memfd": "memory-backend-memfd",
    "hugetlb": "memory-backend-memfd,hugetlb=on,hugetlbsize=2M",
}


def find_qemu() -> Program | None:
    """Return QEMU: the lab's, else the system's."""
    command = _find_in_lab(QEMU) or _find_in_path(QEMU)
    return Program(command) if command else None


def time_qemu(qemu: Program, task: Task) -> int:
    """Return the ns that preallocating memory adds to the start of QEMU."""
    words = [*qemu.command, "-machine", "none", "-nodefaults", "-display", "none"]
    words += ["-monitor", "stdio", "-object"]
    memory = f"{QEMU_MEMORY[task.kind]},id=m,size={task.size}"
    populated = f"{memory},prealloc=on,prealloc-threads={task.threads}"
    return _time_starts([*words, memory], [*words, populated], QEMU_READY, task)


JVM_READY = b" VM ("  # in what -version prints when the virtual machine is there
JVM_PAGES = {"4k": [], "thp": ["-XX:+UseTransparentHugePages"]}


def find_java() -> Program | None:
    """Return the system's java."""
    command = _find_in_path("java")
    return Program(command) if command else None


def time_jvm(java: Program, task: Task) -> int:
    """Return the ns that AlwaysPreTouch adds to the start of a JVM.

    The heap has the size to the byte; the collector's threads touch one of its spaces
    after the other. What the start uses of it in any case, half a MiB or two huge
    pages, is not in the difference. AlwaysPreTouch touches the code cache, too, with
    one thread: 7 MiB by default, so the smallest is asked for.
    """
    words = [*java.command, f"-Xms{task.size}", f"-Xmx{task.size}"]
    words += ["-XX:+UseParallelGC", f"-XX:ParallelGCThreads={task.threads}"]
    words += ["-XX:InitialCodeCacheSize=160k", *JVM_PAGES[task.kind]]
    touched = [*words, "-XX:+AlwaysPreTouch", "-version"]
    return _time_starts([*words, "-version"], touched, JVM_READY, task)


PERF_PAGES = {"4k": ("4KB", PAGE), "hugetlb": ("2MB", HUGE)}
PERF_MMAP = ["bench", "-f", "simple", "mem", "mmap"]


def find_perf() -> Program | None:
    """Return the perf that has "bench mem mmap": the system's, else the lab's."""
    for command in (_find_in_path("perf"), _find_in_lab("perf")):
        usage = _read_usage([*command, *PERF_MMAP, "-h"]) if command else ""
        if "--function" in usage:
            return Program(command, THREADS_MAX if "--threads" in usage else 1)
    return None


def _read_usage(command: list[str]) -> str:
    """Return what a program prints, be it that it does not know the words."""
    late = f"{command[0]} printed no usage in {LATEST} s"
    completed = program.run_program(command, LATEST, command[0], late)
    return completed.stdout + completed.stderr


def time_perf(perf: Program, task: Task) -> int:
    """Return the ns for mmap() with MAP_POPULATE, and a store to each page after it.

    perf prints the bytes per second of a thread, from the mean of the threads' times;
    each has a mapping of its own, here its share. At that rate times the threads, the
    size takes the ns returned: less than until the last thread has ended if they did
    not run at once. Its clock counts microseconds.
    """
    name, page = PERF_PAGES[task.kind]
    share = task.size // page // task.threads * page
    command = [*perf.command, *PERF_MMAP, "-f", "populate", "-p", name]
    command += ["-s", f"{share}B"]
    command += ["-t", str(task.threads)] if task.threads > 1 else []
    prepare = partial(prepare_program, is_small=task.is_small)
    late = f"perf ran out of time ({LATEST} s)"
    completed = program.run_program(command, LATEST, "perf", late, prepare=prepare)
    last = _last_line(completed.stdout + completed.stderr)
    try:
        rate = float(last) * task.threads
    except ValueError:
        rate = 0
    if completed.returncode or rate <= 0:
        raise BulkmmError(f"perf ended and said: {last}")
    return round(task.size / rate * 1e9)


def _last_line(text: str) -> str:
    """Return the last line of what a program printed."""
    return (text.strip() or "(nothing)").splitlines()[-1]


def _time_starts(
    plain: list[str], populating: list[str], ready: bytes, task: Task
) -> int:
    """Return the ns that populating adds to a start; it can be less than none."""
    ns = time_start(plain, ready, is_small=task.is_small)
    return time_start(populating, ready, is_small=task.is_small) - ns


def time_start(
    command: list[str], ready: bytes, *, is_small: bool, fds: Sequence[int] = ()
) -> int:
    """Return the ns until a program answers, without what follows; it has LATEST."""
    start, output = time.monotonic_ns(), b""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=fds,
        preexec_fn=partial(prepare_program, is_small=is_small),  # noqa: PLW1509 - no threads here
    ) as child:
        stdout = cast("IO[bytes]", child.stdout)
        try:
            while ready not in output:
                timeout = LATEST - (time.monotonic_ns() - start) / 1e9
                readable, _, _ = select.select([stdout], [], [], max(0, timeout))
                more = os.read(stdout.fileno(), 4096) if readable else b""
                if not more:
                    how = "ended" if readable else f"ran out of time ({LATEST} s)"
                    last = _last_line(output.decode(errors="replace"))
                    name = Path(command[0]).name
                    raise BulkmmError(f"{name} {how} and said: {last}")
                output += more
            return time.monotonic_ns() - start
        finally:  # however the wait ended, even by an interrupt
            child.kill()


def prepare_program(*, is_small: bool) -> None:
    """In the program: end with the parent, even if that is interrupted in Popen()."""
    ending.end_with_parent()
    if is_small:
        program.disable_huge_pages()


PEERS = (
    Peer(
        *("qemu", tuple(QEMU_MEMORY), find_qemu, time_qemu),
        absent="QEMU is not installed (qemu-system-x86)",
    ),
    Peer(
        *("perf", tuple(PERF_PAGES), find_perf, time_perf),
        absent="no perf with bench mem mmap is installed (a newer linux-perf)",
    ),
    Peer(
        *("jvm", tuple(JVM_PAGES), find_java, time_jvm),
        absent="Java is not installed (default-jre-headless)",
        multiple=HUGE,
    ),
)
