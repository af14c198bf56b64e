# SPDX-License-Identifier: GPL-2.0-only
"""What the built module must look like, on both kernels.

QEMU emulates no IBT, so that no guest can show an indirect call into a function
of the kernel that has lost its landing pad: the objects are read instead.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from lablib import lock_kernel, series
from programs import run_program

from bulkmm.shell.progress import Progress
from lab.machine import build, kernels
from lab.machine.kernels import Kernel
from lab.paths import PROJECT

pytestmark = pytest.mark.vm

MODULE = PROJECT / "module"

# Calls through pointers, to functions of ours: all that any file may have but
# these, which never see an address of a function of the kernel's (the core
# calls backends, a tracepoint who listens).
CALLS_OWN = ("trace.o",)
# of the modules for tests, what handles such addresses
TESTS_TOO = ("lab/guest/module/vmap_symbols.o",)
INDIRECT = {
    "path_enable": 1,  # path->on_switch()
    "bmm_path_prepare": 1,  # path->prepare()
    "bmm_path_set_mode": 1,  # path->stop()
    "path_disable_work": 1,  # path->on_switch()
    "bmm_path_exit": 1,
    "bmm_hook_attach": 1,  # hook->probe()
}
THUNK = re.compile(r"__x86_indirect_thunk|\b(?:call|jmp)\s+\*")
# Of the kernel's headers: plain moves once the module is loaded.
PARAVIRT = "pv_ops"
COUNTER_INCREMENT = r"incq\s+%gs:"
SLEEPS = "(might|cond)_resched"
SIMD = re.compile(r"%[xyz]mm\d")


@pytest.fixture(scope="module", params=kernels.SERIES)
def modules(request: pytest.FixtureRequest) -> tuple[Kernel, Path]:
    """Return a kernel and the directory with the modules built for it."""
    with lock_kernel(request.param) as kernel:
        return kernel, build.ensure_products(kernel, [], Progress())


@pytest.mark.parametrize("name", series("7.3"))
def test_it_builds_without_a_warning(name: str) -> None:
    """Nor with one of sparse."""
    with lock_kernel(name) as kernel:
        build.ensure_products(kernel, [], Progress(), strict=True)


def disassemble_file(file: Path) -> dict[str, list[str]]:
    """Return the lines of each function, relocations among them."""
    result = run_program(["objdump", "-dr", file], check=True)
    functions: dict[str, list[str]] = {}
    name = ""
    for line in result.stdout.splitlines():
        if match := re.match(r"[0-9a-f]+ <(.+)>:", line):
            name = match[1]
        functions.setdefault(name, []).append(line)
    return functions


def through_pointers(lines: list[str]) -> int:
    """Count the indirect calls, those of paravirtual operations apart."""
    pairs = zip(lines, [*lines[1:], ""], strict=True)
    return sum(bool(THUNK.search(a)) and PARAVIRT not in b for a, b in pairs)


def address_files(top: Path) -> list[Path]:
    """Return the objects that bulkmm.ko is linked from, the core's apart."""
    linked = (top / "module/bulkmm.mod").read_text(encoding="utf-8").split()
    # 6.12 names them by where they were built
    names = (n.rpartition("module/")[2] for n in linked if "core/" not in n)
    objects = [Path("module", n) for n in names if Path(n).name not in CALLS_OWN]
    return [top / name for name in (*objects, *TESTS_TOO)]


def test_kernel_functions_are_never_called_through_a_pointer(
    modules: tuple[Kernel, Path],
) -> None:
    calls: Counter[str] = Counter()
    for file in address_files(modules[1]):
        for name, lines in disassemble_file(file).items():
            calls[name] += through_pointers(lines)
    assert {k: v for k, v in calls.items() if v} == INDIRECT


def test_registrations_are_not_edited() -> None:
    """Flags of an ftrace_ops belong to ftrace once it is registered.

    They are set before, and once after, where 6.12 has overwritten them.
    """
    fields = "flags|func|trampoline|direct_call"
    assignment = re.compile(rf"\bops(?:->|\.)(?:{fields})\s*[|&]?=")
    assignments = {
        file.name: len(assignment.findall(file.read_text(encoding="utf-8")))
        for file in (*MODULE.glob("*.[ch]"), *MODULE.glob("compat/*.h"))
    }
    assert {k: v for k, v in assignments.items() if v} == {"hook.c": 1, "compat.h": 1}


def test_a_call_is_counted_before_it_can_sleep(modules: tuple[Kernel, Path]) -> None:
    """Who sleeps before that may find the module gone: nobody waits for it."""
    handlers = 0
    for file in address_files(modules[1]):
        for name, lines in disassemble_file(file).items():
            counts = [
                i for i, line in enumerate(lines) if re.search(COUNTER_INCREMENT, line)
            ]
            if re.fullmatch(r"bmm_\w+_handler", name) and counts:
                handlers += 1
                assert not re.search(SLEEPS, "\n".join(lines[: counts[0]])), name
    assert handlers > 5


def test_trampolines_return_as_often_as_they_are_called(
    modules: tuple[Kernel, Path],
) -> None:
    """Dropping a return address misleads the CPU's return predictor."""
    functions = disassemble_file(modules[1] / "module/trampolines.o")
    entries = {n: "\n".join(ls) for n, ls in functions.items() if "trampoline" in n}
    assert len(entries) == 13
    for name, code in entries.items():
        assert "%rax,(%rsp)" in code, name
        assert not re.search(r"(?:add|pop|lea)\w* .*%rsp$", code, re.MULTILINE), name


def test_the_cpu_is_asked_only_at_load(modules: tuple[Kernel, Path]) -> None:
    """CPUID may be an exit or an exception: in no fault, NMI or allocation."""
    functions = disassemble_file(modules[1] / "module/bulkmm.ko")
    asks = {n for n, ls in functions.items() if any("\tcpuid" in x for x in ls)}
    assert asks == {"bmm_zero_init"}


def test_nothing_copies(modules: tuple[Kernel, Path]) -> None:
    """The core's copies are for the library; no review need look at them here."""
    functions = disassemble_file(modules[1] / "module/bulkmm.ko")
    copies = {n for n in functions if n.startswith(("copy", "move_"))}
    assert copies - set(disassemble_file(modules[1] / "module/copy.o")) == {"move_to"}


@pytest.mark.parametrize("product", build.PRODUCTS)
def test_general_registers_only(modules: tuple[Kernel, Path], product: str) -> None:
    functions = disassemble_file(modules[1] / product)
    assert functions.keys() >= {"init_module", "cleanup_module"}
    vector_users = [n for n, ls in functions.items() if any(SIMD.search(x) for x in ls)]
    assert vector_users == []


def test_modinfo_explains_every_parameter(modules: tuple[Kernel, Path]) -> None:
    kernel, where = modules
    info = kernel.root.run(
        ["modinfo", kernel.root.inner(where / "module/bulkmm.ko")], 30
    )
    parameters = re.findall(r"^parm: +(\w+):(.*)$", info, re.MULTILINE)
    _, _, page = (
        (PROJECT / "docs/abi.md").read_text().partition("\n## Module parameters")
    )
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted(name for name, _ in parameters)
    for name, text in parameters:
        assert "(default: " in text, name
    assert re.search(r"^license: +GPL$", info, re.MULTILINE)
    assert re.search(r"^vermagic: +" + re.escape(kernel.release), info, re.MULTILINE)
