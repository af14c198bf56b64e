# SPDX-License-Identifier: GPL-2.0-only
"""Options that no kernel at hand has: objects are compiled for them, and read."""

import re
import shutil
import tempfile
from pathlib import Path

import pytest
from lablib import lock_kernel
from programs import run_program

from lab.machine import arch, build
from lab.machine.arch import Arch

pytestmark = pytest.mark.vm

# What CONFIG_ARM64_16K_PAGES changes, over the configuration of 4 KiB.
PAGES_OF_16K = {
    "CONFIG_ARM64_4K_PAGES": "",
    "CONFIG_ARM64_16K_PAGES": "1",
    "CONFIG_PAGE_SHIFT": "14",
    "CONFIG_ARM64_CONT_PTE_SHIFT": "7",
    "CONFIG_ARM64_CONT_PMD_SHIFT": "5",
}
# What switches SPARSEMEM_VMEMMAP off: 5-level page tables select it.
IN_PIECES = {
    "CONFIG_SPARSEMEM_VMEMMAP": "",
    "CONFIG_X86_5LEVEL": "",
    "CONFIG_PGTABLE_LEVELS": "4",
}
SOURCES = ("memmap.c", "vmap*.c", "clear_common.c")
OBJECTS = sorted(
    file.with_suffix(".o").name
    for pattern in SOURCES
    for file in (build.PROJECT / "module").glob(pattern)
)


def compile_objects(
    series: str,
    machine: Arch,
    options: dict[str, str],
    objects: list[str],
    how: tuple[str, ...] = ("-d",),
) -> str:
    """Return the code of objects compiled with options changed."""
    with lock_kernel(series, machine) as kernel:
        where = kernel.root
        part = Path(tempfile.mkdtemp(dir=where.var))
        try:
            for file in build.list_sources():
                to = part / file.relative_to(build.PROJECT)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)
            lines = [
                f"#undef {name}\n" + (f"#define {name} {value}\n" if value else "")
                for name, value in options.items()
            ]
            (part / "options.h").write_text("".join(lines))
            flags = f"KCFLAGS=-include {where.inner(part / 'options.h')}"
            module = f"M={where.inner(part / 'module')}"
            where.run(["make", "-C", kernel.headers, module, flags, *objects], 300)
            tool = f"{machine.triplet}-objdump"
            files = [str(part / "module" / name) for name in objects]
            result = run_program([tool, *how, *files], check=True)
            return result.stdout
        finally:
            shutil.rmtree(part)


def find_function(code: str, name: str) -> str:
    match = re.search(
        rf"^[0-9a-f]+ <{name}>:\n(.*?)\n\n", code, re.DOTALL | re.MULTILINE
    )
    assert match, name
    return match[1]


def test_pages_of_16_kib_build_and_keep_2_mib_cached() -> None:
    code = compile_objects("7.3", arch.ARM64, PAGES_OF_16K, OBJECTS)
    assert all(name in code for name in OBJECTS)
    assert "#0x200000 " in find_function(code, "bmm_zero_init")


def test_struct_pages_in_pieces_are_refused() -> None:
    """Without SPARSEMEM_VMEMMAP, PFNs may not follow from struct page addresses."""
    table = ("-t", "-s", "-j", ".rodata")
    dump = compile_objects("6.12", arch.X86_64, IN_PIECES, ["path_prepare.o"], table)
    place = re.search(r"^(\w+) .* \.rodata\s(\w+) options$", dump, re.MULTILINE)
    assert place
    begin, size = (int(number, 16) for number in place.groups())
    lines = re.findall(r"^ [0-9a-f]+ ((?:[0-9a-f]+ ){1,4})", dump, re.MULTILINE)
    data = bytes.fromhex("".join(lines))[begin : begin + size]
    lacking = data[16::24]  # struct { const char *path, *set; bool lacking; }
    assert lacking.count(1) == 2  # of memmap and vmap
