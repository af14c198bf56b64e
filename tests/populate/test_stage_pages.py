# SPDX-License-Identifier: GPL-2.0-only
"""The small pages of bmm_stage(): copied by several threads, or else written."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import rootlib
from populatelib import MIB

HUGE = Path("/sys/kernel/mm/transparent_hugepage")
STAGE = """if True:
    import ctypes, mmap, os, sys
    from bulkmm.populate import libbulkmm, library
    libbulkmm.set_library(str(library.BUILT_LIBRARY))
    calls, path = ctypes.CDLL(None), sys.argv[1]
    def count_copied():
        return ctypes.c_long.in_dll(calls, "copied").value
    def stage(fd=-1):
        with open(path, "rb") as file:
            whole = file.read()
        fd, files, report = libbulkmm.stage_into(fd, [path, path])
        for each in files:
            assert os.pread(fd, each.nbytes, each.offset) == whole
            last = each.offset + each.nbytes
            assert not any(os.pread(fd, -last % mmap.PAGESIZE, last))
        stage.fd = fd
        return files
    def print_mapped_huge(fd, name):
        with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as memory:
            memory[0]
            with open("/proc/self/smaps") as maps:
                entry = maps.read().split(name)[1].split("VmFlags")[0]
        print(entry.split("ShmemPmdMapped:")[1].split()[0])
"""
FILTER = """
    class Rule(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte),
                    ("no", ctypes.c_ubyte), ("value", ctypes.c_uint)]
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.POINTER(Rule))]
    NUMBERS = {"x86_64": 323, "aarch64": 282}
    rules = (Rule * 4)((0x20, 0, 0, 0), (0x15, 0, 1, NUMBERS[os.uname().machine]),
                       (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000))
    assert not calls.prctl(38, 1, 0, 0, 0)
    assert not calls.prctl(22, 2, ctypes.byref(Program(4, rules)))
    stage()
    assert count_copied() == 0
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build what counts the calls, and lets them fail."""
    library = tmp_path_factory.mktemp("calls") / "copied_pages.so"
    source = Path(__file__).with_name("copied_pages.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture
def content(tmp_path: Path) -> Path:
    """Make a file that ends within a page."""
    path = tmp_path / "content"
    path.write_bytes(os.urandom(5 * MIB + 7))
    return path


def run_stage(calls: Path, content: Path, text: str, *words: object) -> str:
    return subprocess.check_output(
        [sys.executable, "-c", STAGE + text, content, *map(str, words)],
        env={**os.environ, "LD_PRELOAD": str(calls)},
        text=True,
    )


def test_pages_are_copied_from_buffers(calls: Path, content: Path) -> None:
    text = """
    files = stage()
    assert count_copied() == 2 * files[1].offset, count_copied()
"""
    run_stage(calls, content, text)


def test_what_is_not_copied_is_written(calls: Path, content: Path) -> None:
    text = """
    ctypes.c_int.in_dll(calls, "fails").value = 1
    stage()
    assert count_copied()
"""
    run_stage(calls, content, text)


@pytest.mark.parametrize(
    ("word", "page", "cause"),
    [
        ("ENOMEM", 0, "memory"),
        ("EFAULT", 0, "memory"),  # of a buffer that is used for the first time
        ("EIO", 0, "file"),
        ("ENOMEM", "thp", "memory"),
        ("EFAULT", "thp", "file"),  # not by way of a buffer
    ],
)
def test_a_read_that_gets_no_memory(
    calls: Path, content: Path, word: str, page: int | str, cause: str
) -> None:
    """It is not the file that fails."""
    text = f"""
    import errno
    ctypes.c_int.in_dll(calls, "read_error").value = errno.{word}
    try:
        libbulkmm.stage_into(-1, [path], page={page!r})
    except libbulkmm.Error as error:
        print(error.cause, error)
"""
    line = run_stage(calls, content, text)
    assert line.startswith(f"{cause} {content}: "), line


def test_a_filter_of_system_calls_is_not_tried(calls: Path, content: Path) -> None:
    """It kills for userfaultfd(2)."""
    run_stage(calls, content, FILTER)


def test_a_file_system_of_huge_pages_gives_them(
    calls: Path, content: Path, tmp_path: Path
) -> None:
    text = """
    fd = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
    stage(fd)
    assert count_copied() == 0
    print_mapped_huge(fd, sys.argv[2])
"""
    place = tmp_path / "huge"
    with rootlib.mount_memory("tmpfs", "size=32M,huge=always", place):
        assert int(run_stage(calls, content, text, place / "file")) > 0


@contextlib.contextmanager
def set_shared(size: str) -> Iterator[None]:
    """Have "always" for shared memory: of one size of page, or of huge ones."""
    rootlib.needs_root()
    setting = HUGE / size / "shmem_enabled"
    if not setting.exists():
        pytest.skip("this kernel has no large folios of shared memory")
    before = setting.read_text().partition("[")[2].partition("]")[0]
    setting.write_text("always")
    try:
        yield
    finally:
        setting.write_text(before)


def test_huge_pages_of_a_memfd_are_written(calls: Path, content: Path) -> None:
    """By its own mapping: other programs have such pages, and free them."""
    text = """
    stage()
    assert count_copied() == 0
    print_mapped_huge(stage.fd, "bulkmm-stage")
"""
    with set_shared(""):
        assert int(run_stage(calls, content, text)) > 0


def test_large_folios_of_faults_are_none_of_writes(calls: Path, content: Path) -> None:
    """So small pages are copied where page faults would get larger ones."""
    size = "hugepages-64kB"
    count = HUGE / size / "stats/shmem_alloc"
    text = """
    files = stage()
    assert count_copied() == 2 * files[1].offset, count_copied()
"""
    with set_shared(size):
        run_stage(calls, content, text)
        before, fd = count.read_text(), os.memfd_create("written")
        os.write(fd, content.read_bytes())
        assert count.read_text() == before
        os.close(fd)
