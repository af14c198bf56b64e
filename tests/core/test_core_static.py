# SPDX-License-Identifier: GPL-2.0-only
"""What the compiler made of the core, and what the sanitizers say of it."""

from __future__ import annotations

import platform
import re
import shutil
import signal
import subprocess

import pytest
from corelib import (
    NATIVE,
    SANITIZE,
    THREADS,
    Op,
    backend,
    backend_names,
    core,
    disassembled,
    meson,
)

X86 = platform.machine() == "x86_64"
needs_x86 = pytest.mark.skipif(
    not (X86 and shutil.which("objdump")), reason="needs x86-64 and objdump"
)

OPTIONS = ["-Db_sanitize=address,undefined", "-Db_lundef=false"]

VECTOR = re.compile(r"%(?:[xyz]?mm\d|st\b|k[0-7]\b)")
# An instruction whose last operand, its destination, is memory.
MEMORY_DESTINATION = re.compile(r"^(?P<name>\S+)\s+(?:.*,)?[^,()]*\((?P<base>[^)]*)\)$")
NO_STORE = re.compile(
    r"^(?:(?:data16 )*cs |cmp|test|lea|call|jmp|nop|prefetch|push|bt[lq]?$)"
)


def instructions(obj: str) -> dict[str, list[str]]:
    """Return the instructions of each function of an object of the core."""
    core()
    return disassembled("objdump", NATIVE / "libbmmcore.a.p" / obj, "#")


def objects() -> list[str]:
    core()
    return sorted(p.name for p in (NATIVE / "libbmmcore.a.p").glob("*.o"))


def streaming_functions(obj: str) -> dict[str, list[str]]:
    """Return what writes around the cache: all but the edges of an extent."""
    found = instructions(obj)
    assert "clear_edge" in found  # not inlined: its stores are ordinary
    return {name: code for name, code in found.items() if name != "clear_edge"}


def ordinary_stores(lines: list[str]) -> list[str]:
    """Return the stores that are neither non-temporal nor to the stack."""
    found = []
    for line in lines:
        store = MEMORY_DESTINATION.match(line)
        if not store or NO_STORE.match(line) or store["name"].startswith("movnti"):
            continue
        if not store["base"].startswith("%rsp"):
            found.append(line)
    return found


@needs_x86
def test_no_object_uses_a_vector_register() -> None:
    assert len(objects()) >= 11
    for obj in objects():
        for name, lines in instructions(obj).items():
            used = [line for line in lines if VECTOR.search(line)]
            assert not used, f"{obj}, {name}: {used}"


@needs_x86
@pytest.mark.parametrize("name", ["movnti", "movnti8"])
def test_streaming_stamp_has_no_ordinary_store(name: str) -> None:
    functions = instructions(f"core_x86_{name}.c.o")
    stamps = {n: code for n, code in functions.items() if "stamp" in n or "step" in n}
    assert stamps
    assert any(line.startswith("movnti") for code in stamps.values() for line in code)
    for function, code in stamps.items():
        assert not ordinary_stores(code), function
        assert not [line for line in code if line.startswith(("rep ", "stos"))]
        assert not [line for line in code if re.match(r"call.*mem(cpy|set)", line)]


@needs_x86
@pytest.mark.parametrize("name", ["movnti", "clzero"])
def test_streaming_backend_has_no_ordinary_store(name: str) -> None:
    functions = streaming_functions(f"core_x86_{name}.c.o")
    assert {"clear_streaming", "bmm_x86_drain"} <= set(functions)
    for function, code in functions.items():
        assert not ordinary_stores(code), function
        assert not [line for line in code if re.match(r"rep |stos|movs[bwlq]\b", line)]
    clears = functions["clear_streaming"]
    assert any(line.startswith(name) for line in clears)


@needs_x86
def test_streaming_copy_of_fixed_sizes_does_not_loop() -> None:
    """12 words straight through, and the source never passes the stack."""
    code = instructions("core_x86_movnti.c.o")["copy"]
    assert re.search(r"(?:mov +[^\n]*\nmovnti [^\n]*\n){12}", "\n".join(code) + "\n")
    assert any(line.startswith("prefetchnta") for line in code)


@needs_x86
def test_streaming_drain_is_a_fence_and_the_plain_one_is_none() -> None:
    for name in ("movnti", "movnti8", "clzero"):
        assert "sfence" in instructions(f"core_x86_{name}.c.o")["bmm_x86_drain"]
    assert "sfence" not in instructions("core_generic_generic.c.o")["bmm_no_drain"]
    for name in ("generic", "plain", "rep-q", "rep-b"):
        if name in backend_names(Op.CLEAR):
            drain = backend(name, Op.CLEAR).drain
            assert drain == backend("generic", Op.CLEAR).drain


@needs_x86
def test_the_check_sees_an_ordinary_store() -> None:
    code = instructions("core_x86_plain.c.o")["stamp"]
    assert any(re.match(r"movq? ", line) for line in ordinary_stores(code))


@needs_x86
@pytest.mark.parametrize(
    ("name", "function", "stores"), [("movnti", "stamp", 32), ("movnti8", "stamp8", 64)]
)
def test_image_stays_in_registers(name: str, function: str, stores: int) -> None:
    """In the loop for 64-byte records nothing is loaded."""
    code = instructions(f"core_x86_{name}.c.o")[function]
    block = rf"(?:movnti [^\n]*\n){{{stores}}}"
    assert re.search(block, "\n".join(code) + "\n"), "a load between the stores"


def test_sanitizers_find_nothing() -> None:
    meson(SANITIZE, *OPTIONS)
    done = subprocess.run(
        [str(SANITIZE / "bmm-exercise")],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": 0 wrong") == len(done.stdout.splitlines())


def test_thread_sanitizer_finds_nothing() -> None:
    meson(THREADS, "-Db_sanitize=thread", "-Db_lundef=false")
    done = subprocess.run(
        ["setarch", "-R", str(THREADS / "bmm-concurrent")],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "0 wrong\n"


def test_a_debug_build_stops_where_copies_overlap() -> None:
    meson(SANITIZE, *OPTIONS)
    program = [str(SANITIZE / "bmm-exercise"), "overlap"]
    code = subprocess.run(program, check=False).returncode
    assert code in (-signal.SIGILL, -signal.SIGTRAP)
    meson(NATIVE)
    program[0] = str(NATIVE / "bmm-exercise")
    assert subprocess.run(program, check=False).returncode == 0
