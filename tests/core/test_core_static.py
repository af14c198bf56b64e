# SPDX-License-Identifier: GPL-2.0-only
"""What the compiler made of the core, and what the sanitizers say of it."""

import platform
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from corelib import (
    NATIVE,
    ROOT,
    SANITIZE,
    THREADS,
    build_core,
    build_target,
    disassemble_object,
)
from programs import run_program

X86 = platform.machine() == "x86_64"
needs_x86 = pytest.mark.skipif(
    not (X86 and shutil.which("objdump")), reason="needs x86-64 and objdump"
)

VECTOR = re.compile(r"%(?:[xyz]?mm\d|st\b|k[0-7]\b)")
# An instruction whose last operand, its destination, is memory.
MEMORY_DESTINATION = re.compile(r"^(?P<name>\S+)\s+(?:.*,)?[^,()]*\((?P<base>[^)]*)\)$")
STREAMING = ("movnti", "movdir64b", "vmovntdq")
NO_STORE = re.compile(
    r"^(?:(?:data16 )*cs |cmp|test|lea|call|jmp|nop|prefetch|push|bt[lq]?$)"
)


def read_instructions(obj: str) -> dict[str, list[str]]:
    """Return the instructions of each function of an object of the core."""
    build_core()
    return disassemble_object("objdump", NATIVE / "libbmmcore.a.p" / obj, "#")


def list_objects() -> list[str]:
    """Return the objects that the kernel has as well."""
    build_core()
    names = sorted(p.name for p in (NATIVE / "libbmmcore.a.p").glob("*.o"))
    return [name for name in names if "_user_" not in name]


def streaming_functions(obj: str) -> dict[str, list[str]]:
    """Return what bypasses the cache: all but the edges of an extent."""
    functions = read_instructions(obj)
    edges = {"clear_edge", "copy_edge"}
    assert edges & set(functions)  # not inlined: their stores are ordinary
    return {name: code for name, code in functions.items() if name not in edges}


def ordinary_stores(lines: list[str]) -> list[str]:
    """Return the stores that are neither non-temporal nor to the stack."""
    stores = []
    for line in lines:
        store = MEMORY_DESTINATION.match(line)
        if not store or NO_STORE.match(line) or store["name"].startswith(STREAMING):
            continue
        if not store["base"].startswith("%rsp"):
            stores.append(line)
    return stores


@needs_x86
def test_no_object_uses_a_vector_register() -> None:
    assert len(list_objects()) >= 11
    used = {
        obj: [
            x
            for code in read_instructions(obj).values()
            for x in code
            if VECTOR.search(x)
        ]
        for obj in [*list_objects(), "core_x86_user_avx512.c.o"]
    }
    assert used.pop("core_x86_user_avx512.c.o")  # it sees them
    assert not any(used.values()), used


@needs_x86
@pytest.mark.parametrize("name", ["movnti", "movdir64b", "clzero"])
def test_streaming_backend_has_no_ordinary_store(name: str) -> None:
    functions = streaming_functions(f"core_x86_{name}.c.o")
    assert "clear_streaming" in functions
    for function, code in functions.items():
        assert not ordinary_stores(code), function
        assert not [line for line in code if re.match(r"rep |stos|movs[bwlq]\b", line)]
        assert not [line for line in code if re.match(r"call.*mem(cpy|set)", line)]
    assert any(line.startswith(name) for line in functions["clear_streaming"])
    plain = read_instructions("core_x86_plain.c.o").values()
    assert any(map(ordinary_stores, plain))  # it sees them


@needs_x86
def test_the_source_of_a_streaming_copy_never_passes_the_stack() -> None:
    code = "\n".join(read_instructions("core_x86_movnti.c.o")["copy"]) + "\n"
    assert re.search(r"(?:mov +[^\n]*\nmovnti [^\n]*\n){8}", code)


