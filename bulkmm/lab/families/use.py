# SPDX-License-Identifier: GPL-2.0-only
"""clear-populate and mthp-pair: clearing by the page's future user and CPUs."""

import statistics
from dataclasses import dataclass
from typing import Any

from bulkmm import stats
from bulkmm.control.needs import at_least
from bulkmm.lab import state, work
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.arch import X86_64, of_release
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check, Measured

TOUCHING = ("touch", "read-call")
POPULATING = ("mlock", "io-uring", "af-xdp")
LOCKED = ("brk-locked", "mprotect-locked")
GUESTS = ("kvm-prefault", "kvm-run")  # of x86-64
TOUCHED = (*TOUCHING, "kvm-run")
# 6.12 splits the huge zero page on a write
WHOLE_ZERO_PAGE = "7.3"


@dataclass(frozen=True)
class PopulateWork(work.Work):
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


KIB, FOLIOS = 64, 400
ARMS = ("off", "cached", "streaming")
PAIRS = (("off", "cached"), ("off", "streaming"))


@dataclass(frozen=True)
class PairWork(work.Work):
    """Two CPUs that fault in pages of 64 KiB concurrently."""

    kept = (("visits", "pair"),)

    @property
    def cmdline(self) -> str:
        return f"{super().cmdline} init_on_alloc=0".strip()

    def lines(self) -> list[str]:
        lines = [f"folios thp {KIB}"]
        chance = self.options.chance
        # the first visit of each arm warms up
        for arm in ARMS:
            lines += [f"state {arm} clear={arm}", f"pair 1 {FOLIOS}"]
        for _ in range(2):
            for arm in chance.sample(ARMS, len(ARMS)):
                lines.append(f"state {arm} clear={arm}")
                lines.append(f"pair {self.options.rounds} {FOLIOS}")
        return [*lines, "state absent"]

    def results(self, outcome: Outcome) -> Measured:
        name, nbytes = self.scenario.name, KIB << 10
        taken = {
            arm: [
                one[f"ns{cpu}"] / FOLIOS
                # without the one that warmed up
                for one in outcome.of("pair", arm=arm)[1:]
                for cpu in (0, 1)
            ]
            for arm in ARMS
        }
        # a string instruction counts as one: no ratio of work
        work = counting.rated(name, nbytes, _counted(outcome), ())
        return stats.joined([stats.rated(name, "ns", nbytes, taken, PAIRS), work])

    def checks(self, outcome: Outcome) -> list[Check]:
        together = [
            one["together_ns"] / max(one["ns0"], one["ns1"])
            for one in outcome.of("pair")
        ]
        usual = statistics.median(together or [0])
        return [
            *(_served(arm, outcome) for arm in ARMS),
            # a busy host may keep one of them from running at times
            Check("both at once", usual > 0, f"{usual:.0%} of the time"),
        ]


def _counted(outcome: Outcome) -> dict[str, list[counting.Work]]:
    """Return instructions and stores per folio by arm, separately for each CPU."""
    found: dict[str, list[counting.Work]] = {}
    first = set()
    for event, (record,) in counting.of(outcome, "pair"):
        work = [counting.slot(record, cpu, FOLIOS) for cpu in (0, 1)]
        if event["arm"] in first:
            found.setdefault(event["arm"], []).extend(work)
        first.add(event["arm"])
    return {arm: found[arm] for arm in ARMS if arm in found}


def _served(arm: str, outcome: Outcome) -> Check:
    """Check that the module served all folios of an arm, or none."""
    visits = [v for v in state.visits(outcome, "paired") if v.arm == arm]
    cpus = 0 if arm == "off" else 2

    def expected(event: dict[str, Any]) -> state.Expect:
        return state.Expect("clear", arm, cpus * event["folios"] * event["rounds"])

    return state.judge(f"hits ({arm})", visits, lambda one: expected(one.event))
