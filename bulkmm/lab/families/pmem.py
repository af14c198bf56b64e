# SPDX-License-Identifier: GPL-2.0-only
"""The persistent-memory scenarios: their jobs and their results.

The host decides everything that depends on chance or size (the order of the
arms, where to compare), so that the seed in the result is enough to repeat a run.
"""

import re
from dataclasses import dataclass
from typing import Any

from bulkmm import stats
from bulkmm.errors import GuestError, UsageError
from bulkmm.lab import work
from bulkmm.lab.choices import ALIGNS, Options
from bulkmm.lab.families import breakdown
from bulkmm.lab.machine import counting
from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.machine.vm import Hot, Outcome
from bulkmm.lab.scenario import Scenario
from bulkmm.results import Check, Measured
from bulkmm.size import PAGE

COMPARE_ALL = 8 << 30  # up to this size every bind of `on` is compared
STRUCT_PAGE = 64
ARMS = ("absent", "off", "on")
PAIRS = (("off", "on"), ("absent", "on"), ("absent", "off"))
LIMIT = "limit"  # only storing as many bytes
PRIVATE = "private"  # device memory that no CPU can access
FAULTS = "pmem-faults"
HOOKS = "hook-faults"  # the scenario of lab/guest/hook.sh
STORM = "hook-storm"  # of lab/guest/storm.sh
KASAN = "hook-kasan"  # of lab/guest/hook.sh
KOBJECT = "hook-kobject"  # likewise
# results by name suffix: key of the time, event. No work is counted for unbind: it
# sleeps, and other tasks' work on its CPU would count.
TIMED = (("", "ns", "bind"), ("-bind", "bind_ns", "bind"), ("-unbind", "ns", "unbind"))
FIRST = "first"  # label of a bind that is not a sample
PROOF = "proof"
FLIPPED_WORD = 5


@dataclass(frozen=True)
class Work(work.Work):
    """A persistent-memory scenario with its options (see bulkmm.lab.work)."""

    step = ("bind",)
    kept = (("took", "took"),)

    @property
    def _storms(self) -> bool:
        """Return whether the run lasts as long as the user wants."""
        return self.scenario.name == STORM

    @property
    def pmem(self) -> int:
        return 0 if self.scenario.mode == PRIVATE else self.options.size

    @property
    def hot(self) -> Hot:
        return Hot(nodes=3, bare=True) if self.scenario.name == FAULTS else Hot()

    @property
    def cmdline(self) -> str:
        """Return kernel parameters of a storm.

        It holds CPUs, which is not to be reported: a machine that hangs is found by
        its silence. Freed memory is poisoned: a held walk that still uses it
        does not get away with it.
        """
        quiet = "nowatchdog rcupdate.rcu_cpu_stall_timeout=300"
        return f"{quiet} slab_debug=FP" if self._storms else ""

    def check_options(self, arch: Arch = X86_64) -> None:
        super().check_options(arch)
        align = self.options.align
        if align not in arch.aligns:
            known = ", ".join(arch.aligns)
            raise UsageError(f"no alignment {align} on {arch.name}: {known}")
        if align == "1G" and self.options.size < 2 * ALIGNS[align]:
            raise UsageError("alignment 1G needs a size of at least 2G")

    def job(self, modules: list[str]) -> str:
        return job(self.scenario, self.options, modules)

    @property
    def quiet(self) -> float:
        return self.options.seconds if self._storms else 0

    @property
    def steps(self) -> int:
        return 3 + len(ARMS) * (self.options.rounds + 1)

    def is_step(self, event: dict[str, Any]) -> bool:
        if event["event"] == "unknown-backend":
            raise UsageError(
                f"unknown backend {self.options.backend}: "
                f"the module has {event['known']}"
            )
        return super().is_step(event)

    def results(self, outcome: Outcome) -> Measured:
        if self.scenario.faults:
            return [], []
        return results(self.scenario, self.options, outcome)

    def checks(self, outcome: Outcome) -> list[Check]:
        return checks(self.scenario, self.options, outcome)

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        return {
            **super().facts(outcome),
            "backends": next((c["backend"] for c in outcome.of("counters")), ""),
            "fallbacks": fallback_counts(outcome),
            "breakdown": breakdown.of(outcome),
        }


