# SPDX-License-Identifier: GPL-2.0-only
"""The target of populate: a file whose pages stay in memory, or a memfd.

Errors are detected before any page is allocated, if possible; a file that cannot
be filled gets its old size back.
"""

import mmap
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError, UsageError
from bulkmm.pool.pools import Pool, sizes
from bulkmm.size import named

LOG_OF_HUGE = 26  # shift of the huge page size's logarithm in memfd_create() flags
MEMORY = ("tmpfs", "hugetlbfs", "ramfs")
MOUNTS = Path("/proc/self/mountinfo")
ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Target:
    """An open file and how much of it to fill."""

    name: str
    fd: int
    size: int
    page: int  # bytes: page size of its file system

    def mapped(self) -> mmap.mmap:
        """Map it; this reserves huge pages or fails."""
        try:
            return mmap.mmap(self.fd, self.size, flags=mmap.MAP_SHARED)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            if self.page > mmap.PAGESIZE:
                why += f"; {_pool(self.page)}"
            raise BulkmmError(f"{self.name}: cannot be mapped: {why}") from error


def _pool(page: int) -> str:
    """Describe the pool of a page size, and how to enlarge it."""
    root = Root(Path("/"))
    if page not in sizes(root):
        return f"the kernel has no pool of {page >> 20} MiB pages"
    pool = Pool(root, page)
    more = f"bulkmm pool grow --page {named(page)}"
    spare = f"{pool.spare()} pages of {page >> 20} MiB to spare"
    return f"its pool has {spare}; more by {more}"


@contextmanager
def memfd(size: int, huge: int) -> Iterator[Target]:
    """Make a memfd of a size, with huge pages if ``huge`` is not 0."""
    flags = os.MFD_CLOEXEC
    if huge:
        flags |= os.MFD_HUGETLB | (huge.bit_length() - 1) << LOG_OF_HUGE
    page = huge or mmap.PAGESIZE
    if size % page:
        raise UsageError(f"size {size}: give whole pages of {page} bytes")
    try:
        fd = os.memfd_create("bulkmm", flags)
    except OSError as error:
        message = f"no memfd of such pages: {error.strerror}; {_pool(page)}"
        raise BulkmmError(message) from error
    try:
        os.ftruncate(fd, size)
        yield Target("memfd", fd, size, page)
    finally:
        os.close(fd)


@contextmanager
def file(path: Path, size: int | None) -> Iterator[Target]:
    """Open a file, created or grown as needed; undo that if the block fails."""
    made = not path.exists()
    if made and size is None:
        raise UsageError(f"{path} does not exist: --size says how large to make it")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BulkmmError(f"{path}: {error.strerror}") from error
    before = os.fstat(fd)
    try:
        yield _opened(path, fd, before, size)
    except BaseException:
        if made:
            path.unlink(missing_ok=True)
        elif stat.S_ISREG(before.st_mode):
            os.ftruncate(fd, before.st_size)
        raise
    finally:
        os.close(fd)


def _opened(path: Path, fd: int, before: os.stat_result, size: int | None) -> Target:
    if stat.S_ISCHR(before.st_mode):
        return _device(path, fd, before, size)
    if not stat.S_ISREG(before.st_mode):
        raise UsageError(f"{path} is neither a file nor a DAX device")
    kind, options = _mount(before.st_dev)
    if kind not in MEMORY and not {"dax", "dax=always"} & set(options.split(",")):
        raise UsageError(
            f"{path} is on {kind}: its pages would not stay in memory "
            "(give a file of tmpfs, hugetlbfs or a file system with DAX)"
        )
    page = os.fstatvfs(fd).f_bsize if kind == "hugetlbfs" else mmap.PAGESIZE
    size = before.st_size if size is None else size
    if not size or size % page:
        raise UsageError(f"size {size} of {path}: give whole pages of {page} bytes")
    _need_room(path, fd, before, size)
    if size > before.st_size:
        os.ftruncate(fd, size)
    return Target(str(path), fd, size, page)


def _need_room(path: Path, fd: int, before: os.stat_result, size: int) -> None:
    """Raise if the file system lacks space; 0 blocks: it has no limit."""
    room = os.fstatvfs(fd)
    missing = size - before.st_blocks * 512
    if room.f_blocks and missing > room.f_bavail * room.f_bsize:
        have = room.f_bavail * room.f_bsize >> 20
        raise BulkmmError(
            f"{path}: {missing >> 20} MiB more needed, "
            f"its file system has {have} MiB to spare"
        )


def _device(path: Path, fd: int, held: os.stat_result, size: int | None) -> Target:
    number = f"{os.major(held.st_rdev)}:{os.minor(held.st_rdev)}"
    known = Path(f"/sys/dev/char/{number}")
    try:
        whole = int((known / "size").read_text())
        align = int((known / "align").read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is a device, but not a DAX device") from error
    size = whole if size is None else size
    if not 0 < size <= whole or size % align:
        raise UsageError(f"size {size} of {path}: up to {whole}, pages of {align}")
    return Target(str(path), fd, size, align)


def _mount(device: int) -> tuple[str, str]:
    """Return kind and options of the file system with a device number."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    # names may have any byte but those that the kernel escapes
    for line in MOUNTS.read_bytes().decode(errors="replace").split("\n"):
        front, _, back = ESCAPE.sub("?", line).partition(" - ")
        words = front.split(" ")
        if words[2:3] == [wanted]:
            kind, _, options = back.split(" ", 2)
            return kind, f"{words[5]},{options}"
    return "an unknown file system", ""
