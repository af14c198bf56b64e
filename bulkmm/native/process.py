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

from bulkmm.control import needs
from bulkmm.errors import BulkmmError
from bulkmm.lab.paths import scratch
from bulkmm.lab.progress import Progress
from bulkmm.native import cpu, module, patch, symbols, vmlinux
from bulkmm.native.btf import Types
from bulkmm.native.vmlinux import Image

BUILT = Path(__file__).parents[2] / "build" / "native" / "bmm-native"
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
        other = []
        if self.against:
            other = ["--stock", f"--against={self.against.path}"]
        return [self.program, self.path, *words, *other]


def harness() -> Path:
    """Return the path of the harness."""
    if platform.machine() != "x86_64":
        raise BulkmmError("a kernel's own code runs on x86-64 only, so far")
    if not BUILT.is_file():
        raise BulkmmError("the native harness was not found: run make build")
    return BUILT


def read(kernel: Path, mapped: int = vmlinux.MAPPED) -> tuple[Image, Types]:
    """Return a kernel's image and its types."""
    image = vmlinux.read(kernel, mapped)
    if not (data := image.read(*image.section(".BTF"))):
        raise BulkmmError(f"{kernel}: the kernel has no BTF")
    return image, Types(data)


@contextmanager
def prepared(
    kernel: Path,
    built: Path | None,
    mitigations: str,
    progress: Progress,
    mapped: int = vmlinux.MAPPED,
) -> Iterator[Prepared]:
    """Prepare a kernel and, if given, the module built for it."""
    found = harness()
    image, types = read(kernel, mapped)
    if not (table := needs.read("x86_64")).supports(image.release):
        oldest, newest = table.kernels
        raise BulkmmError(
            f"{kernel}: Linux {image.release} is outside of what bulkmm is for, "
            f"{oldest} to {newest}"
        )
    known = symbols.find(image, progress)
    processor = cpu.here()
    thunk = cpu.return_thunk(mitigations, processor)
    plan = _plan(image, types, known, processor, thunk)
    # open until the end: it may be built again meanwhile, with functions elsewhere
    with found.open("rb") as held, scratch("bulkmm-native-") as where:
        linked = _module(built, image, known, held) if built else None
        _patch(image, known, plan, linked)
        _write(where, image, linked, known, types)
        program = f"/proc/{os.getpid()}/fd/{held.fileno()}"
        yield Prepared(where, image.release, thunk or "plain returns", program)


@contextmanager
def two(
    kernel: Path,
    built: Path | None,
    against: Path | None,
    mitigations: str,
    progress: Progress,
) -> Iterator[Prepared]:
    """Prepare a kernel and, if given, the one to compare it with."""
    with prepared(kernel, built, mitigations, progress) as ready:
        if not against:
            yield ready
            return
        where = vmlinux.MAPPED_SECOND
        with prepared(against, None, mitigations, progress, where) as other:
            yield replace(ready, against=other)


def _plan(
    image: Image,
    types: Types,
    known: symbols.Symbols,
    processor: cpu.Cpu,
    thunk: str | None,
) -> patch.Plan:
    forms = {form.size: form for form in (patch.ALT, patch.ALT_SHORT)}
    if not (form := forms.get(types.size("alt_instr"))):
        raise BulkmmError("the kernel's alternatives have an unknown form")
    words = known.size("x86_cap_flags") // 8 // 32
    features = cpu.features(image, known["x86_cap_flags"], words, processor)
    features.add(patch.always(image, form))
    has = image.at(
        known["boot_cpu_data"] + types.offset("cpuinfo_x86.x86_capability"), 4 * words
    )
    flags = np.zeros(32 * words, np.uint8)
    flags[sorted(features)] = 1
    has[:] = np.packbits(flags, bitorder="little")
    returns = known[thunk] if thunk else None
    paravirt = 0, 0
    if ".parainstructions" in image.sections:
        paravirt = known["pv_ops"], known["_paravirt_nop"]
    thunks = known.all.get("__x86_indirect_thunk_array", 0)  # of retpolines, if any
    return patch.Plan(features, thunks, image, returns, form, paravirt)


def _module(
    built: Path, image: Image, known: symbols.Symbols, program: BinaryIO
) -> module.Module:
    base = -(-(image.base + len(image.data)) // ALIGN) * ALIGN
    stubs = {
        symbol.name.removeprefix(STUB): symbol["st_value"]
        for symbol in module.symbols_of(ELFFile(program))
        if symbol.name.startswith(STUB)
    }
    return module.load(built, image.release, base, known.all | stubs)


def _patch(
    image: Image,
    known: symbols.Symbols,
    plan: patch.Plan,
    linked: module.Module | None,
) -> None:
    patch.apply(image, plan)
    start, stop = known["__start_mcount_loc"], known["__stop_mcount_loc"]
    listed = image.words(start, stop - start, "<Q")
    end = image.base + len(image.data)
    patch.entries(image, [one for one in listed if image.base <= one < end])
    if linked:
        patch.apply(linked, plan)
        own = linked.section("__mcount_loc")
        patch.entries(linked, linked.words(*own, "<Q"))


def _write(
    where: Path,
    image: Image,
    linked: module.Module | None,
    known: symbols.Symbols,
    types: Types,
) -> None:
    image.data.tofile(where / "kernel")
    facts = {
        "kernel": image.base,
        "kernel size": len(image.data),
        "gs": image.gs,
        "module": 0,
        "module size": 0,
        **layout(types),
    }
    named = {"f": facts, "k": known.all}
    if linked:
        linked.data.tofile(where / "module")
        facts |= {"module": linked.base, "module size": len(linked.data)}
        named["m"] = linked.symbols
    lines = (
        f"{value:x} {of} {name}\n"
        for of, values in named.items()
        for name, value in values.items()
    )
    (where / "names").write_text("".join(lines), encoding="ascii")


def layout(types: Types) -> dict[str, int]:
    """Return what the harness wants to know of a kernel, by its BTF."""
    read = {"offset": types.offset, "size": types.size, "enum": types.enumerator}
    with harness().open("rb") as file:
        section = ELFFile(file).get_section_by_name(WANTED)
        data = section.data() if section else b""
    wanted = (one.split() for one in sorted({*data.decode().split("\0")}) if one)
    return {f"{what} {of}": read[what](of) for what, of in wanted}
