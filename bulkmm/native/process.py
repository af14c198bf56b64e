# SPDX-License-Identifier: GPL-2.0-only
"""The input of the harness: images, addresses, types.

A directory holds the images of kernel and module and two lists: ``facts``
(numbers by name) and ``symbols``.
"""

import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

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

OFFSETS = (
    *("zone.zone_pgdat", "zone.node"),
    *("zone.zone_start_pfn", "zone.spanned_pages", "zone.contiguous"),
    *("pglist_data.node_zones", "pglist_data.node_id"),
    *("dev_pagemap.type", "dev_pagemap.vmemmap_shift", "dev_pagemap.flags"),
    *("dev_pagemap.altmap", "dev_pagemap.nr_range"),
    *("vmem_altmap.base_pfn", "vmem_altmap.reserve", "vmem_altmap.free"),
    *("mem_section.section_mem_map", "mem_section.usage"),
    "mem_section_usage.subsection_map",
    *("mm_struct.pgd", "vm_struct.flags"),
    *("kprobe.symbol_name", "kprobe.addr", "kprobe.offset"),
    "bug_entry.flags",
    *("static_call_key.func", "work_struct.func"),
    *("task_struct.flags", "pt_regs.orig_ax"),
    "page._refcount",
)
SIZES = (
    *("page", "zone", "pglist_data", "dev_pagemap", "pt_regs"),
    *("mem_section", "mem_section_usage", "vm_struct", "bug_entry"),
    "kobj_attribute",
)
ENUMERATORS = (
    *("ZONE_DEVICE", "MEMORY_DEVICE_FS_DAX", "MEMORY_DEVICE_GENERIC"),
    "ZONE_MOVABLE",
    *("MEMORY_DEVICE_PRIVATE", "MEMORY_DEVICE_COHERENT"),
    "MEMORY_DEVICE_PCI_P2PDMA",
    *("SECTION_MARKED_PRESENT_BIT", "SECTION_HAS_MEM_MAP_BIT"),
    *("SECTION_IS_ONLINE_BIT", "SECTION_IS_EARLY_BIT"),
)
# preemption of a kernel that decides at boot: the first of these that it has
PREEMPTION = ("preempt_dynamic_voluntary", "preempt_dynamic_lazy")


@dataclass(frozen=True)
class Prepared:
    """A directory with all that the harness needs."""

    path: Path
    release: str
    mitigations: str
    version: tuple[int, int]  # of the harness, whose functions the module calls
    against: "Prepared | None" = None  # a second kernel in the same process

    def command(self, words: Iterable[object]) -> list[object]:
        """Return the harness's command line."""
        if self.version != version():
            raise BulkmmError("the native harness was built anew meanwhile: try again")
        other = []
        if self.against:
            other = ["--stock", f"--against={self.against.path}"]
        return [harness(), self.path, *words, *other]


def harness() -> Path:
    """Return the path of the harness."""
    if platform.machine() != "x86_64":
        raise BulkmmError("a kernel's own code runs on x86-64 only, so far")
    if not BUILT.is_file():
        raise BulkmmError("the native harness was not found: run make build")
    return BUILT


def version() -> tuple[int, int]:
    """Return what differs when the harness is built anew: functions may move."""
    held = harness().stat()
    return held.st_ino, held.st_mtime_ns


def read(kernel: Path, mapped: int = vmlinux.MAPPED) -> tuple[Image, Types]:
    """Return a kernel's image and its types."""
    image = vmlinux.read(kernel, mapped)
    start, length = image.sections.get(".BTF", (0, 0))
    if not length:
        raise BulkmmError(f"{kernel}: the kernel has no BTF")
    return image, Types(image.at(start, length).tobytes())


@contextmanager
def prepared(
    kernel: Path,
    built: Path | None,
    mitigations: str,
    progress: Progress,
    mapped: int = vmlinux.MAPPED,
) -> Iterator[Prepared]:
    """Prepare a kernel and, if given, the module built for it."""
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
    of_harness = version()
    plan = _plan(image, types, known, processor, thunk)
    linked = _module(built, image, known) if built else None
    _patch(image, known, plan, linked)
    with scratch("bulkmm-native-") as where:
        _write(where, image, linked, known, types)
        yield Prepared(where, image.release, thunk or "plain returns", of_harness)


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
    thunks = known["__x86_indirect_thunk_array"]
    return patch.Plan(features, thunks, image, returns, form, paravirt)


def _module(built: Path, image: Image, known: symbols.Symbols) -> module.Module:
    base = -(-(image.base + len(image.data)) // ALIGN) * ALIGN
    return module.load(built, image.release, base, known.all | _stubs())


def _stubs() -> dict[str, int]:
    with harness().open("rb") as file:
        return {
            symbol.name.removeprefix(STUB): symbol["st_value"]
            for symbol in module.symbols_of(ELFFile(file))
            if symbol.name.startswith(STUB)
        }


def _patch(
    image: Image,
    known: symbols.Symbols,
    plan: patch.Plan,
    linked: module.Module | None,
) -> None:
    patch.apply(image, plan)
    start, stop = known["__start_mcount_loc"], known["__stop_mcount_loc"]
    listed = np.frombuffer(image.at(start, stop - start).tobytes(), "<u8")
    end = image.base + len(image.data)
    within = [int(one) for one in listed if image.base <= one < end]
    patch.entries(image, within)
    if linked:
        patch.apply(linked, plan)
        patch.entries(linked, linked.words("__mcount_loc"))


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
        "preemption": next(
            (types.enumerators[one] for one in PREEMPTION if one in types.enumerators),
            0,  # nothing to decide: 6.1-rt
        ),
    }
    listed = [f"{address:x} k {name}" for name, address in known.all.items()]
    if linked:
        linked.data.tofile(where / "module")
        facts |= {"module": linked.base, "module size": len(linked.data)}
        listed += [f"{address:x} m {name}" for name, address in linked.symbols.items()]
    text = "".join(f"{value:x} {name}\n" for name, value in facts.items())
    (where / "facts").write_text(text, encoding="ascii")
    (where / "symbols").write_text("\n".join(listed) + "\n", encoding="ascii")


def layout(types: Types) -> dict[str, int]:
    """Return what harness and module find in a kernel by its BTF."""
    return {
        **{f"offset {one}": types.offset(one) for one in OFFSETS},
        **{f"size {one}": types.size(one) for one in SIZES},
        **{f"enum {one}": _enumerator(types, one) for one in ENUMERATORS},
    }


def _enumerator(types: Types, name: str) -> int:
    if name not in types.enumerators:
        raise BulkmmError(f"the kernel's BTF has no {name}")
    return types.enumerators[name]
