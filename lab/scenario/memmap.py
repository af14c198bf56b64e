# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path memmap, and of hooks in general.

The host decides everything that depends on chance or size (the order of the
arms, where to compare), so that the seed in the result is enough to repeat a run.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bulkmm.results import published_figures
from bulkmm.results.model import Check
from bulkmm.shell.errors import GuestError, UsageError
from bulkmm.shell.size import GIB, PAGE
from lab import state
from lab.choices import ALIGNS
from lab.machine.arch import X86_64, Arch
from lab.machine.kernel_kinds import PATCHED
from lab.machine.vm import Hot, Outcome
from lab.scenario import base
from lab.scenario.base import Measure, Scenario

CHECK = (
    "every struct page and pageblock type byte for byte against the kernel's own; "
    "one word flipped must be seen"
)
STAMPED = ("size", "rounds", "seed", "backend", "workers", "break_one_word", "arms")
STORM = ("--cpus 4 --seconds 240",)
REFUSING = ("kasan", "cachyos", "moved")  # kernels that rule paths out
COMPARE_ALL = 8 << 30  # up to this size every bind of `on` is compared
STRUCT_PAGE = 64
ARMS = ("absent", "off", "on")
BIND_HITS = {"absent": 0, "off": 0, "on": 1}  # hits of a bind
PAIRS = (("off", "on"), ("absent", "on"), ("absent", "off"))
LIMIT = "limit"  # only storing as many bytes
# results by name suffix: key of the time, and the event
TIMED = (("", "ns", "bind"), ("-bind", "bind_ns", "bind"))
SLEEPS = ("-unbind", "ns", "unbind")  # for which a clock that counts jumps
FLIPPED_WORD = 5


@dataclass(frozen=True, kw_only=True)
class Device(Scenario):
    """Devices of full size come up, whose struct pages are compared."""

    family: str = "pmem"
    path: str = "memmap"
    seconds: int = 60
    machine: base.Machine = base.Machine(modules=base.NVDIMM, countable=True)
    size: int = 100 * GIB
    mode: str  # the kind of device

    visited = "bind"
    every_arm = ARMS

    def check_options(self, arch: Arch = X86_64) -> None:
        super().check_options(arch)
        align = self.options.align
        if align not in arch.aligns:
            aligns = ", ".join(arch.aligns)
            raise UsageError(f"no alignment {align} on {arch.name}: {aligns}")
        if align == "1G" and self.options.size < 2 * ALIGNS[align]:
            raise UsageError("alignment 1G needs a size of at least 2G")
        if not self._uses_path and (self.options.backend or self.options.workers):
            raise UsageError("--backend and --workers need --arm on")

    @property
    def _uses_path(self) -> bool:
        return ARMS[-1] in self.arms

    def lines(self) -> list[str]:
        """Return the rounds in random order, and the proof.

        The device is made where the module has not seen it. What is compared is the
        last arm, mostly `on`.
        """
        options = self.options
        align = options.align if self.mode == "devdax" else "2M"
        lines = ["modules bulkmm_lab"]
        lines += [self._state("off"), "state absent"] if options.backend else []
        lines.append(f"namespace {self.mode} {options.map} {align}")
        lines += ["bind reference", "snapshot", "unbind"]
        last = self.arms[-1]
        for turn, arm in enumerate(self.each_round(self.arms)):
            lines += [self._state(arm), "bind round"]
            number = turn // len(self.arms)
            if arm == last and (options.size <= COMPARE_ALL or not number):
                lines.append(f"compare round-{number}")
            lines.append("unbind")
            if arm == "on":
                lines.append("limit {} {}".format(*self._unit))
        lines += [self._state(last), "bind proof"]
        if options.break_one_word:
            lines += ["flip", "compare broken-on-purpose"]
        else:
            lines += ["compare last", "flip", "compare flipped"]
            lines += ["flip", "compare restored", "use_device"]
        return [*lines, "unbind", "state absent", "must rmmod bulkmm_lab"]

    def _state(self, arm: str) -> str:
        settings = (
            (name, getattr(self.options, name)) for name in ("backend", "workers")
        )
        return self.state(
            arm, *(f"memmap/{name}={value}" for name, value in settings if value)
        )

    @property
    def _unit(self) -> tuple[int, int]:
        """Return the pages of a compound page and the bytes written for it.

        With the memory map in RAM, the kernel shares the tail struct pages of a
        compound page: only two pages of 64 struct pages each are real (HVO).
        """
        devdax = self.mode == "devdax"
        unit = ALIGNS[self.options.align] // PAGE if devdax else 1
        real = 2 * PAGE if self.options.map == "mem" else unit * STRUCT_PAGE
        return unit, min(real, unit * STRUCT_PAGE)

    def measurements(self, outcome: Outcome) -> Iterable[Measure]:
        """Return the function, bind and unbind, the first bring-up."""
        name = self.named_by_size
        unit, nbytes = self._unit
        nbytes *= int(outcome.of("bind")[0]["pages"]) // unit
        pairs = (*PAIRS, (LIMIT, "on"))  # only the function has a limit
        for suffix, key, event in (*TIMED, *(() if outcome.icount else (SLEEPS,))):
            times = base.collect_samples(outcome, event, key, self.arms, label="round")
            if not suffix and self._uses_path:
                times[LIMIT] = base.collect_values(outcome.of(LIMIT), "ns")
            yield Measure(name + suffix, nbytes, pairs, times)
        first = {"absent": [float(outcome.of("bind", label="first")[0]["ns"])]}
        yield Measure(f"{name}-first", nbytes, (), first)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        comparisons = outcome.of("compare")
        yield from map(check_comparison, comparisons)
        yield base.check_reports(self.lines(), compare=len(comparisons))
        if not self.options.break_one_word:
            used = outcome.of("used")
            ok = any(one["bytes"] for one in used)
            yield base.check_values("device used afterwards", used, {}, ok=ok)
        if workers := self.options.workers:
            shared = sum(c.get("shared_bytes", 0) for c in state.list_unloaded(outcome))
            detail = f"{shared} bytes by others than the caller"
            ok = bool(shared) == (workers > 1)
            yield Check(f"stamped by {workers} CPUs", ok, detail)
        yield state.judge_visits(
            "counters", state.list_visits(outcome, "bind"), expect_binds
        )
        if self._uses_path:
            yield state.check_attached(outcome, "memmap")

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        fell: Counter[str] = Counter()
        for record in state.list_records(outcome, when=state.UNLOAD):
            fell.update(record.paths["memmap"].fallbacks)
        return {
            **super().facts(outcome),
            "backends": next(
                (r.files["memmap/backend"] for r in state.list_records(outcome)), ""
            ),
            "fallbacks": dict(fell),
        }


