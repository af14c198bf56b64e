# SPDX-License-Identifier: GPL-2.0-only
"""The targets of populate: files whose pages stay in memory, or a memfd.

Errors are detected before any page is allocated, if possible; if one of the files
cannot be filled, all get their old sizes back.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import re
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bulkmm.control.pools import Pool, list_page_sizes
from bulkmm.control.system_files import SystemFiles
from bulkmm.populate import room
from bulkmm.populate.limits import Need
from bulkmm.populate.request import Request
from bulkmm.populate.room import FileNeed
from bulkmm.shell.ending import LIBC, hold_signals
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.size import name_size

LOG_OF_HUGE = 26  # shift of the huge page size's logarithm in memfd_create() flags
MEMORY = ("tmpfs", "hugetlbfs", "ramfs")
# f_type of statfs(), for shared memory of programs, whose file systems are not mounted
MAGIC = {0x01021994: "tmpfs", 0x958458F6: "hugetlbfs"}
STATFS_BYTES = 256  # more than struct statfs has, which begins with f_type
UNKNOWN = "an unknown file system"
MOUNTS = Path("/proc/self/mountinfo")
# struct flock of the last byte that a file can have, which nobody else locks
LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 63) - 1, 1, 0)
PROTECTED = "another user's, in a directory for all (sysctl fs.protected_regular)"
ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Target:
    """An open file and how much of it to fill."""

    path: Path
    fd: int
    size: int
    page: int  # bytes: page size of its file system
    node: int | None
    kind: str = ""  # its file system; empty: a memfd, or a DAX device
    has_name: bool = True  # False: it gets its name when all is done
    need: FileNeed | None = None
    was_allocated: bool = False  # all of it, before this run

    @property
    def name(self) -> str:
        """Return what messages call it."""
        return str(self.path)

    def map_shared(self) -> mmap.mmap:
        """Map it; this reserves huge pages or fails."""
        try:
            return mmap.mmap(self.fd, self.size, flags=mmap.MAP_SHARED)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            if self.page > mmap.PAGESIZE:
                why += f"; {describe_pool(self.page, self.size, self.node)}"
            raise BulkmmError(f"{self.name}: cannot be mapped: {why}") from error


def describe_pool(page: int, size: int, node: int | None) -> str:
    """Describe the pool of a page size, and how to enlarge it if it lacks pages."""
    root = SystemFiles(Path("/"))
    if page not in list_page_sizes(root):
        return f"the kernel has no pool of {page >> 20} MiB pages"
    spare = Pool(root, page).count_spare()
    spares = f"its pool has {spare} pages of {page >> 20} MiB to spare"
    if spare * page >= size:
        return spares
    more = f"--page {name_size(page)} --size {name_size(size - spare * page)}"
    more += "" if node is None else f" --node {node}"
    return f"{spares}; more by bulkmm pool grow {more}"


@contextmanager
def create_memfd(
    size: int, huge: int, node: int | None, flags: int = 0
) -> Iterator[Target]:
    """Make a memfd of a size, with huge pages if ``huge`` is not 0."""
    flags |= os.MFD_CLOEXEC
    if huge:
        flags |= os.MFD_HUGETLB | (huge.bit_length() - 1) << LOG_OF_HUGE
    page = huge or mmap.PAGESIZE
    if size % page:
        raise UsageError(f"size {size}: give whole pages of {page} bytes")
    room.check_node("memfd", node)
    try:
        fd = os.memfd_create("bulkmm", flags)
    except OSError as error:
        message = (
            f"no memfd of such pages: {error.strerror}; "
            f"{describe_pool(page, size, node)}"
        )
        raise BulkmmError(message) from error
    try:
        room.check_limits([Need("memfd", size, page, node)])
        _resize_file("memfd", fd, size)
        yield Target(Path("memfd"), fd, size, page, node)
    finally:
        os.close(fd)


@contextmanager
def open_files(requests: Sequence[Request]) -> Iterator[list[Target]]:
    """Open files, made or grown as needed; undo that for all if the block fails.

    New ones get their names when the block ends, and go with a process that is killed,
    where the file system can do that. With a node, growing allocates nothing: pages
    would be of any node. Of several runs for a file that exists one waits for the
    other, so that none takes back what another has taken as filled.
    """
    with ExitStack() as stack:
        opened = {
            request: stack.enter_context(_open_file(request))
            for request in _order_requests(requests)
        }
        files = [opened[request] for request in requests]
        room.check_room([file.need for file in files if file.need])
        for file in files:
            stack.enter_context(_grow_file(file))
        yield files
        for file in files:
            if not file.has_name:
                stack.enter_context(_name_file(file))


def _order_requests(requests: Sequence[Request]) -> list[Request]:
    """Return the order in which all runs lock files, or two would wait for each other.

    A file that is given twice would wait for itself.
    """
    files: dict[tuple[int, int, str], Request] = {}
    for request in requests:
        first = files.setdefault(_identify_file(request.path), request)
        if first is not request:
            raise UsageError(f"{first.path} and {request.path} are the same file")
    return [files[identity] for identity in sorted(files)]


def _identify_file(path: Path) -> tuple[int, int, str]:
    """Return device and number of a file; for a new one, its directory's and a name."""
    for place, name in ((path, ""), (path.parent, path.name)):
        with suppress(OSError):
            status = place.stat()
            return status.st_dev, status.st_ino, name
    return 0, 0, str(path)  # what is wrong, opening says


