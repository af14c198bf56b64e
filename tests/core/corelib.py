# SPDX-License-Identifier: GPL-2.0-only
"""The core as a library, built if need be, and what tests ask of it."""

import fcntl
import json
import os
import re
import sys
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from cffi import FFI
from programs import completed

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "build" / "native"
SANITIZE = ROOT / "build" / "sanitize"
THREADS = ROOT / "build" / "threads"
CORPUS = ROOT / "tests" / "core" / "corpus"
FUZZ_TARGETS = ("clear", "copy", "learn", "stamp")

EINVAL, EUNLIKE = -22, -61
HEADS, UNITS = 8, 3
WORD_MASK = 2**64 - 1

PROT_RW = 3
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE = 0x2, 0x20, 0x4000

ffi = FFI()
ffi.cdef(
    """
    struct bmm_image {
        uint32_t size;
        uint32_t stepping;
        uint64_t word[16];
        uint64_t step[16];
    };
    struct bmm_backend {
        const char *name;
        bool level;
        bool (*supported)(void);
        void (*stamp)(void *, const struct bmm_image *, size_t);
        void (*copy)(void *, const void *, size_t);
        void (*copy_streaming)(void *, const void *, size_t);
        void (*clear)(void *, size_t);
        void (*clear_streaming)(void *, size_t);
    };
    struct bmm_calls {
        int op;
        size_t len;
        bool hot, cold, skewed;
    };
    struct bmm_calibration {
        const struct bmm_backend *selected;
        uint32_t rate[16];
    };
    struct bmm_cpuid {
        uint32_t most, most_ext;
        uint32_t c1, b7, c7, d7, b_ext8;
        uint64_t xcr0;
    };
    struct bmm_geometry {
        size_t record, records, stride;
    };
    struct bmm_layout {
        struct bmm_geometry geometry;
        unsigned int heads;
        uint64_t unit;
        struct bmm_image image[9];
        struct bmm_image tail;
        size_t differs;
    };
    const struct bmm_backend *bmm_backend_at(size_t);
    bool bmm_backend_can(const struct bmm_backend *, int);
    const struct bmm_backend *bmm_backend_find(int, const char *, size_t);
    unsigned bmm_candidates(const struct bmm_calls *, const struct bmm_backend **);
    void bmm_calibrate(const struct bmm_calls *, void *, struct bmm_calibration *);
    extern const struct bmm_backend *bmm_selections[5][8];
    extern size_t bmm_streams_from[5];
    void bmm_measure(void);
    int bmm_backend_select(int, const char *, size_t);
    size_t bmm_backend_selection(int, char *, size_t);
    size_t bmm_backend_list(int, size_t, char *, size_t);
    size_t bmm_environment_error(char *, size_t);
    const char *bmm_version(void);
    int bmm_version_number(void);
    size_t bmm_host_llc(void);
    uint32_t bmm_cpu_features(const struct bmm_cpuid *);
    uint64_t bmm_host_clock(void);
    int bmm_image_init(struct bmm_image *, const void *, const void *, size_t);
    void bmm_image_at(struct bmm_image *, const struct bmm_image *, uint64_t);
    int bmm_stamp(void *, const struct bmm_image *, size_t);
    void bmm_copy(void *, const void *, size_t);
    void bmm_copy_streaming(void *, const void *, size_t);
    void bmm_move(void *, const void *, size_t);
    void bmm_move_streaming(void *, const void *, size_t);
    void bmm_drain(void);
    void bmm_clear(void *, size_t);
    void bmm_clear_streaming(void *, size_t);
    int bmm_learn(struct bmm_layout *, const void *,
                  const struct bmm_geometry *, size_t);
    int bmm_layout_verify(struct bmm_layout *, const void *, size_t);
    void bmm_layout_stamp(struct bmm_layout *, const struct bmm_backend *,
                          void *, uint64_t, size_t);

    void *mmap(void *, size_t, int, int, int, long);
    int munmap(void *, size_t);
    """
)
libc: Any = ffi.dlopen(None)


