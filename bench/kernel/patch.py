# SPDX-License-Identifier: GPL-2.0-only
"""What a kernel does to its own text at boot, and to a module's at load.

Alternatives for the CPU, returns, indirect calls, NOPs at function entries. Jump
labels and static calls stay as built.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bench.kernel.vmlinux import Placed
from bulkmm.shell.errors import BulkmmError

ALT = struct.Struct("<iiHHBB")  # struct alt_instr
ALT_SHORT = struct.Struct("<iiHBB")  # of 6.1: one flag, in its number of a feature
SHORT_NOT = 1 << 15
ALT_NOT, ALT_DIRECT = 1, 2  # its flags
ALWAYS = 3 * 32 + 21  # X86_FEATURE_ALWAYS of 6.1
PARAVIRT = struct.Struct("<QBB6x")  # struct paravirt_patch_site of 6.1
CALL, JUMP, RET, INT3 = 0xE8, 0xE9, 0xC3, 0xCC
NEAR = 5  # bytes of a call or jump with a 32-bit displacement
INDIRECT_CALL = b"\xff\x15"  # call *distance(%rip)
CS_PREFIX = 0x2E
NOPS = [
    b"",
    b"\x90",
    b"\x66\x90",
    b"\x0f\x1f\x00",
    b"\x0f\x1f\x40\x00",
    b"\x0f\x1f\x44\x00\x00",
    b"\x66\x0f\x1f\x44\x00\x00",
    b"\x0f\x1f\x80\x00\x00\x00\x00",
    b"\x0f\x1f\x84\x00\x00\x00\x00\x00",
]
THUNK = 32  # bytes of each in __x86_indirect_thunk_array, one per register


@dataclass(frozen=True)
class Plan:
    """What patching depends on besides the text."""

    features: set[int]
    thunks: int  # address of __x86_indirect_thunk_array
    pointer: Placed  # the text that holds function pointers: the kernel
    returns: int | None  # address of the return thunk; None: plain RET
    alt: struct.Struct = ALT
    pv_ops: int = 0  # of 6.1: its address
    nop: int = 0  # address of the function that pv_ops has where nothing is to be done


def make_nops(count: int) -> bytes:
    """Return NOPs of a total length, each as long as possible."""
    whole, rest = divmod(count, 8)
    return NOPS[8] * whole + NOPS[rest]


def apply_patches(text: Placed, plan: Plan) -> None:
    """Apply all patches, in the kernel's order."""
    if plan.pv_ops:
        _paravirt(text, plan)
    for site in _sites(text, "retpoline"):
        _retpoline(text, site, plan)
    for site in _sites(text, "return"):
        _return(text, site, plan)
    for alternative in _alternatives(text, plan.alt):
        _alternative(text, plan, alternative)


def _sites(text: Placed, kind: str) -> Iterator[int]:
    """Return the addresses in a list of self-relative offsets."""
    address, size = text.section(f".{kind}_sites")
    for index, distance in enumerate(text.words(address, size, "<i")):
        yield address + 4 * index + distance


def _distance(text: Placed, site: int, at: int = 1) -> int:
    """Return the target of a near call or jump whose displacement is at ``at``."""
    return site + at + 4 + text.word(site + at, "<i")


def _return(text: Placed, site: int, plan: Plan) -> None:
    if text.at(site, 1)[0] != JUMP:
        return
    if plan.returns is None:
        code = bytes([RET, *[INT3] * (NEAR - 1)])
    else:
        code = struct.pack("<Bi", JUMP, plan.returns - site - NEAR)
    text.write(site, code)


def _retpoline(text: Placed, site: int, plan: Plan) -> None:
    """Replace a thunk call by an indirect call or jump through the register."""
    prefixed = int(text.at(site, 1)[0] == CS_PREFIX)
    opcode = int(text.at(site + prefixed, 1)[0])
    if opcode not in (CALL, JUMP):
        return  # a conditional jump keeps its thunk
    register, rest = divmod(_distance(text, site, prefixed + 1) - plan.thunks, THUNK)
    if rest or register not in range(16):
        return
    code = b"\x41" if register > 7 else b""  # noqa: PLR2004 - REX.B
    code += bytes([0xFF, (0xD0 if opcode == CALL else 0xE0) + register % 8])
    text.write(site, code + make_nops(prefixed + NEAR - len(code)))


def _paravirt(text: Placed, plan: Plan) -> None:
    """Replace calls by way of pv_ops by direct ones."""
    table = text.read(*text.section(".parainstructions"))
    for site, kind, length in PARAVIRT.iter_unpack(table):
        target = plan.pointer.word(plan.pv_ops + 8 * kind, "<Q")
        code = _call(site, target, plan)
        text.write(site, code + make_nops(length - len(code)))


def _alternatives(text: Placed, form: struct.Struct) -> Iterator[tuple[int, ...]]:
    """Yield address, replacement's address, feature, flags, both lengths."""
    address, size = text.section(".altinstructions")
    for index, entry in enumerate(form.iter_unpack(text.read(address, size))):
        at = address + index * form.size
        first, second, feature, *rest = entry
        if form is ALT_SHORT:
            rest.insert(0, ALT_NOT if feature & SHORT_NOT else 0)
            feature &= ~SHORT_NOT
        yield at + first, at + 4 + second, feature, *rest


def _alternative(text: Placed, plan: Plan, alternative: tuple[int, ...]) -> None:
    site, source, feature, flags, length, new = alternative
    wanted = (feature in plan.features) != bool(flags & ALT_NOT)
    if not wanted or new > length:
        return
    if flags & ALT_DIRECT:
        target = _target(text, site, plan)
        if not target:
            return
        code = _call(site, target, plan)
    else:
        code = text.read(source, new)
        if new >= NEAR and code[0] in (CALL, JUMP):
            code = _near(code[0], site, _distance(text, source)) + code[NEAR:]
    # none at all, where static_cpu_has() goes on
    text.write(site, code + make_nops(length - len(code)))


def _near(opcode: int, site: int, target: int) -> bytes:
    return struct.pack("<Bi", opcode, target - site - NEAR)


def _call(site: int, target: int, plan: Plan) -> bytes:
    """Return a direct call, or nothing if it would do nothing."""
    return b"" if target == plan.nop else _near(CALL, site, target)


def _target(text: Placed, site: int, plan: Plan) -> int:
    """Return the address that an indirect call has, if any."""
    if text.read(site, 2) != INDIRECT_CALL:
        return 0
    return plan.pointer.word(_distance(text, site, 2), "<Q")


def patch_entries(text: Placed, sites: list[int]) -> None:
    """Turn the calls at function entries into NOPs, as ftrace does."""
    for site in sites:
        if text.at(site, 1)[0] == CALL:
            text.write(site, make_nops(NEAR))


def find_always(text: Placed, form: struct.Struct) -> int:
    """Return the feature that all CPUs have; direct calls depend on it."""
    if form is ALT_SHORT:
        return ALWAYS
    for _, _, feature, flags, _, _ in _alternatives(text, form):
        if flags & ALT_DIRECT and not flags & ALT_NOT:
            return feature
    raise BulkmmError("the kernel's alternatives have an unknown form")