def expect_binds(bind: state.Visit, many: int = 1) -> state.Expect:
    """Return what is expected of bringing up many times."""
    return state.Expect("memmap", bind.arm, many * BIND_HITS[bind.arm])


def check_comparison(event: dict[str, Any]) -> Check:
    """Check one comparison; "flipped" must find one word."""
    label, verdict = event["label"], event["verdict"]
    counts = dict(re.findall(r"(\w+)=(\w+)", verdict))
    if not counts.keys() >= {"pages", "words_differ", "pageblocks_differ"}:
        raise GuestError(f"the comparison said {verdict!r}")
    name = f"struct pages identical ({label})"
    wanted = {"words_differ": "0", "pageblocks_differ": "0"}
    if label == "flipped":
        name = "a flipped word is seen"
        wanted |= {"words_differ": "1", "first_word": f"{FLIPPED_WORD}"}
    return Check(
        name, counts["pages"] != "0" and wanted.items() <= counts.items(), verdict
    )


def _provoked(*does: str, device: str = "namespace fsdax dev 2M") -> tuple[str, ...]:
    """Return a job of the guest's own on a device that the module has not seen."""
    return ("modules bulkmm_lab", device, *does, "must rmmod bulkmm_lab")


_faults = partial(
    Scenario,
    family="pmem",
    path="memmap",
    machine=base.Machine(
        modules=base.NVDIMM,
        faults=True,
    ),
    size=2 * GIB,
    takes=("size",),
    seconds=20,
)

