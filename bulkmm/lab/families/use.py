# SPDX-License-Identifier: GPL-2.0-only
"""clear-populate: clearing by the page's future user."""

from dataclasses import dataclass
from typing import Any

from bulkmm.control.needs import at_least
from bulkmm.lab import work
from bulkmm.lab.machine.arch import X86_64, of_release
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

TOUCHING = ("touch", "read-call")
POPULATING = ("mlock", "io-uring", "af-xdp")
LOCKED = ("brk-locked", "mprotect-locked")
GUESTS = ("kvm-prefault", "kvm-run")  # of x86-64
TOUCHED = (*TOUCHING, "kvm-run")
# 6.12 splits the huge zero page on a write
WHOLE_ZERO_PAGE = "7.3"


@dataclass(frozen=True)
class Work(work.Work):
    """2 MiB pages faulted in every way, observed by the tracepoint."""

    kept = (("brought", "brought"),)

    def job(self, modules: list[str]) -> str:
        pc = "vfio_iommu_type1" in modules
        others = [name for name in modules if name != "vfio_iommu_type1"]
        lines = super().job(others).splitlines()
        if pc:
            unsafe = "allow_unsafe_interrupts=1"  # no guest's interrupts are at risk
            lines.append(f"must insmod /lib/modules/vfio_iommu_type1.ko {unsafe}")
        lines += ["folios thp 2048", "state auto clear=auto"]
        lines += [f"brought {way}" for way in (*TOUCHING, *POPULATING)]
        lines += ["brought_by_all brk-locked", "brought_over_zeros mprotect-locked"]
        if pc:
            lines += [f"brought {way}" for way in GUESTS]
            lines.append("brought_by_device")
        lines += ["must_write $CLEAR/cached_max 0", "brought touch", "state absent"]
        return "\n".join(lines) + "\n"

    def checks(self, outcome: Outcome) -> list[Check]:
        release = outcome.of("start")[0]["release"]
        seen = outcome.of("brought")
        wanted = {*TOUCHING, *POPULATING, *LOCKED}
        if of_release(release) is X86_64:
            wanted |= {*GUESTS, "vfio"}
        ways = {one["way"] for one in seen}
        return [
            Check("every way", ways == wanted, ", ".join(sorted(ways))),
            *(_brought(one, release) for one in seen),
        ]


def _brought(one: dict[str, Any], release: str) -> Check:
    """Check that pages were cleared to suit their use."""
    way, streaming, cached = one["way"], int(one["streaming"]), int(one["cached"])
    touched = way in TOUCHED and one["cached_max"] > 0
    right, wrong = (cached, streaming) if touched else (streaming, cached)
    none = way == "mprotect-locked" and not at_least(release, WHOLE_ZERO_PAGE)
    name = f"{way} {'is a touch' if touched else 'bypasses the cache'}"
    if not one["cached_max"]:
        name += " with cached_max 0"
    detail = f"{streaming} bypassed the cache, {cached} did not"
    return Check(name, not wrong and (right > 0 or none), detail)
