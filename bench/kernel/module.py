# SPDX-License-Identifier: GPL-2.0-only
"""The built module, laid out and relocated against a kernel in the process."""

import io
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.descriptions import describe_reloc_type
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Symbol, SymbolTableSection

from bench.kernel import vmlinux
from bulkmm.shell.errors import BulkmmError

ALLOCATED = 2  # SHF_ALLOC
# relocation type: format of the value, and whether it is PC-relative
FORMS = {
    "R_X86_64_64": ("<Q", False),
    "R_X86_64_PC64": ("<Q", True),
    "R_X86_64_32": ("<I", False),
    "R_X86_64_32S": ("<I", False),
    "R_X86_64_PC32": ("<I", True),
    "R_X86_64_PLT32": ("<I", True),
}


@dataclass
class Module(vmlinux.Placed):
    """A module."""

    symbols: dict[str, int] = field(default_factory=dict)


def load_module(
    path: Path, release: str, base: int, addresses: dict[str, int]
) -> Module:
    """Return the module at ``base``, from a file that may be compressed.

    ``addresses``: of all that it may use.
    """
    try:
        content = path.read_bytes()
        elf = ELFFile(io.BytesIO(vmlinux.unpack_data(path, content) or content))
        if elf["e_machine"] != "EM_X86_64" or elf["e_type"] != "ET_REL":
            raise BulkmmError(f"{path}: not a module for x86-64")
        _check_release(path, elf, release)
        return _linked(path, elf, base, addresses)
    except OSError as error:
        raise BulkmmError(f"{path}: {error.strerror}") from error
    except (ELFError, struct.error, KeyError, AttributeError) as error:
        raise BulkmmError(f"{path}: not a module: {error}") from error


def _check_release(path: Path, elf: ELFFile, release: str) -> None:
    info = elf.get_section_by_name(".modinfo")
    match = re.search(rb"(?:^|\0)vermagic=(\S+)", info.data() if info else b"")
    if not match:
        raise BulkmmError(f"{path}: not a module: it names no kernel")
    if (vermagic := match[1].decode()) != release:
        raise BulkmmError(f"{path}: built for {vermagic}, the kernel is {release}")


def _linked(path: Path, elf: ELFFile, base: int, addresses: dict[str, int]) -> Module:
    module = Module("the module", base, np.zeros(0, np.uint8), {})
    placed: dict[int, int] = {}
    end = base
    for index, section in enumerate(elf.iter_sections()):
        if not section["sh_flags"] & ALLOCATED:
            continue
        align = max(section["sh_addralign"], 1)
        placed[index] = end = -(-end // align) * align
        module.sections[section.name] = end, section["sh_size"]
        end += section["sh_size"]
    module.data = np.zeros(end - base, np.uint8)
    for index, address in placed.items():
        section = elf.get_section(index)
        if section["sh_type"] != "SHT_NOBITS":
            module.write(address, section.data())
    symbols = symbols_of(elf)
    values = _resolve(path, symbols, placed, addresses)
    for symbol, value in zip(symbols, values, strict=True):
        if symbol.name and symbol["st_shndx"] in placed:
            module.symbols.setdefault(symbol.name, value)
    for section in elf.iter_sections():
        if isinstance(section, RelocationSection) and section["sh_info"] in placed:
            _relocate(path, module, placed[section["sh_info"]], section, values)
    return module


def symbols_of(elf: ELFFile) -> list[Symbol]:
    """Return the symbols of a file in order; empty if it has none."""
    table = elf.get_section_by_name(".symtab")
    return list(table.iter_symbols()) if isinstance(table, SymbolTableSection) else []


def _resolve(
    path: Path, symbols: list[Symbol], placed: dict[int, int], addresses: dict[str, int]
) -> list[int]:
    values, missing = [], []
    for symbol in symbols:
        section = symbol["st_shndx"]
        value = symbol["st_value"]
        if section == "SHN_UNDEF" and symbol.name:
            if symbol.name not in addresses and symbol["st_info"]["bind"] != "STB_WEAK":
                missing.append(symbol.name)
            value = addresses.get(symbol.name, 0)
        elif section != "SHN_ABS":
            value += placed.get(section, 0)
        values.append(value)
    if missing:
        raise BulkmmError(f"{path}: the kernel has no {', '.join(missing)}")
    return values


def _relocate(
    path: Path,
    module: Module,
    start: int,
    section: RelocationSection,
    values: list[int],
) -> None:
    for relocation in section.iter_relocations():
        kind = describe_reloc_type(relocation["r_info_type"], section.elffile)
        if kind not in FORMS:
            raise BulkmmError(f"{path}: unknown relocation {kind}")
        form, distance = FORMS[kind]
        at = start + relocation["r_offset"]
        value = (
            values[relocation["r_info_sym"]]
            + relocation["r_addend"]
            - (at if distance else 0)
        )
        code = struct.pack(form, value % 2 ** (8 * struct.calcsize(form)))
        module.write(at, code)
