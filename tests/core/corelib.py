# SPDX-License-Identifier: GPL-2.0-only
"""The core as a library, built if need be, and what tests ask of it."""

import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from cffi import FFI
from programs import run_program

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "build" / "native"
SANITIZE = ROOT / "build" / "sanitize"
THREADS = ROOT / "build" / "threads"
FUZZ = ROOT / "build" / "fuzz"
OPTIONS = {
    SANITIZE: ("-Db_sanitize=address,undefined", "-Db_lundef=false"),
    THREADS: ("-Db_sanitize=thread", "-Db_lundef=false"),
    FUZZ: ("-Db_sanitize=address,undefined", "-Db_lundef=false"),
}

EINVAL, EUNLIKE = -22, -61
HEADS, UNITS = 8, 3
WORD_MASK = 2**64 - 1


def read_declarations() -> str:
    """Return what the headers declare, without macros and bodies."""
    names = ("bmm", "calibrate", "learn", "select", "cpu")
    text = "".join(f'#include "{name}.h"\n' for name in names)
    flags = ["-E", "-xc", "-D__attribute__(x)=", f"-I{ROOT / 'core'}"]
    command = ["cc", *flags, f"-I{ROOT / 'lib'}", "-"]
    lines, in_project = [], False
    for line in run_program(command, input=text, check=True).stdout.splitlines():
        if line.startswith("# "):
            in_project = str(ROOT) in line
        elif in_project:
            lines.append(line)
    bodies = re.compile(r"^static[^;]*?\{.*?^\}", re.DOTALL | re.MULTILINE)
    return bodies.sub("", "\n".join(lines))


ffi = FFI()
ffi.cdef(read_declarations())


def is_configured(build: Path) -> bool:
    """Tell whether a directory is set up to build what the tests run, too."""
    options = build / "meson-private" / "cmd_line.txt"
    return (build / "build.ninja").exists() and (
        "\ndevelopment = true\n" in options.read_text()
    )


@cache
def build_target(
    build: Path,
    *options: str,
    compiler: str = "",
    target: str = "",
    source: Path = ROOT,
) -> None:
    """Set a build directory up if needed, and compile, once in a process.

    A target is a file. Finding that nothing is to be done takes longer than most tests,
    most of all Meson. Of several processes one compiles at a time.
    """
    program = [sys.executable, "-m", "mesonbuild.mesonmain"]
    environment = dict(os.environ)
    scripts = str(Path(sys.executable).parent)  # ninja lives there
    environment["PATH"] = scripts + os.pathsep + environment.get("PATH", "")
    if compiler:
        environment["CC"] = compiler
    steps = [["ninja", "-C", str(build), *([target] if target else [])]]
    build.parent.mkdir(parents=True, exist_ok=True)
    with build.with_name(f"{build.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_configured(build):
            shutil.rmtree(build, ignore_errors=True)
            setup = [*program, "setup", "-Dwerror=true", "-Ddevelopment=true"]
            setup += [*OPTIONS.get(build, ()), *options]
            steps.insert(0, [*setup, str(build), str(source)])
        for step in steps:
            result = run_program(step, env=environment)
            assert not result.returncode, result.stdout + result.stderr


def kept_inputs(to: Path) -> list[Path]:
    """Write the kept inputs of the fuzz target as files, and return these."""
    texts = json.loads((ROOT / "tests/core/fuzz_learn.json").read_text())
    files = [to / f"kept-{n}" for n in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(bytes.fromhex(text))
    return files


@cache
def build_core() -> Any:
    """Return the core, built if need be."""
    build_target(NATIVE, target="libbmmcore.so")
    return ffi.dlopen(str(NATIVE / "libbmmcore.so"))


def run_test_program(name: str, *words: str, by: tuple[str, ...] = ()) -> list[str]:
    """Run a test program; return the lines it prints."""
    build_target(NATIVE, target=f"bmm-{name}")
    result = run_program([*by, NATIVE / f"bmm-{name}", *words])
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


def disassemble_object(objdump: str, path: Path, comment: str) -> dict[str, list[str]]:
    """Return the instructions of each function of an object."""
    result = run_program([objdump, "-d", "--no-show-raw-insn", path], check=True)
    functions: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        if start := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            functions[start[1]] = []
        elif "\t" in line:
            text = line.split("\t", 1)[1].split(comment)[0].strip()
            functions[list(functions)[-1]].append(text)
    return functions


class Op(IntEnum):
    """Operations, as enum bmm_op has them."""

    STAMP = 0
    COPY = 1
    COPY_STREAMING = 2
    CLEAR = 3
    CLEAR_STREAMING = 4


STREAMING = (Op.STAMP, Op.COPY_STREAMING, Op.CLEAR_STREAMING)


def name_of(handle: Any) -> str:
    """Return the name of a backend."""
    return ffi.string(handle.name).decode()


def backend_names(op: Op | None = None) -> list[str]:
    """Return the backends of this machine: all, or those for an operation."""
    lib, names, i = build_core(), [], 0
    while (handle := lib.bmm_backend_at(i)) != ffi.NULL:
        if any(lib.bmm_backend_can(handle, o) for o in (Op if op is None else [op])):
            names.append(name_of(handle))
        i += 1
    return names


def list_candidates(op: Op, *, skewed: bool = False) -> list[str]:
    """Return the backends that may be selected, the preferred one first."""
    handles = ffi.new("const struct bmm_backend *[16]")
    calls = ffi.new("struct bmm_calls *", {"op": op, "len": 4096, "skewed": skewed})
    return [
        name_of(handles[k]) for k in range(build_core().bmm_candidates(calls, handles))
    ]


def read_selection(op: Op) -> list[str]:
    """Return the selected backends, one for each class of calls."""
    buf = ffi.new("char[200]")
    build_core().bmm_backend_selection(op, buf, 200)
    return ffi.string(buf).decode().split(",")


def selected_backend(op: Op) -> Any:
    """Return the backend that long calls have, NULL before it is selected."""
    return build_core().bmm_selections[op][6]


def find_backend(name: str, op: Op) -> Any:
    """Return a backend by name."""
    handle = build_core().bmm_backend_find(op, name.encode(), len(name))
    assert handle != ffi.NULL
    return handle


def record_bytes(words: Sequence[int]) -> bytes:
    """Return the words as they lie in memory."""
    return b"".join((w & WORD_MASK).to_bytes(8, sys.byteorder) for w in words)
