# SPDX-License-Identifier: GPL-2.0-only
"""The library's Python package, against the library that was built here."""

import ctypes
import mmap
import re
import signal
import sys
import threading
import tomllib
from array import array
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from corelib import NATIVE, ROOT, build_target

PACKAGE = ROOT / "lib" / "python"
LEN = 96 << 20
PAGE = mmap.PAGESIZE


@pytest.fixture(scope="module")
def libbulkmm() -> Iterator[ModuleType]:
    build_target(NATIVE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BULKMM_LIBRARY", str(NATIVE / "lib" / "libbulkmm.so"))
        patch.syspath_prepend(PACKAGE)
        import libbulkmm

        yield libbulkmm
    for name in [name for name in sys.modules if name.startswith("libbulkmm")]:
        del sys.modules[name]


class Tensor:
    """What has DLPack and no buffer protocol, as in torch."""

    def __init__(self, of: Any, device: int = 1) -> None:
        self.of, self.device = of, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.of.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def make_buffers() -> dict[str, Any]:
    words = np.empty((1000, 1000))
    return {
        "numpy": words,
        "fortran": np.asfortranarray(np.empty((300, 700), dtype=np.int16)),
        "mmap": mmap.mmap(-1, 1 << 20),
        "bytearray": bytearray(100_000),
        "array": array("d", bytes(80_000)),
        "memoryview": memoryview(bytearray(5000)).cast("I"),
        "tensor": Tensor(np.empty((7, 11, 13), dtype=np.float32)),
        "address": (words.ctypes.data, words.nbytes),
        "empty": bytearray(),
    }


BYTES = {
    "numpy": 8_000_000,
    "fortran": 420_000,
    "mmap": 1 << 20,
    "bytearray": 100_000,
    "array": 80_000,
    "memoryview": 5000,
    "tensor": 4004,
    "address": 8_000_000,
    "empty": 0,
}


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_are_those_of_the_buffer(libbulkmm: ModuleType, kind: str) -> None:
    """Whatever its items are; pages are whole."""
    buffer = make_buffers()[kind]
    assert libbulkmm.clear(buffer).nbytes == BYTES[kind]
    report = libbulkmm.populate(buffer)
    assert BYTES[kind] <= report.nbytes < BYTES[kind] + 2 * PAGE
    assert report.nbytes % PAGE == 0


def count_resident(array: Any) -> int:
    flags = (ctypes.c_ubyte * (array.nbytes // PAGE - 1))()
    start = -(-array.ctypes.data // PAGE) * PAGE
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.mincore(
        ctypes.c_void_p(start), ctypes.c_size_t(len(flags) * PAGE), flags
    )
    return sum(flag & 1 for flag in flags)


def test_all_of_an_array_is_resident(libbulkmm: ModuleType) -> None:
    array = np.empty(LEN, dtype=np.uint8)
    assert count_resident(array) < LEN // PAGE // 2
    calls: list[tuple[int, int]] = []
    report = libbulkmm.populate(array, progress=lambda *now: calls.append(now))
    assert count_resident(array) == LEN // PAGE - 1
    assert calls[-1] == (report.nbytes, report.nbytes)
    assert report.threads >= 1
    assert report.seconds > 0


def test_ranges_that_share_a_page_do_not_overlap(libbulkmm: ModuleType) -> None:
    array = np.empty(10 * PAGE, dtype=np.uint8)
    parts = [array[i : i + 1000] for i in range(0, array.nbytes, 1000)]
    report = libbulkmm.populate_ranges(reversed(parts))
    assert array.nbytes <= report.nbytes <= array.nbytes + 2 * PAGE
    with pytest.raises(libbulkmm.Error, match="overlaps another") as raised:
        libbulkmm.populate_ranges([array, array[100:]])
    assert raised.value.cause == "overlap"


def test_pieces_are_ready_on_this_thread(libbulkmm: ModuleType) -> None:
    array = np.empty(LEN, dtype=np.uint8)
    pieces: list[tuple[int, int]] = []
    threads = set()

    def note_piece(address: int, nbytes: int) -> None:
        threads.add(threading.get_ident())
        pieces.append((address, nbytes))

    report = libbulkmm.populate(array, ready=note_piece, piece=16 << 20, in_order=True)
    assert sum(nbytes for _, nbytes in pieces) == report.nbytes
    assert pieces == sorted(pieces)
    assert threads == {threading.get_ident()}


def test_small_pages_become_huge_ones(libbulkmm: ModuleType) -> None:
    memory = mmap.mmap(-1, LEN, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    report = libbulkmm.populate(memory, compact=True)
    assert report.huge == report.small == 0
    with pytest.raises(libbulkmm.Error) as raised:
        libbulkmm.collapse(memory)
    if raised.value.cause == "kernel":  # before Linux 6.1
        return
    assert raised.value.cause == "no_huge"
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory[-1] = 7
    calls: list[tuple[int, int]] = []
    report = libbulkmm.collapse(memory, progress=lambda *now: calls.append(now))
    assert report.huge + report.small == report.nbytes == calls[-1][1]
    assert report.huge
    assert memory[-1] == 7


@pytest.mark.parametrize("callback", ["progress", "ready"])
def test_what_a_callback_raises_comes_out(libbulkmm: ModuleType, callback: str) -> None:
    def fail(_first: int, _second: int) -> None:
        raise LookupError(callback)

    options = {callback: fail, "piece": PAGE}
    with pytest.raises(LookupError, match=callback):
        libbulkmm.populate(np.empty(LEN, dtype=np.uint8), **options)


def test_ctrl_c_ends_it(libbulkmm: ModuleType) -> None:
    array = np.empty(LEN, dtype=np.uint8)

    def interrupt(_address: int, _nbytes: int) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        libbulkmm.populate(array, ready=interrupt, piece=PAGE)


@pytest.mark.parametrize(
    ("buffer", "error", "text"),
    [
        (bytes(10), BufferError, "writable"),
        (np.empty((9, 9))[::2, ::2], ValueError, "contiguous"),
        (Tensor(np.empty((9, 9))[::2, ::2]), BufferError, "not contiguous"),
        (Tensor(np.empty(9), device=2), BufferError, "another device"),
        (3, TypeError, "bytes-like"),
        ((-1, 1), ValueError, "negative"),
    ],
)
def test_a_wrong_buffer_is_refused(
    libbulkmm: ModuleType, buffer: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        libbulkmm.populate(buffer)


def test_an_error_is_the_librarys_sentence(libbulkmm: ModuleType) -> None:
    memory = mmap.mmap(-1, LEN)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.CDLL(None).mprotect(
        ctypes.c_void_p(address + LEN // 2), ctypes.c_size_t(PAGE), 1
    )
    with pytest.raises(libbulkmm.Error) as raised:
        libbulkmm.populate((address, LEN))
    assert raised.value.failed == (address + LEN // 2, PAGE)
    assert raised.value.cause == "protected"
    assert raised.value.report.reached == address + LEN // 2
    assert "the mapping does not allow it" in str(raised.value)
    with pytest.raises(libbulkmm.Error, match="memory node"):
        libbulkmm.populate_ranges([libbulkmm.Range(bytearray(9), node=999)])


def test_a_buffer_stays_while_it_is_populated(libbulkmm: ModuleType) -> None:
    memory = mmap.mmap(-1, LEN)

    def close(_address: int, _nbytes: int) -> None:
        memory.close()

    with pytest.raises(BufferError):
        libbulkmm.populate(memory, ready=close)


def test_copies_and_fills(libbulkmm: ModuleType) -> None:
    source = np.arange(1_000_003, dtype=np.uint8)
    for streaming in (False, True):
        to = bytearray(source.nbytes)
        libbulkmm.copy(to, source, streaming=streaming)
        assert bytes(to) == source.tobytes()
    libbulkmm.copy(to, bytes(source.nbytes))  # a source may be read-only
    assert not any(to)
    libbulkmm.fill(to, b"abc")
    assert bytes(to) == (b"abc" * len(to))[: len(to)]
    with pytest.raises(ValueError, match="do not fill"):
        libbulkmm.copy(to, source[1:])
    with pytest.raises(ValueError, match="overlap"):
        libbulkmm.copy(source, source)
    with pytest.raises(ValueError, match="empty"):
        libbulkmm.fill(to, b"")


def test_causes_are_those_of_the_header(libbulkmm: ModuleType) -> None:
    header = (ROOT / "lib" / "bulkmm-populate.h").read_text()
    names = re.findall(r"^\tBMM_CAUSE_(\w+),?$", header, re.MULTILINE)
    assert [name.lower() for name in names] == list(libbulkmm.CAUSES)


def test_a_missing_library_is_an_error_that_says_so(
    libbulkmm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    libbulkmm._library.load_library.cache_clear()
    monkeypatch.setenv("BULKMM_LIBRARY", "/nowhere.so")
    with pytest.raises(ImportError, match="BULKMM_LIBRARY names none"):
        libbulkmm.version()
    monkeypatch.undo()
    libbulkmm._library.load_library.cache_clear()
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    assert libbulkmm.version() == project["version"]
