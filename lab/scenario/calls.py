# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path clear: its calls, what it takes for populating, who waits.

clear-cases calls folio_zero_user() as no fault calls it, and times that.

clear-populate brings pages in by ways that bmmfault lacks; the tracepoint reports how
they were cleared.

clear-latency measures in two ways how long clearing delays another task on the same
CPU. A real-time task there (lab/guest/bmmlate.c) measures its wake-up delay, which
includes everything else that guest and host do. The tracepoint reports the longest
unit of each page, per backend: these have a claimed bound. Disturbance can only
lengthen them, so the least of several visits is compared with it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bulkmm.control.requirements import is_at_least
from bulkmm.results.model import Check
from bulkmm.shell.size import PAGE
from lab import state
from lab.choices import PREEMPT
from lab.machine.arch import X86_64, of_release
from lab.machine.vm import Outcome
from lab.scenario import base
from lab.scenario.base import Event, Measure
from lab.scenario.clear import ARMS, LISTS, Clear, enter_arm, expect_hits

ORDERS = " ".join(str(order) for order in range(10))  # one page to 2 MiB
FEW = "0 1 2 3 4 9"
HINTS = 13  # of lab/guest/module/zero.c
# the same folios at the extremes of the tunables
EXTREMES = (
    ("radius", "0", "2"),
    ("radius", "512", "2"),
    ("latency_us", "0", "1000"),
)
CALLS = 1000
TIMED = ("absent", "off", "cached")
TIMED_PAIRS = (("off", "cached"), ("absent", "off"))
ONE_PAGE, FOUR, EIGHT = 0, 2, 3  # orders that are timed
TOUCHING = ("touch", "read-call")
POPULATING = ("mlock", "io-uring", "af-xdp")
LOCKED = ("brk-locked", "mprotect-locked")
PREFAULT, PREFAULT_SINCE = "kvm-prefault", "6.11"
GUESTS = (PREFAULT, "kvm-run")  # of x86-64
TOUCHED = (*TOUCHING, "kvm-run")
LATENCIES = {  # states with target latencies
    "off": "clear=off",
    "10ms": "clear=auto clear/latency_us=10000",
    "1ms": "clear=auto clear/latency_us=1000",
}
WAYS = {"demand": "write-middle", "populate": "map-populate"}
POOLS = {2048: 16, 1 << 20: 1}  # hugetlb pages by size in KiB
SIZES = {2048: "-n 16 -b 16", 1 << 20: ""}  # options of bmmfault
BOUND_ROUNDS = 3  # at least: a single one may be disturbed
BUILT_IN = "preempt"  # cannot be selected: full or lazy, uname does not tell
PREEMPTIBLE = ("full", "lazy", BUILT_IN)
ALLOWED = 1.5  # times the target latency, plus a page
# what the tracepoint reports for a populated 2 MiB page
TRACED = {"order": 9, "bytes": 2 << 20, "streaming": 1}


class Cases(Clear):
    """Calls with every hint, on folios of every order."""

    observations = (("cases", "case"), ("calls", "calls"))

    def lines(self) -> list[str]:
        lines = ["zeroing", "modules bulkmm_lab"]
        for mode in ARMS:
            lines += [enter_arm(mode), f"cases plain 0 {ORDERS}"]
        for mode in LISTS:
            lines += [enter_arm(mode), "tune min_pages 0"]
            lines.append(f"cases_by_backend {ORDERS}")
            for name, value, usual in EXTREMES:
                lines += [f"tune {name} {value}", f"cases {name}-{value} 0 {FEW}"]
                lines.append(f"tune {name} {usual}")
        label = "broken-on-purpose" if self.options.break_one_word else "corrupted"
        lines += [f"cases {label}-inside 1 0 9", f"cases {label}-beside 2 0 9"]
        lines += self._times()
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def _times(self) -> list[str]:
        """Return what is timed, with stores that cost the same in every arm."""
        lines = []
        for mode in self.each_round(TIMED):
            lines.append(enter_arm(mode))
            if mode == "cached":
                lines += ["plain_stores", "tune min_pages 0"]
            lines.append(f"call_times {CALLS} {ONE_PAGE} {FOUR} {EIGHT}")
        return lines

    def measurements(self, outcome: Outcome) -> Iterable[Measure]:
        """Return the cost of a call on one page and its fixed cost.

        Two sizes give the time that does not grow with the folio: decisions, lookups
        and counting.
        """

        def medians(arm: str, order: int) -> list[float]:
            events = outcome.of("calls", arm=arm, order=order)
            return base.collect_values(events, "median_ns")

        times = {arm: medians(arm, ONE_PAGE) for arm in TIMED}
        yield Measure("clear-cases-one-page", 4096, TIMED_PAIRS, times)
        fixed: dict[str, list[float]] = {}
        for mode in TIMED:
            pairs = zip(medians(mode, FOUR), medians(mode, EIGHT), strict=True)
            fixed[mode] = [_fixed(*pair) for pair in pairs]
        yield Measure("clear-cases-fixed", 0, (), fixed)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        cases = outcome.of("case")
        by_arm = base.group_items(
            cases, lambda event: f"{event['label']}, {event['arm']}"
        )
        for name, events in by_arm.items():
            if name.startswith("corrupted"):
                yield from map(_corrupted, events)
            else:
                title = f"zero, and nothing else ({name})"
                yield base.check_values(
                    title, events, {"calls": HINTS, "wrong": 0, "beside": 0}
                )
        yield state.judge_visits(
            "counters", state.list_visits(outcome, "cases"), _expected
        )


