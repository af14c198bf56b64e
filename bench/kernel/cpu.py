# SPDX-License-Identifier: GPL-2.0-only
"""The CPU's features and its kernel's mitigations, in a kernel's terms."""

from dataclasses import dataclass

from bench.kernel.vmlinux import Image
from bulkmm.results import host

# Not allowed in a process (CLAC), not true of its page tables (5 levels), or never
# found by a stock kernel on hardware.
MASKED_FLAGS = {"smap", "la57", "xenpv"}
SRSO = f"{host.CPU}/vulnerabilities/spec_rstack_overflow"
ZEN3 = 0x19  # the first family that trains returns through an alias


@dataclass(frozen=True)
class Cpu:
    """The CPU at hand."""

    family: int
    flags: frozenset[str]
    safe_ret: bool  # its kernel mitigates speculative return stack overflow


def read_cpu() -> Cpu:
    """Return this CPU, from /proc/cpuinfo and sysfs."""
    info = host.read_cpuinfo()
    flags = frozenset(info["flags"].split()) - MASKED_FLAGS
    safe_ret = "Safe RET" in (host.read(SRSO) or "")
    return Cpu(int(info["cpu family"]), flags, safe_ret)


def number_features(image: Image, names: int, words: int, cpu: Cpu) -> set[int]:
    """Return the kernel's numbers of the CPU's features, by their names.

    ``names`` is the address of x86_cap_flags, of ``words`` times 32 strings.
    """
    numbers = set()
    for number in range(words * 32):
        name = image.word(names + 8 * number, "<Q")
        if name and image.text(name) in cpu.flags:
            numbers.add(number)
    return numbers


def return_thunk(mitigations: str, cpu: Cpu) -> str | None:
    """Return the return thunk's symbol, or None for a plain RET."""
    if mitigations == "off" or (mitigations == "host" and not cpu.safe_ret):
        return None
    return "srso_alias_return_thunk" if cpu.family >= ZEN3 else "srso_return_thunk"
