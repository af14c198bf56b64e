# SPDX-License-Identifier: GPL-2.0-only
"""bmm_stage() as Python calls it: files, their memory, its seals, what goes wrong."""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rootlib
from populatelib import MIB

from bulkmm.populate import libbulkmm, library
from bulkmm.shell.ending import LIBC

libbulkmm.set_library(str(library.BUILT_LIBRARY))
PAGE = mmap.PAGESIZE
SIZES = (3 * MIB + 1, 0, PAGE, 1, 9 * MIB)
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@pytest.fixture
def disk() -> Iterator[Path]:
    """Make a directory on a disk: /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        yield Path(place)


def make_files(place: Path, *, sizes: tuple[int, ...] = SIZES) -> list[Path]:
    paths = [place / f"f{number}" for number in range(len(sizes))]
    for number, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        path.write_bytes(random.Random(number).randbytes(size))  # noqa: S311 - content
    return paths


def count_open() -> int:
    """Return the descriptors of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def make_cold(*paths: Path) -> None:
    """Have files on the disk, and not in the page cache."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def check_content(staged: libbulkmm.Staged, paths: list[Path], align: int) -> None:
    """Check every byte, those between files too."""
    at = 0
    with memoryview(staged) as view:
        for file, path in zip(staged.files, paths, strict=True):
            assert (file.path, file.offset % align) == (str(path), 0)
            assert not any(view[at : file.offset])
            at = file.offset + file.nbytes
            assert view[file.offset : at] == path.read_bytes()
        assert not any(view[at:])


@pytest.mark.parametrize("cold", [True, False])
def test_all_bytes_are_there_and_none_beside(disk: Path, *, cold: bool) -> None:
    paths = make_files(disk)
    if cold:
        make_cold(*paths)
    with libbulkmm.stage(paths) as staged:
        check_content(staged, paths, PAGE)
        assert len(staged) == staged.files[-1].offset + SIZES[-1]
        assert staged.report.nbytes == sum(-(-size // PAGE) * PAGE for size in SIZES)


def test_cold_files_leave_no_trace_in_the_page_cache(disk: Path) -> None:
    """They are read around it, where the file system can (not overlay, tmpfs)."""
    (path,) = make_files(disk, sizes=(8 * MIB,))
    make_cold(path)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system has no O_DIRECT")
    libbulkmm.stage([path]).close()
    resident = subprocess.check_output(["fincore", "-bno", "RES", path], text=True)
    assert int(resident) < MIB


def test_files_with_holes_and_of_tmpfs(disk: Path, shm: Path) -> None:
    holes = disk / "holes"
    with holes.open("wb") as file:
        file.seek(5 * MIB)
        file.write(b"end")
    paths = [holes, *make_files(shm)]
    with libbulkmm.stage(paths) as staged:
        check_content(staged, paths, PAGE)


def test_several_threads_and_mixed_cache(disk: Path) -> None:
    """From 64 MiB on; some chunks are in the page cache, others not, and dirty."""
    (path,) = make_files(disk, sizes=(70 * MIB + 5,))
    make_cold(path)
    with path.open("r+b") as file:
        for at in (0, 17 * MIB, 33 * MIB, 69 * MIB):
            file.seek(at)
            file.write(b"dirty" * MIB)
    with libbulkmm.stage([path]) as staged:
        assert staged.report.threads > 1
        check_content(staged, [path], PAGE)


def test_huge_pages(disk: Path) -> None:
    paths = make_files(disk)
    with rootlib.huge_pages(12), libbulkmm.stage(paths, page=2 * MIB) as staged:
        check_content(staged, paths, 2 * MIB)
        assert len(staged) % (2 * MIB) == 0
        assert fcntl.fcntl(staged.fd, fcntl.F_GET_SEALS) & SEALS == SEALS


GROWTH = """if True:
    import resource, sys
    from bulkmm.populate import libbulkmm, library
    libbulkmm.set_library(str(library.BUILT_LIBRARY))
    libbulkmm.version()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    staged = libbulkmm.stage([sys.argv[1]], page=int(sys.argv[2]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("page", [0, 2 * MIB])
def test_little_memory_is_taken_beside_the_data(disk: Path, page: int) -> None:
    """What is resident never grows by 64 MiB: the data itself is not mapped then."""
    path = disk / "holes"
    path.touch()
    os.truncate(path, 96 * MIB)
    command = [sys.executable, "-c", GROWTH, path, str(page)]
    with rootlib.huge_pages(48):
        for _ in ("from the disk", "from the page cache"):
            assert int(subprocess.check_output(command)) < 64 << 10
            path.read_bytes()


def test_a_pool_that_is_too_small_is_named(disk: Path) -> None:
    paths = make_files(disk)
    with rootlib.huge_pages(2), pytest.raises(libbulkmm.Error, match="pool") as raised:
        libbulkmm.stage(paths, page=2 * MIB)
    assert raised.value.cause == "pool"


def test_nobody_can_change_it(disk: Path) -> None:
    """By the descriptor, one opened anew, a mapping, a size, or a hole."""
    staged = libbulkmm.stage(make_files(disk))
    assert fcntl.fcntl(staged.fd, fcntl.F_GET_SEALS) & SEALS == SEALS
    again = os.open(f"/proc/self/fd/{staged.fd}", os.O_RDWR)
    for fd in (staged.fd, again):
        with pytest.raises(OSError):  # noqa: PT011 - EBADF or EPERM
            os.pwrite(fd, b"x", 0)
        with pytest.raises(OSError):  # noqa: PT011
            os.ftruncate(fd, 0)
        with pytest.raises(OSError):  # noqa: PT011
            mmap.mmap(fd, 0)
    with pytest.raises(TypeError):
        staged[0] = 1
    os.close(again)


def test_pinning_takes_the_memory_itself(disk: Path) -> None:
    """A shared mapping stays shared: what is locked is the file's, not a copy."""
    (path,) = make_files(disk, sizes=(4 * MIB,))
    staged = libbulkmm.stage([path])
    address = np.frombuffer(staged, np.uint8).ctypes.data
    assert not LIBC.mlock(ctypes.c_void_p(address), ctypes.c_size_t(4 * MIB))
    fields = read_smaps(address)
    assert (fields["Anonymous"], fields["Locked"]) == (0, 4 * MIB)


def read_smaps(address: int) -> dict[str, int]:
    """Return the fields of the mapping at an address, in bytes."""
    fields: dict[str, int] = {}
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if "-" in name and not name.endswith(":"):
            inside = name.startswith(f"{address:x}-")
        elif inside and rest[-1] == "kB":
            fields[name[:-1]] = int(rest[0]) << 10
    return fields


def test_what_is_no_file_is_named(disk: Path) -> None:
    (path,) = make_files(disk, sizes=(1,))
    os.mkfifo(disk / "fifo")
    before = count_open()
    for bad, number in (
        (disk / "none", errno.ENOENT),
        (disk, errno.EISDIR),
        (disk / "fifo", errno.ESPIPE),
        (Path("/dev/zero"), errno.ESPIPE),
    ):
        with pytest.raises(libbulkmm.Error) as raised:
            libbulkmm.stage([path, bad])
        assert raised.value.errno == number
        assert str(raised.value).startswith(f"{bad}: the file cannot be read (")
    assert count_open() == before


def change_meanwhile(path: Path, change: str) -> None:
    """Stage a file that changes when a first part of it has been read."""
    event = threading.Event()

    def alter(_nbytes: int, _whole: int) -> None:
        if event.is_set():
            return
        event.set()
        size = path.stat().st_size
        with path.open("r+b") as file:
            if change == "shrinks":
                file.truncate(size // 2)
            else:
                file.seek(size if change == "grows" else size - 1)
                file.write(b"x")
                file.flush()

    libbulkmm.stage([path], threads=1, progress=alter)


@pytest.mark.parametrize("change", ["shrinks", "grows", "is written to"])
def test_a_file_that_changes_meanwhile(disk: Path, change: str) -> None:
    (path,) = make_files(disk, sizes=(40 * MIB,))
    make_cold(path)
    before = count_open()
    with pytest.raises(libbulkmm.Error) as raised:
        change_meanwhile(path, change)
    assert raised.value.cause == "changed"
    assert str(raised.value).startswith(f"{path}")
    assert "the file changed while it was read" in str(raised.value)
    assert count_open() == before
    assert "bulkmm-stage" not in Path("/proc/self/maps").read_text()


@contextlib.contextmanager
def broken_disk(place: Path) -> Iterator[Path]:
    """Mount a file system of an image that the block can cut: reading then fails."""
    rootlib.needs_root()
    image, mount = place / "image", place / "mount"
    mount.mkdir(exist_ok=True)
    if not image.exists():
        with image.open("wb") as file:
            file.truncate(64 * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-m0", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, mount], check=False).returncode:
        pytest.skip("no loop device to be had")
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_disk_that_fails_in_the_middle(disk: Path) -> None:
    with broken_disk(disk) as mount:
        (path,) = make_files(mount, sizes=(48 * MIB,))
        make_cold(path)
        os.truncate(disk / "image", 32 * MIB)
        with pytest.raises(libbulkmm.Error) as raised:
            libbulkmm.stage([path])
        os.truncate(disk / "image", 64 * MIB)
    assert (raised.value.errno, raised.value.cause) == (errno.EIO, "file")
    assert str(raised.value).startswith(f"{path} (at byte ")


def test_arguments_that_are_refused(disk: Path) -> None:
    (path,) = make_files(disk, sizes=(1,))
    for arguments in ({"page": 3 * MIB}, {"page": 2}, {"node": 5000}):
        with pytest.raises(libbulkmm.Error):
            libbulkmm.stage([path], **arguments)  # type: ignore[arg-type]
    for paths in ([], [path] * 1025):
        with pytest.raises(libbulkmm.Error) as raised:
            libbulkmm.stage(paths)
        assert (raised.value.cause, "1024" in str(raised.value)) == ("count", True)
    with pytest.raises(libbulkmm.Error, match="page is no power of two") as raised:
        libbulkmm.stage([path], page=3 * MIB)
    assert raised.value.cause == "page"


def test_a_file_of_the_program_becomes_the_memory(disk: Path, shm: Path) -> None:
    """One without pages, on a file system of memory; empty again if it failed."""
    (path,) = make_files(disk, sizes=(5 * MIB + 7,))
    with (shm / "to").open("w+b") as file:
        fd, files, _ = libbulkmm.stage_into(file.fileno(), [path])
        assert (fd, files[0].nbytes) == (file.fileno(), 5 * MIB + 7)
        assert (shm / "to").read_bytes() == path.read_bytes()
        with pytest.raises(libbulkmm.Error) as raised:
            libbulkmm.stage_into(file.fileno(), [path])
        assert (raised.value.cause, "fd is no" in str(raised.value)) == ("fd", True)
        assert (shm / "to").read_bytes() == path.read_bytes()
        file.truncate(0)
        with pytest.raises(libbulkmm.Error):
            libbulkmm.stage_into(file.fileno(), [path, disk])
    assert (shm / "to").stat().st_blocks == 0
    with (shm / "to").open("a+b") as file:  # written to, it would grow
        libbulkmm.stage_into(file.fileno(), [path])
    assert (shm / "to").read_bytes() == path.read_bytes()
    (disk / "to").write_bytes(b"kept")
    with (disk / "to").open("r+b") as file, pytest.raises(libbulkmm.Error):
        libbulkmm.stage_into(file.fileno(), [path])
    assert (disk / "to").read_bytes() == b"kept"


KILLED = """if True:
    import os, sys
    from bulkmm.populate import libbulkmm, library
    libbulkmm.set_library(str(library.BUILT_LIBRARY))
    def end(nbytes=None, whole=None):
        if (nbytes, nbytes and nbytes == whole, not nbytes)[step]:
            os.kill(os.getpid(), 9)
    step = int(sys.argv[1])
    staged = libbulkmm.stage(sys.argv[2:], page=2 << 20, progress=end)
    end()
"""


@pytest.mark.parametrize("step", ["reading", "read", "sealed"])
def test_who_is_killed_leaves_nothing(disk: Path, step: str) -> None:
    """Not a page of the pool."""
    path = disk / "holes"
    path.touch()
    os.truncate(path, 64 * MIB)
    number = ("reading", "read", "sealed").index(step)
    command = [sys.executable, "-c", KILLED, str(number), str(path)]
    with rootlib.huge_pages(32):
        used = rootlib.count_used_pages()
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert rootlib.count_used_pages() == used


@pytest.mark.parametrize("last", [False, True])
def test_what_progress_raises_ends_it(disk: Path, *, last: bool) -> None:
    paths = make_files(disk, sizes=(40 * MIB,))

    def interrupt(nbytes: int, whole: int) -> None:
        if nbytes == whole or not last:
            raise KeyboardInterrupt

    before = count_open()
    with pytest.raises(KeyboardInterrupt):
        libbulkmm.stage(paths, progress=interrupt)
    assert count_open() == before


def test_what_the_disk_has_behind_a_file_is_not_shown(disk: Path) -> None:
    with broken_disk(disk) as mount:
        make_files(mount, sizes=(PAGE,))
    command = ["debugfs", "-w", "-R", "sif /f0 size 100", disk / "image"]
    subprocess.run(command, check=True, capture_output=True)
    with broken_disk(disk) as mount:
        make_cold(mount / "f0")
        with libbulkmm.stage([mount / "f0", mount / "f0"]) as staged:
            check_content(staged, [mount / "f0"] * 2, PAGE)


def test_too_many_bytes_for_an_address_space(shm: Path) -> None:
    """Sparse files: the first leaves no room for the next, which would wrap."""
    paths = [shm / "most", shm / "more"]
    for path, size in zip(paths, ((1 << 63) - 1 - 2 * PAGE, 3 * PAGE), strict=True):
        path.touch()
        os.truncate(path, size)
    with pytest.raises(libbulkmm.Error) as raised:
        libbulkmm.stage(paths)
    assert (raised.value.errno, raised.value.cause) == (errno.EFBIG, "total")


LEASE = """if True:
    import fcntl, signal, sys
    file = open(sys.argv[1], "r+b")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    print("leased", flush=True)
    signal.sigwait([signal.SIGIO])
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
"""


def test_it_waits_until_a_lease_is_given_back(shm: Path) -> None:
    (path,) = make_files(shm, sizes=(PAGE,))
    command = [sys.executable, "-c", LEASE, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"leased\n"
        with libbulkmm.stage([path]) as staged:
            check_content(staged, [path], PAGE)
    assert process.returncode == 0


FAILING = """if True:
    import ctypes, sys
    from bulkmm.populate import libbulkmm, library
    libbulkmm.set_library(str(library.BUILT_LIBRARY))
    calls = ctypes.CDLL(None)
    with libbulkmm.stage(sys.argv[1:]) as staged, open(sys.argv[1], "rb") as file:
        assert staged[:] == file.read()
    assert ctypes.c_int.in_dll(calls, "interrupted").value > 1
    try:
        libbulkmm.stage(sys.argv[1:], page="thp")
    except libbulkmm.Error as error:
        assert error.cause == "memory", error
    taken = ctypes.c_void_p.in_dll(calls, "taken").value
    assert ctypes.string_at(taken, 1) == bytes(1)  # it is mapped still
"""


def test_interrupted_reads_and_a_mapping_that_fails(disk: Path) -> None:
    """Reads are repeated; what is mapped where the mapping failed is not touched."""
    (path,) = make_files(disk, sizes=(3 * MIB,))
    calls = disk / "failing_calls.so"
    source = Path(__file__).with_name("failing_calls.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", calls, source], check=True)
    subprocess.run(
        [sys.executable, "-c", FAILING, path],
        env={**os.environ, "LD_PRELOAD": str(calls)},
        check=True,
    )