def job(scenario: Scenario, options: Options, modules: list[str]) -> str:
    """Return the guest's job: words of lab/guest/*.sh, one per line."""
    if scenario.faults:
        return _faults(scenario, options, modules)
    align = options.align if scenario.mode == "devdax" else "2M"
    device = f"namespace {scenario.mode} {options.map} {align}"
    if scenario.mode == PRIVATE:
        device = f"private {options.size}"
    lines = [
        f"BACKEND={options.backend} WORKERS={options.workers}",
        f"modules {' '.join(modules)}",
        "modules bulkmm_lab",
        f"mark {scenario.name} begins",
        *(["arm off", "arm absent"] if options.backend else []),
        device,
        "bind absent reference",
        "snapshot",
        "unbind",
    ]
    every = options.size <= COMPARE_ALL
    compared = False
    for number, arm in _order(options):
        lines += [f"bind {arm} round"]
        if arm == "on" and (every or not compared):
            lines += [f"compare round-{number}"]
            compared = True
        lines += ["unbind"]
        if arm == ARMS[-1]:
            lines += ["limit {} {}".format(*_unit(scenario, options))]
    lines += [f"graphed {arm}" for arm in ARMS]
    lines += _proof(scenario, break_it=options.break_one_word)
    lines += ["arm absent", "must rmmod bulkmm_lab"]
    return "\n".join(lines) + "\n"


def _faults(scenario: Scenario, options: Options, modules: list[str]) -> str:
    """Return the job that injects every fault (lab/guest/faults.sh)."""
    if scenario.name == KASAN:
        return f"mark {scenario.name} begins\nhook_kasan\n"
    if scenario.name == KOBJECT:
        return (
            f"modules bulkmm_lab\nmark {scenario.name} begins\n"
            f"private {options.size}\nhook_kobject\nmust rmmod bulkmm_lab\n"
        )
    device = [
        f"modules {' '.join(modules)}",
        "modules bulkmm_lab",
        f"mark {scenario.name} begins",
        f"namespace {scenario.mode} dev 2M",
    ]
    if scenario.name == HOOKS:
        # at the end ftrace is dead: bulkmm_lab cannot be unloaded
        lines = ["case_toggled_around_loads", *device, "hook_faults"]
    elif scenario.production:
        lines = [*device, "verify", "must rmmod bulkmm_lab"]
    elif scenario.name == STORM:
        lines = [*device, f"storm {options.seconds}", "must rmmod bulkmm_lab"]
    else:
        lines = [
            *device,
            # the pageblock function of 7.x kernels, which 6.12 lacks
            "symbol=init_pageblock_migratetype",
            'grep -q " $symbol$" /proc/kallsyms || symbol=set_pageblock_migratetype',
            'faults "$symbol"',
            "must rmmod bulkmm_lab",
        ]
    return "\n".join(lines) + "\n"


def _order(options: Options) -> list[tuple[int, str]]:
    """Return (round, arm) in the seed's random order."""
    chance = options.chance
    return [
        (number, arm)
        for number in range(options.rounds)
        for arm in chance.sample(ARMS, len(ARMS))
    ]


def _proof(scenario: Scenario, *, break_it: bool) -> list[str]:
    """Return the last bind: compare it, show that comparing works, use it."""
    lines = [f"bind on {PROOF}"]
    if break_it:
        return [*lines, "flip", "compare broken-on-purpose", "unbind"]
    lines += ["compare last", "flip", "compare flipped", "flip", "compare restored"]
    use = [] if scenario.mode == PRIVATE else ["use_device"]
    return [*lines, *use, "unbind"]


def samples(outcome: Outcome, key: str, of: str = "bind") -> dict[str, list[float]]:
    """Return the samples of each arm, in order of measurement."""
    return {
        arm: [float(bind[key]) for bind in outcome.of(of, label="round", arm=arm)]
        for arm in ARMS
    }


def first_bind(outcome: Outcome) -> float:
    """Return the function's time in the first bring-up."""
    return float(outcome.of("bind", label=FIRST)[0]["ns"])


def limits(outcome: Outcome) -> list[float]:
    """Return the times of merely storing as many bytes, one per round."""
    return [float(event["ns"]) for event in outcome.of("limit")]


def _unit(scenario: Scenario, options: Options) -> tuple[int, int]:
    """Return the pages of a compound page and the bytes written for it.

    With the memory map in RAM, the kernel shares the tail struct pages of a compound
    page: only two pages of 64 struct pages each are real (HVO).
    """
    unit = ALIGNS[options.align] // PAGE if scenario.mode == "devdax" else 1
    real = 2 * PAGE if options.map == "mem" else unit * STRUCT_PAGE
    return unit, min(real, unit * STRUCT_PAGE)


def written(scenario: Scenario, options: Options, outcome: Outcome) -> int:
    """Return the bytes of struct pages written by one bring-up."""
    unit, nbytes = _unit(scenario, options)
    return int(outcome.of("bind")[0]["pages"]) // unit * nbytes