def _fixed(four: float, eight: float) -> float:
    return max(2 * four - eight, 0.0)


def _corrupted(event: Event) -> Check:
    """Check that deliberate corruption was found every time, and nothing else."""
    place = event["label"].removeprefix("corrupted-")
    # the next call restores the word beside the folio
    inside, beside = (HINTS, 0) if place == "inside" else (0, (HINTS + 1) // 2)
    name = f"corrupted {place} is seen (order {event['order']})"
    return base.check_values(name, [event], {"wrong": inside, "beside": beside})


def _expected(visit: state.Visit) -> state.Expect:
    """Return what is expected: large folios are served, single pages never."""
    orders = str(visit.event["orders"]).split()
    clear, _ = expect_hits(visit, {1 << int(order): HINTS for order in orders})
    return clear


class Used(Clear):
    """2 MiB pages faulted in every way, observed by the tracepoint."""

    observations = (("brought", "brought"),)

    def job(self, modules: list[str]) -> str:
        pc = "vfio_iommu_type1" in modules
        preloaded = [name for name in modules if name != "vfio_iommu_type1"]
        lines = super().job(preloaded).splitlines()
        if pc:
            unsafe = "allow_unsafe_interrupts=1"  # no guest's interrupts are at risk
            lines.append(f"must insmod /lib/modules/vfio_iommu_type1.ko {unsafe}")
        lines += ["folios thp 2048", "state auto clear=auto"]
        lines += [f"brought {way}" for way in (*TOUCHING, *POPULATING)]
        lines += ["brought_by_all brk-locked", "brought mprotect-locked"]
        if pc:
            lines += ["brought_prefaulted", "brought kvm-run", "brought_by_device"]
        lines += ["must_write $CLEAR/cached_max 0", "brought touch", "state absent"]
        return "\n".join(lines) + "\n"

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        release = outcome.of("start")[0]["release"]
        events = outcome.of("brought")
        wanted = {*TOUCHING, *POPULATING, *LOCKED}
        if of_release(release) is X86_64:
            wanted |= {*GUESTS, "vfio"}
        ways = {event["way"] for event in events}
        yield Check("every way", ways == wanted, ", ".join(sorted(ways)))
        for event in events:
            yield _check_way(event, release)


def _check_way(event: Event, release: str) -> Check:
    """Check that pages were cleared to suit their use, if the kernel has the way."""
    way = event["way"]
    if lacks := event.get("lacks"):
        ok = way == PREFAULT and not is_at_least(release, PREFAULT_SINCE)
        return Check(f"{way}: skipped", ok=ok, detail=f"the kernel lacks {lacks}")
    touched = way in TOUCHED and event["cached_max"] > 0
    wanted, unwanted = ("cached", "streaming") if touched else ("streaming", "cached")
    name = f"{way} {'is a touch' if touched else 'bypasses the cache'}"
    if not event["cached_max"]:
        name += " with cached_max 0"
    return base.check_values(name, [event], {unwanted: 0}, ok=event[wanted] > 0)


def _model(outcome: Outcome) -> str:
    return str(outcome.of("preemption")[0]["model"])


@dataclass(frozen=True, kw_only=True)
class Latency(Clear):
    """Clearing with several target latencies, and a waiting task."""

    every_kib: tuple[int, ...] = tuple(POOLS)
    every_arm = tuple(LATENCIES)

    observations = (("visits", "late"), ("bounds", "bound"), ("preemption", _model))

    def lines(self) -> list[str]:
        model = self.options.preempt or ""
        lines = [f"preemption {model}", *self._visits()]
        if not self._uses_path:
            return [*lines, "state absent"]
        lines += _warm(2048)
        rounds = max(self.options.rounds, BOUND_ROUNDS)
        lines += ["bounds write-middle -f -n 4 -b 4"] * rounds
        return [*lines, "traced", "state absent"]

    @property
    def _uses_path(self) -> bool:
        """Return whether the path is on in this run, which some kernels refuse."""
        return self.arms != ("off",)

    def _visits(self) -> list[str]:
        chance, lines = self.chance, []
        for kib in self.kib:
            lines += _warm(kib)
            for name in self.each_round(self.arms, chance):
                lines.append(f"state {name} {LATENCIES[name]}")
                lines += [f"late {way} {SIZES[kib]}" for way in WAYS.values()]
        return lines

    def measurements(self, outcome: Outcome) -> Iterator[Measure]:
        """Return the longest waits while pages were faulted in or populated."""
        pairs = [("off", arm) for arm in self.arms if arm != "off"]
        for name, kib, way in self.timed(WAYS):
            times = base.collect_samples(
                outcome, "late", "late_ns", self.arms, kib=kib, way=way
            )
            yield Measure(name, kib << 10, pairs, times)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        waits, model = outcome.of("late"), _model(outcome)
        ok = all(event["late_samples"] for event in waits)
        yield base.check_values("sampled", waits, {}, ok=ok)
        if self._uses_path:
            yield from self._judge_units(outcome, model)

    def _judge_units(self, outcome: Outcome, model: str) -> Iterable[Check]:
        preempts = model in PREEMPTIBLE
        unit = 2 << 20 if preempts else PAGE
        yield base.check_values(
            "tracepoint", outcome.of("traced")[:1], {**TRACED, "unit": unit}
        )
        bounds = [] if preempts else outcome.of("bound")
        of_list = base.group_items(
            bounds, lambda event: f"{event['list']}, {event['backend']}"
        )
        for name, events in of_list.items():
            yield _bound(name, events)
        if not preempts:
            lists = {event["list"] for event in bounds}
            yield Check(base.WHOLE, lists == {*LISTS}, f"bounds: {len(of_list)}")


def _warm(kib: int) -> list[str]:
    """Return the lines that fill a pool and fault its pages in on the host."""
    pages = POOLS[kib]
    return [
        f"folios hugetlb {kib} {pages}",
        f"must bmmfault -f -n {pages} -b {pages} hugetlb {kib} write-first",
    ]


def _bound(name: str, events: list[Event]) -> Check:
    """Check that the longest unit of a backend is within the bound."""
    page = min(
        event["ns"] * PAGE / event["bytes"] for event in events if event["bytes"]
    )
    most = ALLOWED * 1000 * events[0]["latency_us"] + page
    least = min(int(event["gap_ns"]) for event in events)
    detail = (
        f"longest unit {least / 1e6:.2f} ms in the best of {len(events)} visits, "
        f"{most / 1e6:.2f} allowed; {events[0]['unit']} bytes"
    )
    return Check(f"longest unit ({name})", 0 < least <= most, detail)


SCENARIOS = (
    Cases(
        "clear-cases",
        "what a call of folio_zero_user() costs besides the stores",
        "called on folios of 1 to 512 pages with hints at both ends and outside, in "
        "every mode and with every backend forced: all of it zero, nothing beside it "
        "changed; what is corrupted on purpose must be seen",
        takes=("rounds", "seed", "break_one_word", "preempt"),
        runs=base.Runs(
            full=("--rounds 2",),
            debug={"debug": ("--rounds 1",)},
        ),
        seconds=40,
        machine=base.Machine(
            memory=1024,
            countable=True,
        ),
    ),
    Used(
        "clear-populate",
        "which ways to bring a huge page in count as populating, those of devices and "
        "guests among them",
        "each page bypasses the cache if it was populated, and is left in it if it was "
        "touched; with cached_max 0 all bypass it",
        takes=("preempt",),
        machine=base.Machine(
            memory=1024,
            cmdline="init_on_alloc=0 intel_iommu=on iommu=nopt",
            modules=("kvm_amd", "vfio_pci", "vfio_iommu_type1"),
            devices=("intel-iommu,intremap=off", "edu"),
        ),
        needs=base.Needs(
            lacking_debug=base.LACKING,
        ),
    ),
    Latency(
        "clear-latency",
        "how late a real-time task gets the CPU on which hugetlb pages of 2 MiB and "
        "1 GiB are cleared: with targets of 10 ms and 1 ms",
        "the longest unit within 1.5 latency_us and a page, with each backend forced "
        "(kernels that do not preempt)",
        takes=("rounds", "seed", "arms", "preempt", "kib"),
        runs=base.Runs(
            full=(
                *(f"--preempt {model} --rounds 2" for model in PREEMPT),
                "--rounds 2",
            ),
            debug={
                "debug": ("--preempt full --rounds 1", "--preempt lazy --rounds 1"),
                # the arm off is the patches' own clearing
                "patched": ("--preempt lazy --rounds 1 --arm off",),
                "patched-6.12": ("--preempt none --rounds 1 --arm off",),
            },
        ),
        seconds=200,
        machine=base.Machine(
            memory=4096,
            cmdline=base.GIB_PAGE,
            icount=True,
        ),
    ),
)
