# SPDX-License-Identifier: GPL-2.0-only
"""The input of the harness: images, addresses, types.

A directory holds the images of kernel and module and a list, ``names``: symbols,
and facts, which are numbers.
"""

import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from elftools.elf.elffile import ELFFile

from bench.kernel import cpu, module, patch, symbols, vmlinux
from bench.kernel.vmlinux import Image
from bulkmm.control import requirements
from bulkmm.control.btf import Types
from bulkmm.results import submit
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.paths import make_scratch

HARNESS = Path(__file__).parents[2] / "build" / "native" / "bmm-native"
STUB = "stub_"  # the harness's replacement of a kernel function
ALIGN = 2 << 20

WANTED = ".wanted"  # its section: what it is to be told of the kernel's types


@dataclass(frozen=True)
class Prepared:
    """A directory with all that the harness needs."""

    path: Path
    release: str
    mitigations: str
    program: str  # the harness, whose functions the module calls by address
    against: "Prepared | None" = None  # a second kernel in the same process

    def command(self, words: Iterable[object]) -> list[object]:
        """Return the harness's command line."""
        options = [f"--against={self.against.path}"] if self.against else []
        return [self.program, self.path, *words, *options]


def find_harness() -> Path:
    """Return the path of the harness."""
    if platform.machine() != "x86_64":
        raise BulkmmError("a kernel's own code runs on x86-64 only, so far")
    if not HARNESS.is_file():
        raise BulkmmError("the native harness was not found: run make build")
    return HARNESS


def read_kernel(kernel: Path, map_base: int = vmlinux.MAP_BASE) -> tuple[Image, Types]:
    """Return a kernel's image and its types."""
    image = vmlinux.read_image(kernel, map_base)
    if not (data := image.read(*image.section(".BTF"))):
        raise BulkmmError(f"{kernel}: the kernel has no BTF")
    return image, Types(data)


@contextmanager
def prepare_kernel(
    kernel: Path,
    module_file: Path | None,
    mitigations: str,
    progress: Progress,
    map_base: int = vmlinux.MAP_BASE,
) -> Iterator[Prepared]:
    """Prepare a kernel and, if given, the module built for it."""
    executable = find_harness()
    image, types = read_kernel(kernel, map_base)
    if not (table := requirements.read_table("x86_64")).encloses(image.release):
        raise BulkmmError(
            f"{kernel}: Linux {image.release} is older or newer than all that bulkmm "
            f"was tested on: {', '.join(table.tested)}"
        )
    kallsyms = symbols.find_symbols(image, progress)
    processor = cpu.read_cpu()
    thunk = cpu.return_thunk(mitigations, processor)
    plan = _plan(image, types, kallsyms, processor, thunk)
    # open until the end: it may be built again meanwhile, with functions elsewhere
    with executable.open("rb") as file, make_scratch("bulkmm-native-") as where:
        linked = _module(module_file, image, kallsyms, file) if module_file else None
        _patch(image, kallsyms, plan, linked)
        _write(where, image, linked, kallsyms, types)
        program = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        yield Prepared(where, image.release, thunk or submit.PLAIN_RETURNS, program)


@contextmanager
def prepare_kernels(
    kernel: Path,
    module_file: Path | None,
    against: Path | None,
    mitigations: str,
    progress: Progress,
) -> Iterator[Prepared]:
    """Prepare a kernel and, if given, the one to compare it with."""
    with prepare_kernel(kernel, module_file, mitigations, progress) as ready:
        if not against:
            yield ready
            return
        where = vmlinux.SECOND_MAP_BASE
        with prepare_kernel(against, None, mitigations, progress, where) as second:
            yield replace(ready, against=second)


def _plan(
    image: Image,
    types: Types,
    kallsyms: symbols.Symbols,
    processor: cpu.Cpu,
    thunk: str | None,
) -> patch.Plan:
    forms = {form.size: form for form in (patch.ALT, patch.ALT_SHORT)}
    if not (form := forms.get(types.size("alt_instr"))):
        raise BulkmmError("the kernel's alternatives have an unknown form")
    words = kallsyms.size("x86_cap_flags") // 8 // 32
    features = cpu.number_features(image, kallsyms["x86_cap_flags"], words, processor)
    features.add(patch.find_always(image, form))
    has = image.at(
        kallsyms["boot_cpu_data"] + types.offset_of("cpuinfo_x86.x86_capability"),
        4 * words,
    )
    flags = np.zeros(32 * words, np.uint8)
    flags[sorted(features)] = 1
    has[:] = np.packbits(flags, bitorder="little")
    returns = kallsyms[thunk] if thunk else None
    if ".parainstructions" in image.sections:  # 6.1
        pv_ops, nop = kallsyms["pv_ops"], kallsyms["_paravirt_nop"]
    else:
        pv_ops, nop = 0, kallsyms.all.get("nop_func", 0)
    thunks = kallsyms.all.get("__x86_indirect_thunk_array", 0)  # of retpolines, if any
    return patch.Plan(features, thunks, image, returns, form, pv_ops, nop)


def _module(
    module_file: Path, image: Image, kallsyms: symbols.Symbols, program: BinaryIO
) -> module.Module:
    base = -(-(image.base + len(image.data)) // ALIGN) * ALIGN
    stubs = {
        symbol.name.removeprefix(STUB): symbol["st_value"]
        for symbol in module.symbols_of(ELFFile(program))
        if symbol.name.startswith(STUB)
    }
    return module.load_module(module_file, image.release, base, kallsyms.all | stubs)


def _patch(
    image: Image,
    kallsyms: symbols.Symbols,
    plan: patch.Plan,
    linked: module.Module | None,
) -> None:
    patch.apply_patches(image, plan)
    start, stop = kallsyms["__start_mcount_loc"], kallsyms["__stop_mcount_loc"]
    sites = image.words(start, stop - start, "<Q")
    end = image.base + len(image.data)
    patch.patch_entries(image, [site for site in sites if image.base <= site < end])
    if linked:
        patch.apply_patches(linked, plan)
        section = linked.section("__mcount_loc")
        patch.patch_entries(linked, linked.words(*section, "<Q"))


def _write(
    where: Path,
    image: Image,
    linked: module.Module | None,
    kallsyms: symbols.Symbols,
    types: Types,
) -> None:
    image.data.tofile(where / "kernel")
    facts = {
        "kernel": image.base,
        "kernel size": len(image.data),
        "gs": image.gs,
        "module": 0,
        "module size": 0,
        **describe_layout(types),
    }
    tables = {"f": facts, "k": kallsyms.all}
    if linked:
        linked.data.tofile(where / "module")
        facts |= {"module": linked.base, "module size": len(linked.data)}
        tables["m"] = linked.symbols
    lines = (
        f"{value:x} {of} {name}\n"
        for of, values in tables.items()
        for name, value in values.items()
    )
    (where / "names").write_text("".join(lines), encoding="ascii")


def describe_layout(types: Types) -> dict[str, int]:
    """Return what the harness wants to know of a kernel, by its BTF."""
    read = {
        "bit": types.bit_of,
        "offset": types.offset_of,
        "size": types.size,
        "enum": types.enumerator_value,
    }
    with find_harness().open("rb") as file:
        section = ELFFile(file).get_section_by_name(WANTED)
        data = section.data() if section else b""
    wanted = (one.split() for one in sorted({*data.decode().split("\0")}) if one)
    return {f"{what} {of}": read[what](of) for what, of in wanted}
