# SPDX-License-Identifier: GPL-2.0-only
"""The suites: tests and programs of others in each state of the module.

Some have parts that can be run alone: categories of the kernel's tests, users of a
function. Nothing is timed.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bulkmm.lab import state, work
from bulkmm.lab.families import pmem
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.scenario.suites import LARGEST, MOST, STEP
from bulkmm.results import Check

LATE = "late"  # a test that timed out
# kinds of other users of a function (lab/guest/coexist.sh); kexec must be last
USERS = ("function", "function_graph", "kprobe", "kretprobe", "fentry", "livepatch")
KEXEC = "kexec"
STATES = ("absent", "on", "streaming")
SMALLEST = 4  # steps of a namespace of ndctl-odd
KINDS = (
    ("fsdax", "dev", "2M"),
    ("fsdax", "mem", "2M"),
    ("devdax", "dev", "2M"),
    ("devdax", "mem", "2M"),
    ("devdax", "dev", "4K"),
)


@dataclass(frozen=True)
class Suite(work.Work):
    """A suite with its options (see bulkmm.lab.work)."""

    every: ClassVar[tuple[str, ...]] = ()  # part that there is
    kept = (("ops", "stress-ops"), ("took", "mm-ran"), ("hits", state.unloaded))

    @property
    def parts(self) -> tuple[str, ...]:
        chosen = self.options.parts
        return tuple(one for one in self.every if not chosen or one in chosen)

    @property
    def known(self) -> Mapping[str, tuple[object, ...]]:
        return {"parts": self.every}

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        return {
            **super().facts(outcome),
            "parts": self.parts,
            "tests": {
                f"{category}: {name}": arms
                for (category, name), arms in verdicts(outcome.of("mm")).items()
            },
        }


@dataclass(frozen=True)
class Coexist(Suite):
    """Other users of the hooked functions."""

    every = (*USERS, "everywhere", "knob", KEXEC)

    def lines(self) -> list[str]:
        return [f"coexist {' '.join(self.parts)}"]

    def checks(self, outcome: Outcome) -> list[Check]:
        done = [str(event["name"]) for event in outcome.of("step")]
        if KEXEC in self.parts and len(outcome.of("start")) > 1:
            done.append(KEXEC)  # kexec replaced the kernel that began it
        ran = Check("every part was run", tuple(done) == self.parts, ", ".join(done))
        return [*work.told(outcome), ran]


@dataclass(frozen=True)
class Mm(Suite):
    """The kernel's own tests of memory management."""

    # categories of run_vmtests.sh; others need modules or options that stock kernels
    # lack
    every = (
        *("hugetlb", "mmap", "gup_test", "userfaultfd", "compaction", "mlock"),
        *("process_mrelease", "mremap", "hugevm", "madv_guard", "madv_populate"),
        *("process_madv", "vma_merge", "memfd_secret", "ksm", "pkey", "soft_dirty"),
        *("pagemap", "pfnmap", "cow", "thp", "migration", "mkdirty", "mdwe", "rmap"),
    )

    def lines(self) -> list[str]:
        return ["mm_begin", f"mm {self.options.seconds} {' '.join(self.parts)}"]

    @property
    def quiet(self) -> float:
        # a test has twice that, by the guest's clock
        return 10 * float(self.options.seconds)

    def checks(self, outcome: Outcome) -> list[Check]:
        """Check that tests end as without the module, and which paths they used."""
        attempts = verdicts(outcome.of("mm"))
        judged = sum(
            any(one.startswith("pass") for one in arms[STATES[0]])
            for arms in attempts.values()
            if STATES[0] in arms
        )
        return [
            *work.told(outcome),
            *(
                Check(f"{event['name']} does not build", ok=True, detail="skipped")
                for event in outcome.of("mm-unbuilt")
            ),
            *(same(name, arms) for name, arms in attempts.items()),
            self._whole(outcome),
            Check("tests passed", judged > 0, f"{judged} of {len(attempts)}"),
            *_served(outcome),
        ]

    def _whole(self, outcome: Outcome) -> Check:
        """Check that each category was run, and that a test of each that has one."""
        ran = outcome.of("mm-ran")
        wanted = {(arm, part) for arm in STATES for part in self.parts}
        tested = {e["category"] for e in outcome.of("mm")}
        # an older kernel's runner has fewer
        lacks = {e["category"] for e in ran if not e["tests"]}
        idle = {*self.parts} - tested - lacks
        seen = {(e["arm"], e["category"]) for e in ran}
        detail = f"{len(seen)} runs; not of this kernel: {sorted(lacks)}"
        detail += f"; no test ran: {sorted(idle)}" if idle else ""
        return Check("every category was run", seen == wanted and not idle, detail)


