# SPDX-License-Identifier: GPL-2.0-only
"""The arm64 backends, built by a cross compiler and run by QEMU."""

import re
import subprocess
from functools import cache
from pathlib import Path

import armlib
import pytest
from corelib import ROOT, build_target, disassemble_object, kept_inputs
from programs import run_program

CROSS = ROOT / "build" / "aarch64"
LIBRARIES = "/usr/aarch64-linux-gnu"
OBJDUMP = "aarch64-linux-gnu-objdump"

pytestmark = [pytest.mark.lab, armlib.needs_gcc]

OLD = ("dczva", "stnp", "stp")
# Blocks of DC ZVA of 64 bytes, of 256, and the most that QEMU has.
CPUS = {
    "cortex-a57": OLD,
    "a64fx": OLD,
    "max": (*OLD, "mops"),
}
on_every_cpu = pytest.mark.parametrize(
    "cpu",
    ["max", "cortex-a57", pytest.param("a64fx", marks=pytest.mark.release)],
)
GENERATED = 5000  # inputs for the fuzz target

STREAMING = ("stnp", "dczva")
SET = [f"set{part}{{}} [x0]!, x1!, xzr" for part in "pme"]
COPY = [f"cpyf{part}{{}} [x0]!, [x1]!, x2!" for part in "pme"]
VECTOR = re.compile(r"\b[bhsdqv]\d+(?:\.\w+)?\b")
BRANCH = re.compile(r"(?:bl?|b\.\w+|cbn?z|tbn?z)\s")  # to addresses such as b0
ORDINARY_STORE = re.compile(r"st(?!np\b)\w+\s(?!.*\[sp\b)|(?:bl?|br)\s.*<mem")


@cache
def build_arm64() -> None:
    build_target(CROSS, "--cross-file", str(ROOT / "lib" / "cross" / "aarch64.ini"))


def run_emulated(program: str, cpu: str, *arguments: str) -> list[str]:
    """Run a program on such a CPU, and return what it says."""
    build_arm64()
    result = run_program(
        [armlib.qemu(), "-L", LIBRARIES, "-cpu", cpu, CROSS / program, *arguments],
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


@cache
def read_instructions(obj: str) -> dict[str, list[str]]:
    """Return the instructions of each function of an object of the core."""
    build_arm64()
    functions = disassemble_object(OBJDUMP, CROSS / "libbmmcore.a.p" / obj, "//")
    return {n: [c.replace("\t", " ") for c in code] for n, code in functions.items()}


def find_backend(name: str) -> dict[str, list[str]]:
    return read_instructions(f"core_arm64_{name}.c.o")


def ordinary_stores(code: list[str]) -> list[str]:
    """Return the stores that are neither non-temporal nor to the stack."""
    return [line for line in code if ORDINARY_STORE.match(line)]


def vector_uses(code: list[str]) -> list[str]:
    return [s for s in code if VECTOR.search(s) and not BRANCH.match(s)]


def nothing_wrong(cpu: str) -> list[str]:
    """Return what a program says that tries all backends such a CPU has."""
    return [f"{name}: 0 wrong" for name in (*CPUS[cpu], "generic")]


@on_every_cpu
def test_every_backend_writes_what_generic_c_writes(cpu: str) -> None:
    *lines, total = run_emulated("bmm-guarded", cpu)
    assert lines == [*nothing_wrong(cpu), "moves: 0 wrong", "fills: 0 wrong"]
    assert int(total.split()[0]) > 100000


@on_every_cpu
def test_threads_that_change_the_selection(cpu: str) -> None:
    assert run_emulated("bmm-concurrent", cpu) == ["0 wrong"]


def test_no_backend_cuts_a_length() -> None:
    assert run_emulated("bmm-large", "max") == nothing_wrong("max")


@on_every_cpu
def test_learning_from_anything(cpu: str, tmp_path: Path) -> None:
    """The fuzz target, on its kept inputs and on made ones."""
    files = [str(file) for file in kept_inputs(tmp_path)]
    output = run_emulated("bmm-replay", cpu, str(GENERATED), *files)
    assert output == [f"{len(files)} kept, {GENERATED} made: all held"]


def test_no_object_uses_a_vector_register() -> None:
    build_arm64()
    objects = sorted(p.name for p in (CROSS / "libbmmcore.a.p").glob("*.o"))
    assert len(objects) >= 10
    for obj in objects:
        for name, lines in read_instructions(obj).items():
            assert not vector_uses(lines), f"{obj}, {name}"


@pytest.mark.parametrize("name", STREAMING)
def test_streaming_backend_has_no_ordinary_store(name: str) -> None:
    functions = find_backend(name)
    assert "clear_edge" in functions  # not inlined: its stores are ordinary
    assert "clear" in functions
    for function, code in functions.items():
        assert function.endswith("_edge") or not ordinary_stores(code), function


def test_mops_are_three_instructions_and_nothing_else() -> None:
    """No edges, so no stores of another kind; the hint where it streams."""
    wanted = {
        "clear": [line.format("") for line in SET],
        "clear_streaming": [line.format("n") for line in SET],
        "copy": [line.format("") for line in COPY],
        "copy_streaming": [line.format("n") for line in COPY],
    }
    for name, code in wanted.items():
        body = find_backend("mops")[name]
        assert body[: len(code) + 1] == [*code, "ret"], name
        assert set(body[len(code) + 1 :]) <= {"nop"}, name  # up to the next one


def test_streaming_stamp_has_no_ordinary_store_and_no_stack() -> None:
    """Whatever the compiler has inlined, nothing is spilt either."""
    stamps = {
        n: c for n, c in find_backend("stnp").items() if "stamp" in n or "step" in n
    }
    assert "stamp" in stamps
    for name, code in stamps.items():
        assert not ordinary_stores(code), name
        assert not [line for line in code if re.search(r"\bsp\b", line)], name
        assert not vector_uses(code), name


def test_a_clear_reads_the_block_size_once(tmp_path: Path) -> None:
    """A migration between two reads cannot mislead it; -O1 does not merge them."""
    source, obj = ROOT / "core/arm64/dczva.c", tmp_path / "dczva.o"
    flags = ["-O1", "-std=gnu11", "-mgeneral-regs-only", "-c", "-o", str(obj)]
    flags += ["-I", str(ROOT / "lib")]
    subprocess.run(["aarch64-linux-gnu-gcc", *flags, str(source)], check=True)
    functions = disassemble_object(OBJDUMP, obj, "//")
    code = [x for n, c in functions.items() if n != "supported" for x in c]
    assert sum("dczid_el0" in line for line in code) == 1


def test_image_stays_in_registers() -> None:
    """Four records are sixteen stores with nothing in between."""
    code = "\n".join(find_backend("stnp")["stamp"]) + "\n"
    assert re.search(r"(?:stnp x[^\n]*\n){16}", code)


def test_the_checks_see_what_they_look_for() -> None:
    assert ordinary_stores(find_backend("stp")["clear"])
    assert ordinary_stores(["str x1, [x0]", "stp x1, x2, [x0, #16]", "bl 0 <memset>"])
    assert not ordinary_stores(["stnp x1, x2, [x0]", "stp x29, x30, [sp, #-64]!"])
    vectors = ["stp q0, q1, [x0]", "movi v0.4s, #0x0", "ldr d1, [x2]"]
    assert vector_uses(vectors) == vectors
