# SPDX-License-Identifier: GPL-2.0-only
"""copy-hugetlb: hugetlb pages copied in every way, and what a broken one does."""

from dataclasses import dataclass

from bulkmm.lab import state, work
from bulkmm.lab.families.huge import right
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.state import Expect, Visit
from bulkmm.results import Check

PATH = "copy"
SERVED = ("cached", "streaming")
ARMS = ("absent", "off", *SERVED)
PLACES = ("first", "middle", "last")
WAYS = (
    *(f"{kind}-{place}" for kind in ("private", "file") for place in PLACES),
    *("pinned", "uffd-private", "uffd-shared"),
)
BROKEN = ("private-middle", "pinned")  # copying meets the page that is broken
KNOWN = "hwpoison"  # nobody gets as far as copying it
POOL = 48  # each broken page is lost to it
VERDICT = ("copies", "wrong", "child", "parent", "shift", "error", "told")


@dataclass(frozen=True)
class Work(work.Work):
    """Every way in every state of the module."""

    visited = "broken"

    def lines(self) -> list[str]:
        lines = ["must insmod /lib/modules/bulkmm_lab.ko"]
        lines.append(f"folios hugetlb 2048 {POOL}")
        chance = self.options.chance
        for arm in ARMS:
            lines.append(self.state(arm))
            lines += [
                f"copied way {way} keep" for way in chance.sample(WAYS, len(WAYS))
            ]
            lines += [*(f"broken {way}" for way in BROKEN), "known_broken"]
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        lines.append(f"copied {label} {WAYS[0]} break")
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def checks(self, outcome: Outcome) -> list[Check]:
        copied = state.visits(outcome, "copied")
        broken = state.visits(outcome, "broken")
        return [
            *(
                _seen(one.event["wrong"])
                if one.event["label"] == "planted"
                else right(
                    f"{one.event['way']}, {one.arm}: as the model has it",
                    [one.event],
                    f"{one.event['copies']} copies",
                    ok=one.event["copies"] > 0,
                )
                for one in copied
            ),
            state.judge("hits", copied, _hits),
            *(_same(way, broken) for way in (*BROKEN, KNOWN)),
            _redone(broken),
            state.attached(outcome, PATH),
        ]


def _seen(wrong: int) -> Check:
    return Check("a wrong word is seen", wrong == 1, f"{wrong} words wrong")


def _hits(visit: Visit) -> Expect:
    served = visit.event["copies"] if visit.arm in SERVED else 0
    return Expect(PATH, None if visit.arm == "absent" else visit.arm, served)


def _same(way: str, seen: list[Visit]) -> Check:
    """Check that a broken page has the same consequences in every state."""
    found = {
        one.arm: tuple(str(one.event.get(name, "")) for name in VERDICT)
        for one in seen
        if one.event["way"] == way
    }
    verdict = found.get("absent", ())
    dealt = any(value not in ("", "0") for value in verdict[2:])
    ok = set(found) == set(ARMS) and dealt
    return work.alike(f"{way}, a broken page: the same verdict", found, ok=ok)


def _redone(seen: list[Visit]) -> Check:
    """Check that the original dealt with what a machine check had cut short."""
    many = {
        f"{one.event['way']}, {one.arm}": one.fell(PATH)["poison"]
        for one in seen
        if one.arm in SERVED
    }
    wanted = {
        f"{way}, {arm}": int(way in BROKEN)
        for way in (*BROKEN, KNOWN)
        for arm in SERVED
    }
    return Check("the original meets the broken page", many == wanted, str(many))
