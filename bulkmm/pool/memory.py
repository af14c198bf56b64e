# SPDX-License-Identifier: GPL-2.0-only
"""Memory that the server hands out: a memfd, filled and freed by other processes.

Who has had the descriptor may have passed it on, or keep a mapping. So no memfd is
handed out a second time, but under its name to its own user; and seals that nobody can
take back or add to leave one way to get its pages back: the server cuts it to nothing,
which unmaps it everywhere, and it can never grow again. Pages that a device or the
kernel still has pinned then are not free before they are released.

A process fills: it dies alone in a cgroup that is full, holds no mmap_lock of the
server's, and is idle to the scheduler. A process frees, as that takes long, too.
"""

import fcntl
import mmap
import os
import secrets
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bulkmm.control.pools import (
    Pool,
    has_nodes,
    list_nodes,
    list_page_sizes,
    read_meminfo,
)
from bulkmm.control.system_files import SystemFiles
from bulkmm.populate import libbulkmm, target
from bulkmm.populate.target import Target
from bulkmm.shell import size
from bulkmm.shell.ending import KILLED_FIRST, OOM_SCORE, end_with_parent, hold_signals
from bulkmm.shell.errors import BulkmmError, UsageError

ROOT = SystemFiles(Path("/"))
SMALL, TRANSPARENT = size.name_size(mmap.PAGESIZE), "thp"
HUGE_HOME = "/sys/kernel/mm/transparent_hugepage"
NO_HUGE = (
    "the kernel gives shared memory no transparent huge pages: write advise to "
    f"{HUGE_HOME}/shmem_enabled"
)
LARGEST = "64T"
SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
LONGEST = 4096  # bytes of what a process says


def list_pages() -> list[str]:
    """Return the kinds of pages, as users write them."""
    return [SMALL, TRANSPARENT, *map(size.name_size, list_page_sizes(ROOT))]


@dataclass(frozen=True)
class Kind:
    """How much memory, in which pages, of which node (None: any)."""

    nbytes: int
    page: str
    node: int | None

    def __post_init__(self) -> None:
        """Reject what there cannot be."""
        if self.page not in list_pages():
            raise UsageError(f"page {self.page}: there are {', '.join(list_pages())}")
        whole = 0 < self.nbytes <= size.parse_bytes(LARGEST, LARGEST)
        if not whole or self.nbytes % self._find_unit():
            raise UsageError(
                f"{self.nbytes} bytes: give a multiple of the page, {LARGEST} at most"
            )
        if self.node is not None and self.node not in list_nodes(ROOT):
            numbers = ", ".join(map(str, list_nodes(ROOT)))
            raise UsageError(f"node {self.node}: there are nodes {numbers}")

    @property
    def huge(self) -> int:
        """Return the size of its huge pages of a pool; 0: it has none."""
        if self.page in (SMALL, TRANSPARENT):
            return 0
        return size.parse_bytes(self.page, LARGEST)

    def _find_unit(self) -> int:
        """Return the bytes of a page."""
        if self.page == TRANSPARENT:
            return int(ROOT.read(f"{HUGE_HOME}/hpage_pmd_size") or mmap.PAGESIZE)
        return self.huge or mmap.PAGESIZE

    def matches(self, wanted: "Kind") -> bool:
        """Tell whether this kind is what is asked for."""
        node = self.node if wanted.node is None else wanted.node
        return self == replace(wanted, node=node)

    def choose_node(self) -> "Kind":
        """Return this kind on the node that has most of what it needs."""
        if self.node is not None:
            return self
        return replace(self, node=max(list_nodes(ROOT), key=self._measure_room))

    def _measure_room(self, node: int) -> int:
        if self.huge:
            return Pool(ROOT, self.huge, node).count_free()
        return read_meminfo(ROOT, node, "MemFree", "Active(file)", "Inactive(file)")

    def __str__(self) -> str:
        """Return how users write it."""
        node = "" if self.node is None else f",node={self.node}"
        return f"{size.name_size(self.nbytes)},page={self.page}{node}"