@contextmanager
def _open_file(request: Request) -> Iterator[Target]:
    """Open a file and tell what it lacks; a new one is removed if the block fails."""
    path = request.path
    room.check_node(str(path), request.node)
    if path.exists():
        # with O_CREAT the kernel refuses a file that another user laid ready in a
        # directory for all (fs.protected_regular)
        with _open_path(path, path, os.O_RDWR | os.O_CREAT) as fd:
            yield _make_target(request, fd)
        return
    _check_new(request)
    if _has_unnamed(path.parent):
        with _open_path(path, path.parent, os.O_RDWR | os.O_TMPFILE) as fd:
            yield _make_target(request, fd, has_name=False)
        return
    with _open_path(path, path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as fd:
        try:
            yield _make_target(request, fd)
        except BaseException:
            _unlink_file(path, fd)
            raise


def _check_new(request: Request) -> None:
    path = request.path
    if request.size is None:
        raise UsageError(f"{path} does not exist: --size says how large to make it")
    if path.is_symlink():
        raise UsageError(f"{path} is a link to a file that does not exist")
    with suppress(OSError):  # what is wrong, opening says
        _need_memory(path, path.parent.stat().st_dev)


@contextmanager
def _name_file(file: Target) -> Iterator[None]:
    """Give a file its name; take it back if the block fails."""
    try:
        try:
            # a number that is not used makes this linkat(), which can follow
            os.link(f"/proc/self/fd/{file.fd}", file.path, src_dir_fd=file.fd)
        except OSError as error:
            raise BulkmmError(f"{file.path}: {error.strerror}") from error
        yield
    except BaseException:  # also of a signal before the block begins
        _unlink_file(file.path, file.fd)
        raise


def _unlink_file(path: Path, fd: int) -> None:
    # it may be another file by now; a second signal must not leave it
    with hold_signals(), suppress(OSError):
        if os.path.samestat(os.fstat(fd), path.lstat()):
            path.unlink()


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


def _make_target(request: Request, fd: int, *, has_name: bool = True) -> Target:
    path, size = request.path, request.size
    before = os.fstat(fd)
    if stat.S_ISCHR(before.st_mode):
        size, align = _check_device(path, before, size)
        return Target(path, fd, size, align, request.node)
    if not stat.S_ISREG(before.st_mode):
        raise UsageError(f"{path} is neither a file nor a DAX device")
    kind = _need_memory(path, before.st_dev, fd)
    page = os.fstatvfs(fd).f_bsize if kind == "hugetlbfs" else mmap.PAGESIZE
    size = before.st_size if size is None else size
    if not size or size % page:
        raise UsageError(f"size {size} of {path}: give whole pages of {page} bytes")
    if has_name and not before.st_nlink and size > before.st_size:
        raise UsageError(f"{path} has no name, so only its program can make it larger")
    need = FileNeed(
        str(path),
        max(size - before.st_blocks * 512, 0),
        page,
        request.node,
        fd=fd,
        limited=kind in MEMORY,
    )
    if kind == "hugetlbfs" and size <= before.st_size:
        as_reserved = replace(need, reserved=True)
        room.check_limits([as_reserved])
        if _is_reserved(fd, size):
            need = as_reserved
    # pages beyond the size would stand for others that are missing
    was_allocated = kind in MEMORY and size >= before.st_size and not need.missing
    return Target(
        *(path, fd, size, page, request.node, kind, has_name, need, was_allocated)
    )


def _need_memory(path: Path, device: int, fd: int | None = None) -> str:
    """Return the kind of a file system, whose pages must stay in memory."""
    kind, options = find_mount(device)
    if kind == UNKNOWN and fd is not None:
        kind = _read_magic(fd)
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


@contextmanager
def _grow_file(file: Target) -> Iterator[None]:
    """Set its size, if that is larger; set the old one again if the block fails.

    A file with a name has the memory for it before, if wanted. Others may have made it
    larger meanwhile, and stored something there.
    """
    old = os.fstat(file.fd).st_size
    if not file.kind or old >= file.size:
        yield
        return
    if file.has_name and file.kind == "tmpfs" and file.node is None:
        try:
            _allocate_pages(file.fd, old, file.size - old)
        except OSError as error:
            raise BulkmmError(f"{file.path}: {error.strerror}") from error
    else:
        _resize_file(file.name, file.fd, file.size)
    try:
        yield
    except BaseException:
        with hold_signals():  # a second one must not leave it as it is
            # another size is of somebody else, who may have stored something there
            if os.fstat(file.fd).st_size == file.size:
                os.ftruncate(file.fd, old)
        raise


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


def _check_device(
    path: Path, status: os.stat_result, size: int | None
) -> tuple[int, int]:
    """Return how much of a DAX device to fill, and its page size."""
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
    return size, align


def find_mount(device: int) -> tuple[str, str]:
    """Return kind and options of the file system with a device number."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    # names may have any byte but those that the kernel escapes
    for line in MOUNTS.read_bytes().decode(errors="replace").split("\n"):
        front, _, back = ESCAPE.sub("?", line).partition(" - ")
        words = front.split(" ")
        if words[2:3] == [wanted]:
            kind, _, options = back.split(" ", 2)
            return kind, f"{words[5]},{options}"
    return UNKNOWN, ""


def _read_magic(fd: int) -> str:
    """Return the kind of the file system of a file, mounted or not."""
    status = ctypes.create_string_buffer(STATFS_BYTES)
    if LIBC.fstatfs(fd, status):
        return UNKNOWN
    return MAGIC.get(ctypes.c_long.from_buffer(status).value, UNKNOWN)