@dataclass(frozen=True)
class Odd(Suite):
    """Namespaces of odd sizes on one device."""

    def lines(self) -> list[str]:
        broken = f"BROKEN={'1' if self.options.break_one_word else ''}"
        found = [f"odd {label} {' '.join(words)}" for label, words in self.layouts]
        return ["modules bulkmm_lab", broken, "odd_begin", *found]

    @property
    def layouts(self) -> list[tuple[str, list[str]]]:
        chance = self.options.chance
        found = []
        for number in range(self.options.rounds):
            words = []
            for _ in range(chance.randint(3, MOST)):
                kind = chance.choice(KINDS)
                nbytes = chance.randint(SMALLEST, LARGEST) * STEP
                words.append(",".join((*kind, f"{nbytes}")))
            found.append((f"layout-{number}", words))
        return found

    def checks(self, outcome: Outcome) -> list[Check]:
        found = [pmem.compared(event) for event in outcome.of("compare")]
        many = [len(words) for _, words in self.layouts]
        proofs = len(outcome.of("compare", label="flipped"))
        planned = 0 if self.options.break_one_word else len(many)
        whole = (len(found) - proofs, proofs) == (sum(many), planned)
        seen = f"{len(found) - proofs} of {sum(many)}, {proofs} flips seen"
        binds = sum(one**2 for one in many)
        hits = state.served(outcome)["memmap"]
        return [
            *work.told(outcome),
            *found,
            Check("every namespace was compared", whole, seen),
            Check("served in ranges", hits == binds, f"{hits} of {binds}"),
            state.attached(outcome, "memmap"),
        ]


@dataclass(frozen=True)
class Stress(Suite):
    """Everything at once, while paths are switched."""

    users = (
        ("folios", "huge pages: every byte zero", "folios", "wrong"),
        ("copies", "hugetlb pages: copies as the model has them", "copies", "wrong"),
        ("device", "device: always came up", "binds", "failed"),
    )

    def checks(self, outcome: Outcome) -> list[Check]:
        """Check that each path was used while it was switched, and what users saw."""
        hits = state.served(outcome)
        listed = ", ".join(f"{path} {many}" for path, many in hits.items())
        used = all(hits[path] for path in ("memmap", "clear", "copy", "vmap"))
        said = {event["process"]: event for event in outcome.of("soaked")}
        loads, turns = (int(outcome.of("soak")[0][key]) for key in ("loads", "turns"))
        code = said["stress-ng"]["code"]
        return [
            *work.told(outcome),
            Check("paths were used meanwhile", used, listed),
            Check("loaded more than once", loads > 1, f"{loads} loads, {turns} turns"),
            Check("stress-ng verifies all that it stored", code == 0, f"code {code}"),
            *(
                Check(
                    name,
                    said[one][many] > 0 and not said[one][bad],
                    f"{said[one][many]} {many}, {said[one][bad]} {bad}",
                )
                for one, name, many, bad in self.users
            ),
        ]


Attempts = dict[str, list[str]]  # outcomes of a test by state


def verdicts(events: list[dict[str, Any]]) -> dict[tuple[str, str], Attempts]:
    """Return the outcomes of each kernel test, by category and name."""
    found: dict[tuple[str, str], Attempts] = {}
    for event in events:
        said = str(event["verdict"])
        numbers = [f"{event[key]} {key}" for key in ("passed", "failed", "skipped")]
        if said != LATE:  # a late test's numbers depend on the host
            said = ", ".join([said, *(n for n in numbers if not n.startswith("0 "))])
        arms = found.setdefault((event["category"], str(event["name"])), {})
        arms.setdefault(event["arm"], []).append(said)
    return found


def same(test: tuple[str, str], arms: Attempts) -> Check:
    """Check that a test ends in every state as without the module.

    Any outcome seen without the module is accepted with it.
    """
    base = arms.get(STATES[0], [])
    first = {arms[arm][0] if arms.get(arm) else "none" for arm in STATES}
    ways = {one for arm in STATES for one in arms.get(arm, ["none"])}
    flaky = len(set(base)) > 1 and ways <= set(base)
    listed = "; ".join(f"{arm}: {' | '.join(arms.get(arm, ()))}" for arm in STATES)
    if len(first) == 1:
        listed = first.pop()
        return Check(": ".join(test), ok=listed != "none", detail=listed)
    if flaky:
        listed += "; flaky by itself"
    return Check(": ".join(test), flaky, listed)


def _served(outcome: Outcome) -> list[Check]:
    hits: dict[str, int] = defaultdict(int)
    for one in state.unloaded(outcome):
        hits[f"{one['path']}, {one['arm']}"] += one["hits"]
    listed = ", ".join(f"{path}: {many}" for path, many in hits.items())
    used = all(hits[f"clear, {arm}"] for arm in STATES[1:])
    return [Check("huge pages were served meanwhile", used, listed)]