@dataclass(eq=False)
class Memory:
    """A memfd; uid: of the user who has it, or else it is in stock."""

    kind: Kind
    file: Target
    uid: int | None = None
    name: str | None = None
    pid: int | None = None  # of the client that has it now
    ready: bool = False  # all pages are there
    has_content: bool = False  # a client had it before, under its name
    freeing: bool = False
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def fd(self) -> int:
        """Return its descriptor."""
        return self.file.fd

    @property
    def state(self) -> str:
        """Return what it is doing."""
        if self.freeing:
            return "freeing"
        if not self.ready:
            return "filling"
        if self.uid is None:
            return "stock"
        return "kept" if self.pid is None else "leased"

    def count_resident(self) -> int:
        """Return the bytes that it has in memory."""
        return os.fstat(self.fd).st_blocks * 512

    def fill_pages(self, *, idle: bool) -> None:
        """Make all pages resident; idle: only on CPUs that have nothing else to do."""
        OOM_SCORE.write_text(KILLED_FIRST, encoding="ascii")
        if idle:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        node = self.kind.node if has_nodes(ROOT) else None
        with self.file.map_shared() as area:
            if self.kind.page == TRANSPARENT:
                area.madvise(mmap.MADV_HUGEPAGE)
            try:
                libbulkmm.populate(area, node=node, threads=int(idle))
                if self.kind.page == TRANSPARENT:
                    libbulkmm.collapse(area)
            except libbulkmm.Error as error:
                if error.cause == "fragmented":  # the rest is of small pages
                    return
                text = NO_HUGE if error.cause == "no_huge" else str(error)
                raise BulkmmError(text) from error

    def free_pages(self) -> None:
        """Cut it to nothing, whoever has it."""
        os.ftruncate(self.fd, 0)


def make_memory(kind: Kind) -> Memory:
    """Make memory that has no pages yet; raise if limits would not allow them."""
    flags = os.MFD_ALLOW_SEALING
    with target.create_memfd(kind.nbytes, kind.huge, kind.node, flags) as file:
        fcntl.fcntl(file.fd, fcntl.F_ADD_SEALS, SEALS)
        return Memory(kind, replace(file, fd=os.dup(file.fd)))


def adopt_memory(fd: int, kind: Kind, uid: int, name: str, token: str) -> Memory:
    """Return memory that an earlier server had handed out."""
    page = kind.huge or mmap.PAGESIZE
    file = Target(Path("memfd"), fd, kind.nbytes, page, kind.node)
    return Memory(kind, file, uid, name or None, ready=True, token=token)


class Worker:
    """A process that works on memory; end of ``report_fd``: it has ended."""

    def __init__(self, memory: Memory, work: Callable[[], None], *, idle: bool) -> None:
        self.memory, self.idle, self.stopped = memory, idle, False
        self.report_fd, write_fd = os.pipe()
        parent = os.getpid()
        with hold_signals():  # in the process, to its end: the server decides
            try:
                if not (pid := os.fork()):
                    try:
                        _close_others(memory.fd, write_fd)
                        _run_work(work, write_fd, parent)
                    finally:
                        os._exit(1)
            except OSError:
                os.close(self.report_fd)
                raise
            finally:
                os.close(write_fd)
        self.pid = pid

    def stop(self) -> None:
        """Kill it; memory that is partly filled stays so.

        What is idle to the scheduler would not even end while CPUs are busy, and its
        pages would stay taken.
        """
        self.stopped = True
        with suppress(PermissionError):  # by RLIMIT_NICE
            os.sched_setscheduler(self.pid, os.SCHED_OTHER, os.sched_param(0))
        os.kill(self.pid, signal.SIGKILL)

    def collect_error(self) -> str:
        """Return why it failed, or an empty text; once it has ended."""
        text = os.read(self.report_fd, LONGEST).decode(errors="replace")
        os.close(self.report_fd)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if status == -signal.SIGKILL and not self.stopped:
            return "the kernel killed the process that filled it: memory is short"
        return text or (f"it ended with {status}" if status > 0 else "")


def _close_others(*fds: int) -> None:
    """Close all other descriptors: whoever has a connection open prolongs a lease."""
    first = 3
    for fd in sorted(fds):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def _run_work(work: Callable[[], None], report_fd: int, parent: int) -> None:
    """In a process of its own: work, and report why it failed."""
    end_with_parent()
    if os.getppid() != parent:
        return
    text = ""
    try:
        work()
    except (BulkmmError, OSError) as error:
        text = str(error)
    os.write(report_fd, text.encode()[:LONGEST])
    os._exit(0)
