# SPDX-License-Identifier: GPL-2.0-only
"""What the judges must see when one thing changes in what a guest really reported."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lab.machine.vm import Outcome
from lab.scenario import Scenario

Event = dict[str, Any]
Reports = list[tuple[Scenario, Outcome]]
DROP = None
HITS = re.compile(r"^hits .*", re.MULTILINE)


def on(event: str = "", **match: Any) -> Event:
    return {"event": event, **match} if event else match


def differ(words: int, pages: int = 9) -> Event:
    """Return what a comparison of struct pages says."""
    counts = f"pages={pages} words_differ={words} pageblocks_differ=0 first_pfn=1"
    return {"verdict": f"{counts} first_word=5 was=0 is=1"}


AFTER, UNLOAD = on("state", when="after"), on("state", when="unload")
DEVDAX, SHARED = "pmem-devdax-100g 7.3 --size 1040M", "pmem-devdax-100g 7.3 --size 2G"
ZEROED, TAKEN_AWAY = "thp-2m 6.1", "thp-2m 7.3 --init-on-alloc 1"
HOT, STREAMED = "hotplug-kmem-4g --arch", "hotplug-kmem-4g --arch x86_64 --kernel 7.3"
VMAP, VMALLOC = "vmap-check --arch", "upstream-vmalloc 7.3"
CHURN, READY = "prezero-stress 7.3", "prezero-2m"
CLEARED = [f"counters (2m {mode})" for mode in ("auto", "cached", "streaming")]
GIVEN_UP = "huge pages are given up"
FRAGMENTED = f"{GIVEN_UP}|memory is fragmented"
LEAKED = "ok 1 page table 1 refused # err=-12 mapped=0 tables=99 first=none"
FAILED = "Summary: fix_size_alloc_test passed: 0 failed: 1 repeat: 1"

# how the words of a run begin, which events are gone, or the first of which has what
# else, and how the names of the checks that fail then begin
CHANGES: list[tuple[str, Event, Event | None, str]] = [
    # struct pages
    (DEVDAX, on(label="last"), differ(1), "struct pages identical (last)"),
    (DEVDAX, on(label="last"), differ(0, pages=0), "struct pages identical (last)"),
    (DEVDAX, on(label="flipped"), differ(0), "a flipped word"),
    (DEVDAX, on(label="flipped"), differ(2), "a flipped word"),
    (DEVDAX, on(label="flipped"), DROP, "every requested step"),
    (DEVDAX, on(label="last"), DROP, "every requested step"),
    (DEVDAX, on("used"), on(bytes=0), "device used"),
    (SHARED, UNLOAD, DROP, "hooks attached|stamped by 3 CPUs"),
    ("upstream-hmm", on("hmm-case"), on(wrong="-14"), "test_hmm: "),
    ("upstream-hmm", on("hmm-case", arm="on"), DROP, "every requested step"),
    ("upstream-hmm", on("hmm-visit", arm="off"), on(calls=3), "device memory"),
    ("hmm-private", on(arm="on", label="round"), on(pages=9), "whole devices"),
    ("hmm-private", on("compare"), differ(1), "struct pages identical"),
    ("hmm-private", on("compare", label="flipped"), differ(0), "a flipped word"),
    ("hmm-private", on("compare"), DROP, "every requested step"),
    ("ndctl-odd", UNLOAD, DROP, "hooks attached|served in ranges"),
    ("ndctl-odd", on("compare"), DROP, "every namespace was compared"),
    ("ndctl-odd", on(label="flipped"), DROP, "every namespace was compared"),
    ("ndctl-odd", on(label="flipped"), differ(0), "a flipped word"),
    # zones
    (HOT, on(arm="on", step="plugged"), on(zones="x"), "zones and free"),
    (HOT, on("hot-state", arm="off", label="proof"), on(lists="y"), "zones and free"),
    (HOT, on(arm="on", step="plugged", label="proof"), DROP, "zones and free"),
    (HOT, on("hot-used"), on(moved=0), "memory used"),
    (STREAMED, on("hot-visit", label="kept"), on(label="x"), "struct pages"),
    (STREAMED, {**AFTER, "arm": "both"}, on(files={}), "counters|struct pages"),
    # bytes
    (ZEROED, on(label="planted"), on(wrong=0), "a planted byte is seen (2m)"),
    (ZEROED, on(label="planted"), on(folio=0), "a planted byte is seen (2m)"),
    (ZEROED, on(label="planted"), DROP, "a planted byte is seen"),
    (ZEROED, on(label="forced", arm="cached"), DROP, "backends forced"),
    (TAKEN_AWAY, on("start"), on(release="6.12"), "|".join(CLEARED)),
    ("thp-2m 7.3 --arch", on(label="forced"), on(tags_wrong=1), "every memory tag"),
    ("clear-cases", on("case", arm="auto"), on(calls=1), "zero, and nothing else"),
    ("clear-cases", on(label="corrupted-inside"), on(beside=1), "corrupted inside"),
    ("clear-cases", on(label="corrupted-beside"), on(beside=0), "corrupted beside"),
    ("clear-faults", UNLOAD, DROP, "hooks attached|served meanwhile"),
    ("copy-hugetlb", on("copied", label="planted"), on(wrong=0), "a wrong word"),
    ("copy-hugetlb", on("copied", label="planted"), DROP, "every requested step"),
    ("populate-guest", on(way="bulkmm-2"), on(faults=9), "every byte zero, and"),
    ("populate-guest", on(way="fallocate"), on(streaming=0), "taken for populated"),
    ("populate-guest", on(name="bound to node 1"), on(nodes="1."), "library: bound"),
    ("populate-guest", on(name="bound to node 1"), DROP, "library: bound"),
    ("populate-guest", on(name="cpus"), on(threads=1), "library: cgroup 2, two CPUs"),
    ("populate-guest", on("stage-case"), on(copied=0), "staged: from the page"),
    ("populate-guest", on("stage-case"), DROP, "staged: |" * 6 + "staged: "),
    ("populate-guest", on("pool-held"), on(bytes=0), "library: what was populated"),
    ("populate-fragmented", on(way="insist"), on(compacted=0), FRAGMENTED),
    ("populate-fragmented", on(way="give-up"), on(compacted=999), GIVEN_UP),
    ("populate-fragmented", on(way="give-up"), on(small=0), GIVEN_UP),
    ("populate-fragmented", on(way="give-up"), on(restored=0), GIVEN_UP),
    ("populate-fragmented", on(way="small"), on(small=9), "small pages need no"),
    # what clearing knows of a page's use, and how long it takes at a time
    ("clear-populate", on(way="vfio"), on(cached=1), "vfio bypasses the cache"),
    ("clear-populate", on(way="kvm-run"), on(streaming=1), "kvm-run is a touch"),
    ("clear-populate", on(way="vfio"), DROP, "every way"),
    ("clear-latency", on("late"), on(late_samples=0), "sampled"),
    ("clear-latency", on("traced"), on(unit=8192), "tracepoint"),
    ("clear-latency 6.12", on("bound"), on(latency_us=0), "longest unit ("),
    ("clear-latency 6.12", on("bound"), DROP, "every requested step"),
    # mappings
    (VMAP, on("checked", arm="off"), on(large=1), "arrays mapped as the model says (r"),
    (VMAP, on(label="planted", arm="off"), on(wrong=0), "a wrong page is seen (off)"),
    (VMAP, on("entry", arm="block"), DROP, "every requested step"),
    (VMAP, on("entry", arm="off"), on(arm="pte"), "vmap() of 64 pages is served (p"),
    ("vmap-faults", on(of="bad", arm="pte"), on(line="ok 1 null-first"), "as the ori"),
    ("vmap-faults", on(of="starve", arm="pte"), on(line="not ok 1 a"), "a (pte)|as t"),
    ("vmap-faults", on(of="starve", arm="pte"), on(line=LEAKED), "as the|no page t"),
    ("vmap-faults", on("ktap-plan", arm="off"), on(plan=99), "starve in off: all"),
    (VMALLOC, on("upstream", arm="block"), on(line=FAILED), "fix_size_alloc_test"),
    (VMALLOC, on("upstream", arm="block"), on(line="x"), "a result|fix_size_alloc"),
    # suites
    ("coexist", on("step"), DROP, "every part was run"),
    ("coexist", on("check"), on(ok="no"), ""),
    ("upstream-mm", on("mm", arm="on"), on(verdict="fail"), "cow: cow"),
    ("upstream-mm", on("mm", arm="on"), on(skipped=0), "cow: cow"),
    ("upstream-mm", on("mm", arm="on"), DROP, "cow: cow"),
    ("upstream-mm", on("mm-ran", arm="on"), DROP, "every category was run"),
    ("upstream-mm", {**UNLOAD, "arm": "streaming"}, DROP, "huge pages were served"),
    ("stress", on(process="stress-ng"), on(code=2), "stress-ng verifies"),
    ("stress", on(process="copies"), on(wrong=1), "hugetlb pages: copies"),
    ("stress", on(process="copies"), on(copies=0), "hugetlb pages: copies"),
    ("stress", on(process="device"), on(failed=1), "device: always came up"),
    ("stress", on("soak"), on(loads=1), "loaded more than once"),
    # pages that are ready
    (READY, on("prezero-visit", arm="on"), on(known=1), "known pages (on)"),
    (READY, on("prezero-visit", arm="both"), on(left=1), "known pages (both)"),
    (READY, on("prezero-counted"), on(used=1), "pages that the kernel counts"),
    (READY, on(way="fallocate", arm="clear"), on(ns=1), "clearing is counted (fall"),
    (READY, on(way="madvise", arm="off"), on(free_ns=0), "cost of a free"),
    (CHURN, on("prezero-churned"), DROP, "enough pages|every page zero"),
    (CHURN, on("check"), on(ok="no"), "the pool is exact"),
    (CHURN, UNLOAD, DROP, "served meanwhile"),
]


def failing(work: Scenario, outcome: Outcome) -> set[str]:
    checks = work.checks(outcome)
    assert checks
    return {check.name for check in checks if not check.ok}


def changed(outcome: Outcome, match: Event, new: Event | None) -> Outcome:
    """Return the events without those that match, or with the first one changed."""
    fits = [match.items() <= one.items() for one in outcome.events]
    at = fits.index(True)
    events = [one for one, gone in zip(outcome.events, fits, strict=True) if not gone]
    if new is not None:
        events = [*outcome.events]
        events[at] = {**events[at], **new}
    return replace(outcome, events=events)


def miscounted(outcome: Outcome, path: str) -> Iterator[tuple[str, Outcome]]:
    """Yield, for each visit, its arm and the outcome with other hits of a path."""
    name, before = f"{path}/stats", ""
    for at, event in enumerate(outcome.events):
        if event.get("when") == "before":
            before = event["files"].get(name, "")
        if event.get("when") == "after" and name in event["files"]:
            after = event["files"][name]
            moved = HITS.findall(before) != HITS.findall(after)
            replacement = before if moved else HITS.sub("hits 99999999", after)
            events = [*outcome.events]
            events[at] = {**event, "files": {**event["files"], name: replacement}}
            yield event["arm"], replace(outcome, events=events)


def all_is_seen(words: str, work: Scenario, outcome: Outcome) -> None:
    """Each change of such a run is seen, and does not look like another one.

    So is another wrong word in any kind of report; and, in each state of the module, a
    path's counter that did not move with the calls it served, or moved without any.
    """
    before = failing(work, outcome)
    if type(work).judge is Scenario.judge:  # those of the guest
        return
    for run, match, new, fails in CHANGES:
        if words.startswith(run):
            names = sorted(failing(work, changed(outcome, match, new)) - before)
            wanted = sorted(fails.split("|"))
            prefixes = [
                name[: len(one)] for name, one in zip(names, wanted, strict=False)
            ]
            assert (prefixes, len(names)) == (wanted, len(wanted)), (run, match, names)
    # in a run that has one already, another tells nothing
    events = () if before else outcome.events
    reports = [one for one in reversed(events) if "wrong" in one]
    for report in {one["event"]: one for one in reports}.values():  # the first of each
        variant = changed(outcome, report, {"wrong": int(report["wrong"]) + 1})
        assert len(failing(work, variant) - before) == 1, report
    detected: dict[str, bool] = {}
    for arm, variant in miscounted(outcome, work.path):
        detected[arm] = detected.get(arm) or bool(failing(work, variant) - before)
    assert all(detected.values()), detected