def results(scenario: Scenario, options: Options, outcome: Outcome) -> Measured:
    """Return the times: the function, bind and unbind, the first bring-up."""
    name = scenario.name
    nbytes = written(scenario, options, outcome)
    pairs = (*PAIRS, (LIMIT, "on"))  # only the function has a limit
    parts = []
    for suffix, key, event in TIMED:
        taken = samples(outcome, key, event)
        if not suffix:
            taken[LIMIT] = limits(outcome)
        parts.append(stats.rated(name + suffix, "ns", nbytes, taken, pairs))
    first = {"absent": [first_bind(outcome)]}
    parts.append(stats.rated(f"{name}-first", "ns", nbytes, first, ()))
    for slot, suffix in enumerate(("", "-bind")):
        counted = _work(outcome, slot)
        parts.append(counting.rated(name + suffix, nbytes, counted, pairs))
    return stats.joined(parts)


def _work(outcome: Outcome, slot: int) -> dict[str, list[counting.Work]]:
    """Return the work of each arm's samples: the function or the whole bind."""
    found: dict[str, list[counting.Work]] = {arm: [] for arm in ARMS}
    for event, (record,) in counting.of(outcome, "bind", LIMIT):
        arm = LIMIT if event["event"] == LIMIT else event["arm"]
        if event.get("label", "round") == "round" and not (arm == LIMIT and slot):
            found.setdefault(arm, []).append(counting.slot(record, slot))
    return found


def checks(scenario: Scenario, options: Options, outcome: Outcome) -> list[Check]:
    """Return every verdict of a run."""
    if scenario.faults:
        return work.provoked(outcome)
    found = [compared(c) for c in outcome.of("compare")]
    if not options.break_one_word and scenario.mode != PRIVATE:
        found.append(_used(outcome))
    if options.workers:
        found.append(_shared(options, outcome))
    found.append(breakdown.check(outcome, ("bind", "unbind"), ARMS))
    return [*found, _counted(options, outcome)]


def compared(event: dict[str, Any]) -> Check:
    """Check one comparison; "flipped" must find one word."""
    label, verdict = event["label"], event["verdict"]
    said = dict(re.findall(r"(\w+)=(\w+)", verdict))
    try:
        pages, words = int(said["pages"]), int(said["words_differ"])
        blocks = int(said["pageblocks_differ"])
    except (KeyError, ValueError) as error:
        raise GuestError(f"the comparison said {verdict!r}") from error
    name = f"struct pages identical ({label})"
    ok = pages > 0 and words == 0 and blocks == 0
    if label == "flipped":
        name = "a flipped word is seen"
        place = int(said["first_word"]) == FLIPPED_WORD
        ok = pages > 0 and words == 1 and blocks == 0 and place
    detail = f"{pages} pages, {words} words and {blocks} pageblocks differ"
    if words:
        detail += (
            f"; first: PFN {said['first_pfn']} word {said['first_word']}, "
            f"was {said['was']}, is {said['is']}"
        )
    return Check(name, ok, detail)


def _used(outcome: Outcome) -> Check:
    used = outcome.of("used")
    proved = int(used[0]["bytes"]) if used else 0
    return Check("device used afterwards", proved > 0, f"{proved} bytes read back")


def _counted(options: Options, outcome: Outcome) -> Check:
    """Compare the module's counters with the binds made."""
    hits = sum(int(c["hits"]) for c in outcome.of("counters"))
    wanted = options.rounds + 2  # the traced bind, the proof
    wrong = fell(outcome, but="off")
    return Check(
        "counters",
        hits == wanted and not wrong,
        f"{hits} hits of {wanted}, unexpected fallbacks: {wrong or 'none'}",
    )


def _shared(options: Options, outcome: Outcome) -> Check:
    """Check that several CPUs stamped where requested."""
    shared = sum(int(c["shared_bytes"]) for c in outcome.of("counters"))
    detail = f"{shared} bytes by others than the caller"
    ok = bool(shared) == (options.workers > 1)
    return Check(f"stamped by {options.workers} CPUs", ok, detail)


def fallback_counts(outcome: Outcome) -> dict[str, int]:
    """Return how often the original served, by reason."""
    total: dict[str, int] = {}
    for counters in outcome.of("counters"):
        for key, value in counters.items():
            if key.startswith("fallback_"):
                reason = key.removeprefix("fallback_")
                total[reason] = total.get(reason, 0) + int(value)
    return total


def fell(outcome: Outcome, but: str = "") -> str:
    """Return the reasons for which the original served, except one; "" if none."""
    counts = fallback_counts(outcome).items()
    return ", ".join(f"{k} {n}" for k, n in counts if n and k != but)
