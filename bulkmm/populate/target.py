# SPDX-License-Identifier: GPL-2.0-only
"""The target of populate: a file whose pages stay in memory, or a memfd.

Errors are detected before any page is allocated, if possible; a file that cannot
be filled gets its old size back.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bulkmm.control.pools import Pool, list_page_sizes
from bulkmm.control.system_files import SystemFiles
from bulkmm.populate import limits
from bulkmm.shell.ending import LIBC
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.size import name_size

LOG_OF_HUGE = 26  # shift of the huge page size's logarithm in memfd_create() flags
TABLES = 240  # of so many bytes of 4 KiB pages less than one is for the kernel's tables
MEMORY = ("tmpfs", "hugetlbfs", "ramfs")
MOUNTS = Path("/proc/self/mountinfo")
# struct flock of the last byte that a file can have, which nobody else locks
LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 63) - 1, 1, 0)
PROTECTED = "another user's, in a directory for all (sysctl fs.protected_regular)"
ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Target:
    """An open file and how much of it to fill."""

    name: str
    fd: int
    size: int
    page: int  # bytes: page size of its file system
    old: int  # bytes: the size that it gets back if it cannot be filled

    def map_shared(self) -> mmap.mmap:
        """Map it; this reserves huge pages or fails."""
        try:
            return mmap.mmap(self.fd, self.size, flags=mmap.MAP_SHARED)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            if self.page > mmap.PAGESIZE:
                why += f"; {_describe_pool(self.page, self.size)}"
            raise BulkmmError(f"{self.name}: cannot be mapped: {why}") from error


def _describe_pool(page: int, size: int) -> str:
    """Describe the pool of a page size, and how to enlarge it if it lacks pages."""
    root = SystemFiles(Path("/"))
    if page not in list_page_sizes(root):
        return f"the kernel has no pool of {page >> 20} MiB pages"
    spare = Pool(root, page).count_spare()
    spares = f"its pool has {spare} pages of {page >> 20} MiB to spare"
    more = f"; more by bulkmm pool grow --page {name_size(page)}"
    return spares + more * (spare * page < size)


@contextmanager
def create_memfd(size: int, huge: int, node: int | None) -> Iterator[Target]:
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
        message = (
            f"no memfd of such pages: {error.strerror}; {_describe_pool(page, size)}"
        )
        raise BulkmmError(message) from error
    try:
        _need_limit("memfd", size, page, node)
        _resize_file("memfd", fd, size)
        yield Target("memfd", fd, size, page, 0)
    finally:
        os.close(fd)


@contextmanager
def open_file(path: Path, size: int | None, node: int | None) -> Iterator[Target]:
    """Open a file, made or grown as needed; undo that if the block fails.

    A new one gets its name when the block ends, and goes with a process that is killed,
    where the file system can do that. With a node, growing allocates nothing: pages
    would be of any node. Of several runs for a file one waits for the other, so that
    none takes back what another has taken as filled.
    """
    if not path.exists():
        with _create_file(path, size, node) as target:
            yield target
        return
    # with O_CREAT the kernel refuses a file that another user laid ready in a directory
    # for all (fs.protected_regular)
    with _open_path(path, path, os.O_RDWR | os.O_CREAT) as fd:
        target = _open_target(path, fd, size, node)  # it grows last, or not at all
        try:
            yield target
        except BaseException:
            # another size is of somebody else, who may have stored something there
            if os.fstat(fd).st_size == target.size > target.old:
                os.ftruncate(fd, target.old)
            raise


@contextmanager
def _create_file(path: Path, size: int | None, node: int | None) -> Iterator[Target]:
    if size is None:
        raise UsageError(f"{path} does not exist: --size says how large to make it")
    if path.is_symlink():
        raise UsageError(f"{path} is a link to a file that does not exist")
    with suppress(OSError):  # what is wrong, opening says
        _need_memory(path, path.parent.stat().st_dev)
    if not _has_unnamed(path.parent):
        with _open_path(path, path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as fd:
            try:
                yield _open_target(path, fd, size, node)
            except BaseException:
                with suppress(OSError):  # it may be another file by now
                    if os.path.samestat(os.fstat(fd), path.lstat()):
                        path.unlink()
                raise
        return
    with _open_path(path, path.parent, os.O_RDWR | os.O_TMPFILE) as fd:
        yield _open_target(path, fd, size, node)
        try:
            # a number that is not used makes this linkat(), which can follow
            os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd)
        except OSError as error:
            raise BulkmmError(f"{path}: {error.strerror}") from error


def _has_unnamed(place: Path) -> bool:
    """Return whether a directory can have a file without a name; True if unknown."""
    try:
        os.close(os.open(place, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return error.errno not in {errno.EOPNOTSUPP, errno.EISDIR}
    return True


def _may_write(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK, effective_ids=True)


@contextmanager
def _open_path(path: Path, place: Path, how: int) -> Iterator[int]:
    try:
        fd = os.open(place, how | os.O_CLOEXEC, 0o600)
    except OSError as error:
        why = error.strerror
        if error.errno == errno.EACCES and place.is_file() and _may_write(place):
            why = f"{why}: {PROTECTED}"
        raise BulkmmError(f"{path}: {why}") from error
    try:
        with suppress(OSError):  # a system without such locks
            fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, LOCK)
        yield fd
    finally:
        os.close(fd)


def _open_target(path: Path, fd: int, size: int | None, node: int | None) -> Target:
    before = os.fstat(fd)
    if stat.S_ISCHR(before.st_mode):
        return _open_device(path, fd, before, size)
    if not stat.S_ISREG(before.st_mode):
        raise UsageError(f"{path} is neither a file nor a DAX device")
    kind = _need_memory(path, before.st_dev)
    page = os.fstatvfs(fd).f_bsize if kind == "hugetlbfs" else mmap.PAGESIZE
    size = before.st_size if size is None else size
    if not size or size % page:
        raise UsageError(f"size {size} of {path}: give whole pages of {page} bytes")
    missing = max(size - before.st_blocks * 512, 0)
    maybe_reserved = kind == "hugetlbfs" and size <= before.st_size
    if kind in MEMORY:
        _need_limit(str(path), missing, page, node, reserved=maybe_reserved)
    if not (maybe_reserved and _is_reserved(fd, size)):
        _need_room(path, fd, missing)
        if maybe_reserved:
            _need_limit(str(path), missing, page, node)
    old = _grow_file(path, fd, size, allocate=kind == "tmpfs" and node is None)
    return Target(str(path), fd, size, page, old)


def _need_memory(path: Path, device: int) -> str:
    """Return the kind of a file system, whose pages must stay in memory."""
    kind, options = _find_mount(device)
    if kind not in MEMORY and not {"dax", "dax=always"} & set(options.split(",")):
        raise UsageError(
            f"{path} is on {kind}: its pages would not stay in memory "
            "(give a file of tmpfs, hugetlbfs or a file system with DAX)"
        )
    return kind


def _is_reserved(fd: int, size: int) -> bool:
    """Return whether huge pages are reserved for all of a file, as to map it does.

    Those that others have reserved for it, or a run that was killed, count as taken.
    """
    try:
        mmap.mmap(fd, size, flags=mmap.MAP_SHARED).close()
    except (OSError, ValueError):
        return False
    return True


def _need_room(path: Path, fd: int, missing: int) -> None:
    """Raise if the file system lacks space; 0 blocks: it has no limit."""
    room = os.fstatvfs(fd)
    if room.f_blocks and missing > room.f_bavail * room.f_bsize:
        have = room.f_bavail * room.f_bsize >> 20
        raise BulkmmError(
            f"{path}: {missing >> 20} MiB more needed, "
            f"its file system has {have} MiB to spare"
        )


def _need_limit(
    name: str, missing: int, page: int, node: int | None, *, reserved: bool = False
) -> None:
    """Raise where the kernel would kill this process, or refuse huge pages."""
    limit = limits.find_tightest(SystemFiles(Path("/")), page, node, reserved=reserved)
    needed = missing if page > mmap.PAGESIZE else missing + missing // TABLES
    if missing and needed > limit.room:
        have = max(limit.room, 0) >> 20
        raise BulkmmError(
            f"{name}: {missing >> 20} MiB more needed, {limit.name} leaves {have} MiB"
        )


def _grow_file(path: Path, fd: int, size: int, *, allocate: bool) -> int:
    """Set a size, if it is larger; return the old one, or that.

    A file with a name has the memory for it before, if wanted. Others may have made it
    larger meanwhile, and stored something there.
    """
    now = os.fstat(fd)
    if now.st_size >= size:
        return size
    if allocate and now.st_nlink:
        try:
            _allocate_pages(fd, now.st_size, size - now.st_size)
        except OSError as error:
            raise BulkmmError(f"{path}: {error.strerror}") from error
    else:
        _resize_file(str(path), fd, size)
    return now.st_size


def _resize_file(name: str, fd: int, size: int) -> None:
    try:
        os.ftruncate(fd, size)
    except OSError as error:  # RLIMIT_FSIZE among others
        why = error.strerror
        message = f"{name}: cannot be made {size >> 20} MiB long: {why}"
        raise BulkmmError(message) from error


def _allocate_pages(fd: int, at: int, length: int) -> None:
    """Extend a file by pages; the kernel undoes that if it kills, and never shrinks."""
    arguments = fd, 0, ctypes.c_int64(at), ctypes.c_int64(length)
    while LIBC.fallocate(*arguments):
        if (number := ctypes.get_errno()) != errno.EINTR:
            raise OSError(number, os.strerror(number))


def _open_device(
    path: Path, fd: int, status: os.stat_result, size: int | None
) -> Target:
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    sysfs = Path(f"/sys/dev/char/{number}")
    try:
        whole = int((sysfs / "size").read_text())
        align = int((sysfs / "align").read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is a device, but not a DAX device") from error
    size = whole if size is None else size
    if not 0 < size <= whole or size % align:
        raise UsageError(f"size {size} of {path}: up to {whole}, pages of {align}")
    return Target(str(path), fd, size, align, size)


def _find_mount(device: int) -> tuple[str, str]:
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