@needs_x86
def test_variants_fetch_as_they_say() -> None:
    for obj, function, hint in (
        ("movnti", "copy_lines_t0", "prefetcht0"),
        ("movnti", "copy_lines_nta", "prefetchnta"),
        ("user_avx512", "stream_lines_t0", "prefetcht0"),
        ("user_avx512", "copy_lines_t0", "prefetcht0"),
        ("user_avx512", "clear_lines_t0", "prefetcht0"),
        ("rep", "clear_t0", "prefetcht0"),
    ):
        code = read_instructions(f"core_x86_{obj}.c.o")
        lines = code.get(function) or code[function.replace("_lines", "")]
        assert any(line.startswith(hint) for line in lines), function


@needs_x86
@pytest.mark.parametrize("name", ["bmm_clear", "bmm_copy"])
def test_what_bypasses_the_cache_is_not_ahead_of_earlier_stores(name: str) -> None:
    """Of the operations of ordinary ordering, which for large extents do that."""
    code = "\n".join(read_instructions("core_operations.c.o")[name])
    assert re.search(r"sfence\n(?:(?:mov|pop|add) [^\n]*\n)*(?:call|jmp) ", code)


@needs_x86
def test_image_stays_in_registers() -> None:
    """In the loop for 64-byte records nothing is loaded."""
    code = read_instructions("core_x86_movnti.c.o")["stamp"]
    block = r"(?:movnti [^\n]*\n){32}"
    assert re.search(block, "\n".join(code) + "\n"), "a load between the stores"


def test_nothing_shares_a_cache_line_with_what_is_selected() -> None:
    build_core()
    nm = ["nm", "-S", str(NATIVE / "libbmmcore.so")]
    symbols = run_program(nm, check=True).stdout
    (line,) = [one for one in symbols.splitlines() if one.endswith(" bmm_selections")]
    at, size = (int(word, 16) for word in line.split()[:2])
    assert (at % 64, size % 64) == (0, 0)


def test_sanitizers_find_nothing() -> None:
    build_target(SANITIZE, target="bmm-guarded")
    result = run_program(
        [SANITIZE / "bmm-guarded"],
        env={"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert ", 0 wrong in all" in result.stdout


def test_thread_sanitizer_finds_nothing() -> None:
    build_target(THREADS, target="bmm-concurrent")
    result = run_program(["setarch", "-R", THREADS / "bmm-concurrent"])
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == "0 wrong\n"


@needs_x86
def test_no_vector_register_is_alive_where_a_function_may_be_called(
    tmp_path: Path,
) -> None:
    build_core()
    gcc = ["gcc", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/core", f"-I{ROOT}/lib"]
    calls = ["-ffreestanding", "-mgeneral-regs-only", "-fsanitize-coverage=trace-pc"]
    objects = [tmp_path / "avx512.o", tmp_path / "avx2.o"]
    for obj in objects:
        source = ROOT / "core" / "x86" / "user" / f"{obj.stem}.c"
        subprocess.run([*gcc, *calls, "-c", source, "-o", obj], check=True)
    sources = [ROOT / "tests/core" / name for name in ("guarded.c", "clobber.c")]
    libraries = [NATIVE / f"libbmm{name}.a" for name in ("core", "host")]
    program, wrap = tmp_path / "guarded", "-Wl,--wrap=bmm_copy_streaming"
    words = [*gcc, wrap, *sources, *objects, *libraries, "-o", program]
    subprocess.run(words, check=True)
    output = run_program([program], check=True).stdout
    if "avx2: " not in output:
        pytest.skip("this CPU has no AVX2")
    assert ", 0 wrong in all" in output


def test_a_debug_build_stops_where_copies_overlap() -> None:
    build_target(SANITIZE, target="bmm-guarded")
    program = [str(SANITIZE / "bmm-guarded"), "overlap"]
    code = subprocess.run(program, check=False).returncode
    assert code in (-signal.SIGILL, -signal.SIGTRAP)
    build_target(NATIVE, target="bmm-guarded")
    program[0] = str(NATIVE / "bmm-guarded")
    assert subprocess.run(program, check=False).returncode == 0
