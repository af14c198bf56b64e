# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path copy: hugetlb pages are copied, broken ones among them."""

import sys
from collections.abc import Iterable

from bulkmm.results.model import Check
from lab import state
from lab.machine.kernel_kinds import PATCHED_HOOKED
from lab.machine.vm import Outcome
from lab.scenario import base
from lab.scenario.base import (
    LACKING,
    Scenario,
    check_alike,
    check_reports,
    check_values,
)
from lab.state import Expect, Visit

SERVING = ("cached", "streaming")
ARMS = ("absent", "off", *SERVING)
PLACES = ("first", "middle", "last")
WAYS = (
    *(f"{kind}-{place}" for kind in ("private", "file") for place in PLACES),
    *("pinned", "uffd-private", "uffd-shared"),
)
BROKEN = ("private-middle", "pinned")  # copying meets the page that is broken
HWPOISON = "hwpoison"  # nobody gets as far as copying it
REDONE = "6.12"  # 6.1 copies without regard to machine checks
POOL = 48  # each broken page is lost to it
VERDICT = ("copies", "wrong", "child", "parent", "shift", "error", "told")


class Intact(Scenario):
    """Every way in every state of the module, and no broken page."""

    def lines(self) -> list[str]:
        lines = ["must insmod /lib/modules/bulkmm_lab.ko"]
        lines.append(f"folios hugetlb 2048 {POOL}")
        chance = self.chance
        for arm in ARMS:
            lines.append(self.state(arm))
            lines += [
                f"copied way {way} keep" for way in chance.sample(WAYS, len(WAYS))
            ]
            lines += self.broken()
        label = "broken-on-purpose" if self.options.break_one_word else "planted"
        lines.append(f"copied {label} {WAYS[0]} break")
        return [*lines, "state absent", "must rmmod bulkmm_lab"]

    def broken(self) -> list[str]:
        """Return the lines of pages that are broken."""
        return []

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        copied = state.list_visits(outcome, "copied")
        for visit in copied:
            if visit.event["label"] == "planted":
                yield check_values("a wrong word is seen", [visit.event], {"wrong": 1})
            else:
                name = f"{visit.event['way']}, {visit.arm}: as the model has it"
                yield check_values(
                    name, [visit.event], {"wrong": 0}, ok=visit.event["copies"] > 0
                )
        yield check_reports(self.lines(), copied=len(copied))
        yield state.judge_visits("hits", copied, _hits)
        yield state.check_attached(outcome, "copy")


class Copy(Intact):
    """The same with broken pages."""

    visited = "broken"

    def broken(self) -> list[str]:
        return [*(f"broken {way}" for way in BROKEN), "known_broken"]

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        yield from super().judge(outcome)
        broken = state.list_visits(outcome, "broken")
        for way in (*BROKEN, HWPOISON):
            yield _compare_verdicts(way, broken)
        yield state.judge_visits("the original meets the broken page", broken, _redone)


def _hits(visit: Visit) -> Expect:
    return Expect("copy", visit.arm, visit.event["copies"] * (visit.arm in SERVING))


def _compare_verdicts(way: str, visits: list[Visit]) -> Check:
    """Check that a broken page has the same consequences in every state."""
    verdicts = {
        visit.arm: tuple(str(visit.event.get(name, "")) for name in VERDICT)
        for visit in visits
        if visit.event["way"] == way
    }
    verdict = verdicts.get("absent", ())
    dealt = any(value not in ("", "0") for value in verdict[2:])
    ok = set(verdicts) == set(ARMS) and dealt
    return check_alike(f"{way}, a broken page: the same verdict", verdicts, ok=ok)


def _redone(visit: Visit) -> Expect:
    """Return what is expected: the original does what a machine check cut short."""
    poison = int(visit.arm in SERVING and visit.event["way"] in BROKEN)
    return Expect("copy", visit.arm, 0, sys.maxsize, {"poison": poison})


SCENARIOS = (
    Copy(
        "copy-hugetlb",
        "hugetlb pages copied after a fork, by a write to a private mapping of a "
        "file, as pinned memory, by UFFDIO_COPY; and pages that are broken",
        "copies and sources against a model, hits counted; a broken page has the "
        "same consequences with the path on as without it; a wrong word must be seen",
        family="copy",
        path="copy",
        takes=("seed", "break_one_word"),
        runs=base.Runs(
            quick=("",),
            debug=dict.fromkeys(("cachyos", *PATCHED_HOOKED), ("",)),
        ),
        needs=base.Needs(
            lacking_debug=LACKING,  # io_uring
            since=REDONE,
            x86_only="the path is",
        ),
        seconds=40,
        machine=base.Machine(
            memory=1024,
        ),
    ),
    Intact(
        "copy-intact",
        "hugetlb pages copied in the same ways, none of them broken: for kernels that "
        "copy without regard to machine checks",
        "copies and sources against a model, hits counted; a wrong word must be seen",
        family="copy",
        path="copy",
        takes=("seed", "break_one_word"),
        runs=base.Runs(quick=("",)),
        needs=base.Needs(before=REDONE, x86_only="the path is"),
        seconds=40,
        machine=base.Machine(memory=1024),
    ),
)