SCENARIOS = (
    Device(
        "pmem-fsdax-100g",
        "memmap_init_zone_device() and the whole bind of nd_pmem",
        f"{CHECK}; ext4 with DAX written and read back",
        mode="fsdax",
        takes=(*STAMPED, "map"),
        runs=base.Runs(
            quick=("--size 2G --rounds 3",),
            debug={
                **dict.fromkeys(("debug", "clang-cfi"), ("--size 4G --rounds 1",)),
                **dict.fromkeys(PATCHED, ("--size 4G --rounds 1 --arm absent",)),
            },
        ),
        published=published_figures.list_figures("pmem-fsdax-100g"),
    ),
    Device(
        "pmem-devdax-100g",
        "memmap_init_zone_device() and the whole bind of device_dax",
        f"{CHECK}; the device mapped, written and read back",
        mode="devdax",
        takes=(*STAMPED, "map", "align"),
        runs=base.Runs(
            full=("", "--align 1G"),
            debug={
                "debug": ("--size 4G --rounds 1", "--size 16G --align 1G --rounds 1"),
                **dict.fromkeys(PATCHED, ("--size 4G --rounds 1 --arm absent",)),
            },
        ),
        published=published_figures.list_figures("pmem-devdax-100g"),
    ),
    _faults(
        "pmem-faults",
        "every fault of the memmap path is provoked in a test build",
        "the kernel's own result, a counter and one line in the log each time",
        does=_provoked("faults"),
        machine=base.Machine(
            modules=base.NVDIMM,
            faults=True,
            hot=Hot(nodes=3, bare=True),
        ),
        runs=base.Runs(
            debug={"debug": ("",)},
        ),
    ),
    _faults(
        "pmem-verify",
        "memmap/verify in a build for production, of whose struct pages one is broken "
        "after stamping",
        "off does not see it; once and always do, keep the kernel's, count and log it, "
        "and serve none after it; a record of every device",
        does=_provoked("verify"),
        runs=base.Runs(
            debug={"debug": ("",)},
        ),
        machine=base.Machine(
            modules=base.NVDIMM,
            faults=False,
        ),
    ),
    _faults(
        "hook-faults",
        "what ftrace, symbols and a signal can do to a hook, on a test build",
        "no warning; hook, mode and log say what is so; the machine works on, and the "
        "device comes up as the kernel would have it",
        # before any kprobe of bulkmm_lab's; at the end ftrace is dead: none can go
        does=("case_toggled_around_loads", *_provoked("hook_faults")[:-1]),
        runs=base.Runs(
            full=(),
            debug={"debug": ("",), "clang-cfi": ("",)},
        ),
        seconds=90,
    ),
    _faults(
        "hook-storm",
        "paths and the module come and go while tracers, a live patch, BPF and kprobes "
        "come and go on the same functions, and CPUs are held inside ftrace's list",
        "no warning; each of them succeeds now and then; huge pages zero; ftrace and "
        "the module work at the end, and the device comes up as the kernel would have "
        "it",
        does=_provoked("storm {seconds}"),
        machine=base.Machine(
            modules=base.NVDIMM,
            faults=True,
            # CPUs are held, which is not to be reported: a machine that hangs is found
            # by its silence. A held walk of freed memory does not get away with it.
            cmdline="nowatchdog rcupdate.rcu_cpu_stall_timeout=300 slab_debug=FP",
        ),
        takes=("size", "seconds"),
        runs=base.Runs(
            full=STORM,
            debug={"debug": STORM},
        ),
        taint=base.LIVE_PATCH,
    ),
    _faults(
        "hook-refused",
        "which paths attach where an option, or a call that has moved, rules some out",
        "those that do not name it, once in the log, and stay off; the others attach, "
        "and the module goes",
        does=("hook_refused",),
        runs=base.Runs(
            full=(),
            debug=dict.fromkeys(REFUSING, ("",)),
        ),
        machine=base.Machine(
            faults=True,
            modules=(),
        ),
        needs=base.Needs(
            kinds=REFUSING,
        ),
    ),
    _faults(
        "hook-kobject",
        "the module comes and goes, fails to load and is held on to where every "
        "kobject is released late",
        "nothing is freed that lives on, and it loads again at once; device-private "
        "memory comes up as the kernel would have it",
        does=_provoked("hook_kobject", device="private {size}"),
        runs=base.Runs(
            full=(),
            debug={"debug-kobject": ("",)},
        ),
        machine=base.Machine(
            faults=True,
            modules=(),
        ),
        seconds=300,
        needs=base.Needs(
            kinds=("debug-kobject",),
        ),
    ),
)