@cache
def meson(
    build: Path,
    *options: str,
    compiler: str = "",
    target: str = "",
    source: Path = ROOT,
) -> None:
    """Set a build directory up if needed, and compile, once in a process.

    Finding that nothing is to be done takes longer than most tests. Of several
    processes one compiles at a time.
    """
    program = [sys.executable, "-m", "mesonbuild.mesonmain"]
    environment = dict(os.environ)
    scripts = str(Path(sys.executable).parent)  # ninja lives there
    environment["PATH"] = scripts + os.pathsep + environment.get("PATH", "")
    if compiler:
        environment["CC"] = compiler
    steps = [[*program, "compile", "-C", str(build), *([target] if target else [])]]
    build.parent.mkdir(parents=True, exist_ok=True)
    with build.with_name(f"{build.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (build / "build.ninja").exists():
            setup = [*program, "setup", "-Dwerror=true", str(build), str(source)]
            steps.insert(0, [*setup, *options])
        for step in steps:
            done = completed(step, env=environment)
            assert not done.returncode, done.stdout + done.stderr


def kept_inputs(target: str, to: Path) -> list[Path]:
    """Write the kept inputs of a fuzz target as files, and return these."""
    texts = json.loads((CORPUS / f"{target}.json").read_text())
    files = [to / f"kept-{n}" for n in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(bytes.fromhex(text))
    return files


@cache
def core() -> Any:
    """Return the core, built if need be."""
    meson(NATIVE, target="bmmcore:shared_library")
    return ffi.dlopen(str(NATIVE / "libbmmcore.so"))


def disassembled(objdump: str, path: Path, comment: str) -> dict[str, list[str]]:
    """Return the instructions of each function of an object."""
    done = completed([objdump, "-d", "--no-show-raw-insn", path], check=True)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if start := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            found[start[1]] = []
        elif "\t" in line:
            text = line.split("\t", 1)[1].split(comment)[0].strip()
            found[list(found)[-1]].append(text)
    return found


class Op(IntEnum):
    """Operations, as enum bmm_op has them."""

    STAMP = 0
    COPY = 1
    COPY_STREAMING = 2
    CLEAR = 3
    CLEAR_STREAMING = 4


STREAMING = (Op.STAMP, Op.COPY_STREAMING, Op.CLEAR_STREAMING)


def name_of(found: Any) -> str:
    """Return the name of a backend."""
    return ffi.string(found.name).decode()


def backend_names(op: Op | None = None) -> list[str]:
    """Return the backends of this machine: all, or those for an operation."""
    lib, names, i = core(), [], 0
    while (found := lib.bmm_backend_at(i)) != ffi.NULL:
        if any(lib.bmm_backend_can(found, o) for o in (Op if op is None else [op])):
            names.append(name_of(found))
        i += 1
    return names


def candidates(op: Op, *, skewed: bool = False) -> list[str]:
    """Return the backends that may be selected, the preferred one first."""
    found = ffi.new("const struct bmm_backend *[16]")
    calls = ffi.new("struct bmm_calls *", {"op": op, "len": 4096, "skewed": skewed})
    return [name_of(found[k]) for k in range(core().bmm_candidates(calls, found))]


def selection(op: Op) -> list[str]:
    """Return the selected backends, one for each class of calls."""
    buf = ffi.new("char[200]")
    core().bmm_backend_selection(op, buf, 200)
    return ffi.string(buf).decode().split(",")


def selected(op: Op) -> Any:
    """Return the backend that long calls have, NULL before it is selected."""
    return core().bmm_selections[op][6]


def backend(name: str, op: Op) -> Any:
    """Return a backend by name."""
    found = core().bmm_backend_find(op, name.encode(), len(name))
    assert found != ffi.NULL
    return found


def record_bytes(words: Sequence[int]) -> bytes:
    """Return the words as they lie in memory."""
    return b"".join((w & WORD_MASK).to_bytes(8, sys.byteorder) for w in words)
