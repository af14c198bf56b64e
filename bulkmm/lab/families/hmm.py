# SPDX-License-Identifier: GPL-2.0-only
"""upstream-hmm: the kernel's own lib/test_hmm.c brings up device-private memory.

The client is unaware of the module: two devices, each with chunks of memory that
memremap_pages() maps and to which pages of a process migrate.
"""

from collections import Counter
from dataclasses import dataclass

from bulkmm.lab import work
from bulkmm.lab.families import proof
from bulkmm.lab.families.pmem import ARMS, fell
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check
from bulkmm.size import PAGE

CASES = 12  # of lab/guest/bmmhmm.c
# one chunk per device when the driver is loaded, one for the first huge page,
# one after a device has released all its memory
CHUNKS = 4
CHUNK = 256 << 20  # bytes
SEEDS = 254  # of the words written: one byte


@dataclass(frozen=True)
class Work(work.Work):
    """The kernel's own test in every state of the module (see bulkmm.lab.work)."""

    step = ("hmm-visit",)
    kept = (("visits", "hmm-visit"),)

    @property
    def steps(self) -> int:
        return len(ARMS) * self.options.rounds

    def job(self, modules: list[str]) -> str:
        chance = self.options.chance
        broken = " broken" if self.options.break_one_word else ""
        lines = [
            "BACKEND=",
            f"modules {' '.join([*modules, 'bulkmm_lab'])}",
            f"mark {self.scenario.name} begins",
        ]
        for _ in range(self.options.rounds):
            for arm in chance.sample(ARMS, len(ARMS)):
                # a path that is off is detached: its hook reports nothing at unload
                lines += ["arm on"] if arm == "absent" else []
                lines.append(f"hmm_visit {arm} {chance.randint(1, SEEDS)}{broken}")
        lines += ["arm on", "arm absent", "must rmmod bulkmm_lab"]
        return "\n".join(lines) + "\n"

    def checks(self, outcome: Outcome) -> list[Check]:
        return [
            *_verdicts(outcome),
            self._whole(outcome),
            _brought_up(outcome),
            _counted(outcome),
            proof.attached(outcome, "counters", (proof.ON,)),
        ]

    def _whole(self, outcome: Outcome) -> Check:
        """Check that every visit reported every case."""
        visits = Counter(event["arm"] for event in outcome.of("hmm-visit"))
        said = Counter(event["arm"] for event in outcome.of("hmm-case"))
        rounds = self.options.rounds
        ok = visits == dict.fromkeys(ARMS, rounds) and said == dict.fromkeys(
            ARMS, rounds * CASES
        )
        detail = f"{said.total()} cases in {visits.total()} visits"
        return Check("all that was asked for was reported", ok, detail)


def _verdicts(outcome: Outcome) -> list[Check]:
    """Check that no case found errors, in any state of the module."""
    said: dict[str, dict[str, list[int]]] = {}
    for event in outcome.of("hmm-case"):
        arms = said.setdefault(event["name"], {})
        # the guest reports negative numbers as text
        arms.setdefault(event["arm"], []).append(int(event["wrong"]))
    return [
        Check(
            f"test_hmm: {name}",
            not any(wrong for some in arms.values() for wrong in some),
            "; ".join(
                f"{arm}: {' '.join(map(str, arms[arm]))}" for arm in sorted(arms)
            ),
        )
        for name, arms in said.items()
    ]


def _brought_up(outcome: Outcome) -> Check:
    """Check that every visit brought up exactly the expected chunks."""
    visits = outcome.of("hmm-visit")
    wanted = (CHUNKS, CHUNKS * CHUNK // PAGE)
    seen = {(int(v["calls"]), int(v["pages"])) for v in visits}
    listed = ", ".join(f"{calls} calls of {pages} pages" for calls, pages in seen)
    return Check("device memory brought up", seen == {wanted}, listed or "none")


def _counted(outcome: Outcome) -> Check:
    """Compare the module's counters with the calls made."""
    calls = dict.fromkeys(ARMS, 0)
    for visit in outcome.of("hmm-visit"):
        calls[visit["arm"]] += int(visit["calls"])
    hits = sum(int(c["hits"]) for c in outcome.of("counters"))
    wrong = fell(outcome)
    return Check(
        "counters",
        hits == calls["on"] > 0 and not wrong,
        f"{hits} hits of {calls['on']}; unexpected fallbacks: {wrong or 'none'}",
    )
