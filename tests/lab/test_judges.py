# SPDX-License-Identifier: GPL-2.0-only
"""Each family's judge: a guest that did all it should, then one thing changed.

Counters, modes and hooks are of bulkmm.lab.state, which test_state.py judges.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from bulkmm.lab import scenario
from bulkmm.lab.families import (
    cases,
    hmm,
    hotplug,
    huge,
    latency,
    populate,
    prezero,
    suites,
    use,
)
from bulkmm.lab.families import vmap as vmaps
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.scenario import SCENARIOS

Event = dict[str, Any]
Counts = dict[str, dict[str, int]]
HOOKS = {"alloc": 2, "hotplug": 3}
PASSED = "Summary: fix_size_alloc_test passed: 1 failed: 0 repeat: 1"
FAILED = "Summary: fix_size_alloc_test passed: 0 failed: 1 repeat: 1"
OLD = "6.12.107+deb13-cloud-amd64"


def event(kind: str, /, **fields: Any) -> Event:
    return {"event": kind, **fields}


def record(when: str, arm: str, modes: dict[str, str], counts: Counts) -> Event:
    """Return what the module shows."""
    files = {"version": "0.1", "clear/min_pages": "16", "clear/cached_max": "2097152"}
    files["memmap/backend"] = "generic [movnti=9]"
    for path in ("memmap", "clear", "alloc", "copy", "vmap", "hotplug", "prezero"):
        on = path in modes and modes[path] != "off"
        counted = {"hits": 0, "bytes": 0, "inflight": 0, **counts.get(path, {})}
        files[f"{path}/mode"] = f"[{modes.get(path, 'off')}]"
        files[f"{path}/stats"] = "\n".join(f"{k} {v}" for k, v in counted.items())
        said = "0 f: attached" if on else "-19 f: not attached"
        files[f"{path}/hook"] = "\n".join([said] * HOOKS.get(path, 1))
    return event("state", when=when, arm=arm, files=files)


def visit(
    said: Event, modes: dict[str, str] | None = None, **counts: Any
) -> list[Event]:
    """Return a visit between two records; without the module there are none."""
    arm = said["arm"]
    if arm == "absent":
        return [said]
    modes = modes or {}
    around = record("before", arm, modes, {}), record("after", arm, modes, counts)
    return [*around, said]


def left(path: str, mode: str, **counts: int) -> Event:
    return record("unload", mode, {path: mode}, {path: counts})


def graphs(arms: Iterable[str], *operations: str) -> list[Event]:
    said = {"lost": 0, "ns": 9, "functions": "f=3:100:90 "}
    return [
        event("graph", arm=a, operation=o, **said) for a in arms for o in operations
    ]


def compared(label: str, words: int = 0) -> Event:
    said = f"pages=9 words_differ={words} pageblocks_differ=0 first_pfn=1"
    said += " first_word=5 was=0 is=1"
    return event("compare", label=label, verdict=said)


def bind(arm: str, label: str = "round") -> list[Event]:
    said = event("bind", arm=arm, label=label, pages=1 << 18, ns=9, bind_ns=9)
    return visit(said, {"memmap": arm}, memmap={"hits": int(arm == "on")})


def pmem() -> list[Event]:
    arms = ("absent", "off", "on")
    labels = [compared("last"), compared("flipped", 1), compared("restored")]
    return [
        *bind("absent", "first"),
        *(e for arm in arms for e in bind(arm)),
        *(event("unbind", arm=arm, label="round", ns=9) for arm in arms),
        event("limit", ns=9),
        *bind("on", "proof"),
        *labels,
        event("used", bytes=9),
        *graphs(arms, "bind", "unbind"),
        left("memmap", "on"),
    ]


def hmm_run() -> list[Event]:
    found = []
    for arm in ("absent", "off", "on"):
        found += [
            event("hmm-case", arm=arm, name=f"{n}", wrong=0) for n in range(hmm.CASES)
        ]
        pages = hmm.CHUNKS * hmm.CHUNK // hmm.PAGE
        said = event("hmm-visit", arm=arm, calls=hmm.CHUNKS, pages=pages)
        hits = hmm.CHUNKS if arm == "on" else 0
        found += visit(said, {"memmap": arm}, memmap={"hits": hits})
    return [*found, left("memmap", "on")]


def step(arm: str, label: str, name: str, contiguous: int) -> Event:
    zones = f"0 Normal 1 2 3 1 1 Movable 4 5 5 {contiguous}"
    return event("hot-state", arm=arm, label=label, step=name, zones=zones, lists="x")


def plugged() -> list[Event]:
    work = scenario.find("hotplug-kmem-4g").make(rounds=1, seed=1)
    found = []
    for label, arms in [*work.plan, (hotplug.KEPT, (hotplug.BOTH,))]:  # type: ignore[attr-defined]
        for arm in arms:
            on, both = arm in hotplug.SERVED, arm == hotplug.BOTH
            kept = label == hotplug.KEPT
            found += [step(arm, label, "plugged", 0), step(arm, label, "offline", 1)]
            said = event("hot-visit", arm=arm, label=label, plug_ns=9, unplug_ns=9)
            modes = {
                "hotplug": "on" if on else "off",
                "alloc": "auto" if both else "off",
            }
            cleared = {"bytes": 64 << 20, "streamed": 0 if kept else 64 << 20}
            seen = visit(
                said,
                modes,
                hotplug={"hits": 9 * on, "fallback_walk": 1},
                alloc=cleared if both else {},
            )
            if kept:
                seen[1]["files"]["clear/cached_max"] = f"{hotplug.MOST}"
            found += seen
    found += graphs(hotplug.ARMS, "plug", "unplug")
    found += [event("hot-used", arm=arm, bytes=9, moved=2) for arm in hotplug.EVERY]
    return [*found, left("hotplug", "on")]


def faulted(
    arm: str, label: str = "round", backend: str = "", **more: Any
) -> list[Event]:
    said = event("visit", label=label, arm=arm, backend=backend, kib=2048, folios=4)
    said |= {"way": "write-first", "ns": 9, "wrong": 0, "folio": 0, "offset": 0}
    said |= {"word": "0x0", "tags": 9, "tags_wrong": 0, **more}
    hits = 4 if arm in huge.SERVING else 0
    return visit(said, {"clear": arm}, clear={"hits": hits})


def thp() -> list[Event]:
    last = {"wrong": 1, "folio": 3, "offset": (2 << 20) - 8, "tags_wrong": 1}
    return [
        event("start", release=OLD),
        event("zeroing", allocator="off"),
        *(e for arm in huge.ARMS for e in faulted(arm)),
        *(e for arm in huge.LISTS for e in faulted(arm, "forced", "b")),
        *faulted("streaming", "planted", **last),
        left("clear", "auto"),
    ]


def called(label: str, arm: str, wrong: int = 0, beside: int = 0) -> list[Event]:
    said = event("case", label=label, arm=arm, backend="", order=9, calls=cases.HINTS)
    said |= {"wrong": wrong, "beside": beside, "hint": "0x0", "offset": 0}
    on = arm in huge.SERVING
    orders = f"0 {9}" if label == "plain" else 9  # a single number comes as one
    moved = {"hits": cases.HINTS * on}
    moved["fallback_small"] = cases.HINTS * (on and label == "plain")
    ended = event("cases", label=label, arm=arm, orders=orders)
    return [said, *visit(ended, {"clear": arm}, clear=moved)]


def zeroed() -> list[Event]:
    half = (cases.HINTS + 1) // 2
    return [
        *(e for arm in huge.ARMS for e in called("plain", arm)),
        *called("corrupted-inside", "streaming", wrong=cases.HINTS),
        *called("corrupted-beside", "streaming", beside=half),
        *(
            event("calls", arm=arm, order=order, calls=9, median_ns=100 + (1 << order))
            for arm in cases.TIMED
            for order in (0, 2, 3)
        ),
    ]


def late() -> list[Event]:
    bound = {"list": "cached", "gap_ns": 1_400_000, "latency_us": 1000}
    bound |= {"unit": 1 << 20, "ns": 20_000_000, "bytes": 2 << 20}
    return [
        event("preemption", model="none"),
        *(
            event("late", arm=a, kib=kib, way=way, late_samples=9, late_ns=9)
            for a in latency.ARMS
            for kib in latency.POOLS
            for way in latency.WAYS.values()
        ),
        event("traced", order=9, bytes=2 << 20, streaming=1, unit=4096),
        event("bound", backend="b", **bound),
        event("bound", backend="b", **{**bound, "gap_ns": 9_000_000}),  # disturbed
    ]


def brought(way: str, cached_max: int = 1) -> Event:
    counts = [0, 4] if way in use.TOUCHED and cached_max else [4, 0]
    said = dict(zip(("streaming", "cached"), counts, strict=True))
    return event("brought", way=way, cached_max=cached_max, **said)


def populated() -> list[Event]:
    ways = (*use.TOUCHING, *use.POPULATING, *use.LOCKED, *use.GUESTS, "vfio")
    return [event("start", release=OLD), *map(brought, ways), brought("touch", 0)]


def soaked() -> list[Event]:
    one = {"folios": 5, "refused": 0, "wrong": 0, "folio": 0, "offset": 0, "word": 0}
    found = [event("soaked", process=n, **one) for n in range(1, 5)]
    found += [event("zeroing", allocator="off"), event("soak", turns=9, loads=1)]
    return [*found, left("clear", "auto", hits=7)]


def pooled() -> list[Event]:
    folios = populate.SIZE * populate.MIB // populate.FOLIO
    found = [event("start", release=OLD), event("zeroing", allocator="off")]
    for kind, ways in populate.WAYS.items():
        for way in ways:
            counts = [0, folios] if way == populate.TOUCH else [folios, 0]
            said = event("visit", label=populate.TRACED, arm="auto", kind=kind, way=way)
            said |= dict(zip(("streaming", "cached"), counts, strict=True))
            said |= {"wrong": 0, "faults": 0}
            found += visit(said, {"clear": "auto"}, clear={"hits": folios})
    names = [(case.name, case) for case in populate.CASES]
    names += [(case.words.split()[1], case) for case in populate.GROUPED]
    for name, case in names:
        wanted = {key: value for key, value in case.says.items() if value is not None}
        found.append(event("pool-case", name=name, **{"faults": 0, **wanted}))
    found.append(event("pool-case", name="the rest of the file", error=0, wrong=0))
    return [*found, event("pool-held", bytes=30 << 20), left("clear", "auto")]


def mapped(arm: str, label: str, result: str = "vmap-order9") -> list[Event]:
    said = event("visit", label=label, arm=arm, result=result, map="3,4", unmap="5")
    hits = 24 if arm in ("pte", "block") and label != vmaps.LIMIT else 0
    return visit(said, {"vmap": arm}, vmap={"hits": hits, "fallback_short": 3})


def arrays(arm: str, label: str, wrong: int = 0) -> Event:
    said = {"arrays": 5, "pages": 50, "small": 50, "large": 0, "first": "none"}
    return event("checked", label=label, arm=arm, wrong=wrong, **said)


def vmap() -> list[Event]:
    found = mapped("absent", "first")
    for arm in vmaps.ARMS:
        found += mapped(arm, "round")
        found += [arrays(arm, "random"), arrays(arm, "planted", 2)]
    return [
        *found,
        *mapped("off", vmaps.LIMIT, "vmap-order9-scan"),
        left("vmap", "pte"),
    ]


def ktap(arm: str, line: str, of: str = "bad") -> list[Event]:
    plan = event("ktap-plan", arm=arm, of=of, plan=1)
    return [event("ktap", arm=arm, of=of, line=line), plan]


def asked() -> list[Event]:
    """Return parts of what the other scenarios of the family report."""
    found = []
    for arm in vmaps.ARMS:
        found += ktap(arm, "ok 1 null-first # err=-12 mapped=0")
        fewer = "512" if arm == "block" else "188"
        found += ktap(arm, f"ok 1 page table 3 refused # mapped={fewer}", "starve")
        found.append(event("upstream", arm=arm, line=PASSED))
        if arm != "absent":
            on = {"hits": int(arm != "off")}
            found += visit(event("entry", arm=arm, name="vmap"), {"vmap": arm}, vmap=on)
    said = {**arrays("toggled", "x"), "event": "soaked", "large": 3}
    found += [{**said, "process": n} for n in (1, 1, 2)]
    return [*found, event("soak", turns=9, loads=2), left("vmap", "pte", hits=3)]


def ran() -> list[Event]:
    said = {"category": "cow", "name": "cow", "verdict": "pass", "attempt": 1}
    said |= {"passed": 3, "failed": 0, "skipped": 1}
    said_of = {"category": "cow", "tests": 1}
    found = [event("mm-ran", arm=arm, **said_of) for arm in suites.STATES]
    found.append(event("mm-unbuilt", name="planted"))
    found += [event("mm", arm=arm, **said) for arm in suites.STATES]
    modes = {"on": "auto", "streaming": "streaming"}
    for arm, mode in modes.items():
        found.append(record("unload", arm, {"clear": mode}, {"clear": {"hits": 1}}))
    return found


def odd() -> list[Event]:
    work = scenario.find("ndctl-odd").make(seed=1, rounds=1)
    many = len(work.layouts[0][1])  # type: ignore[attr-defined]
    found = [*(compared("l") for _ in range(many)), compared("flipped", 1)]
    return [*found, left("memmap", "on", hits=many**2)]


def stressed() -> list[Event]:
    hits = {path: {"hits": 1} for path in ("memmap", "clear", "copy", "vmap")}
    modes = {"memmap": "on", "clear": "auto", "copy": "on", "vmap": "block"}
    return [
        event("soaked", process="stress-ng", code=0),
        event("soaked", process="device", binds=3, failed=0),
        event("soaked", process="folios", folios=3, wrong=0),
        event("soaked", process="copies", copies=8, wrong=0),
        event("soak", loads=2, turns=9),
        record("unload", "on", modes, hits),
    ]


def ready() -> list[Event]:
    pages = scenario.find("prezero-2m").shape.pages
    found = [event("start", release=OLD)]
    for arm, way in product(prezero.ARMS, prezero.WAYS):
        known = pages if arm in prezero.READY else 0
        said = event("prezero-visit", arm=arm, way=way, known=known, left=0, wrong=0)
        modes = {"prezero": "on"} if arm in prezero.HOOKED else {}
        found += visit(said, modes, prezero={"hits": known})
    return [*found, left("prezero", "on", hits=pages)]


def churned() -> list[Event]:
    churns = [event("prezero-churned", code=0, pages=9, wrong=0) for _ in range(2)]
    check = event("check", name="the pool is exact", ok="yes", detail="")
    return [
        check,
        *churns,
        event("prezero-stress", turns=2),
        left("prezero", "on", hits=3),
    ]


def coexisted() -> list[Event]:
    return [event("start"), event("step", name="fentry"), event("start")]


GIB = 1 << 30
RUNS: dict[str, tuple[str, dict[str, Any], Callable[[], list[Event]]]] = {
    "pmem": ("pmem-fsdax-100g", {"seed": 1, "rounds": 1, "size": GIB}, pmem),
    "hmm": ("upstream-hmm", {"seed": 1, "rounds": 1}, hmm_run),
    "hotplug": ("hotplug-kmem-4g", {"seed": 1, "rounds": 1}, plugged),
    "thp": ("thp-2m", {"seed": 1, "rounds": 1, "ways": ("write-first",)}, thp),
    "cases": ("clear-cases", {"seed": 1, "rounds": 1}, zeroed),
    "latency": ("clear-latency", {"seed": 1, "rounds": 1}, late),
    "use": ("clear-populate", {}, populated),
    "soak": ("clear-faults", {}, soaked),
    "populate": ("populate-guest", {"seed": 1, "rounds": 1}, pooled),
    "vmap": ("vmap-order9", {"seed": 1, "rounds": 1}, vmap),
    "asked": ("vmap-faults", {"seed": 1}, asked),
    "mm": ("upstream-mm", {"parts": ("cow",)}, ran),
    "odd": ("ndctl-odd", {"seed": 1, "rounds": 1}, odd),
    "stress": ("stress", {}, stressed),
    "prezero": ("prezero-2m", {"seed": 1, "rounds": 1}, ready),
    "churn": ("prezero-stress", {"folios": 18}, churned),
    "coexist": ("coexist", {"parts": ("fentry", suites.KEXEC)}, coexisted),
}
UNCOUNTED = ("populate", "prezero")  # their results are work, which a guest counts
PARTIAL = {vmaps.WHOLE}  # of "asked"


def failing(run: str, events: list[Event]) -> set[str]:
    name, options, _ = RUNS[run]
    checks = scenario.find(name).make(**options).checks(outcome(events))
    assert checks
    found = {check.name for check in checks if not check.ok}
    return found - PARTIAL if run == "asked" else found


def outcome(events: list[Event]) -> Outcome:
    return Outcome(events)


@pytest.mark.parametrize("run", RUNS)
def test_a_run_that_held(run: str) -> None:
    name, options, made = RUNS[run]
    assert failing(run, made()) == set()
    work = scenario.find(name).make(**options)
    kept = outcome(made())
    found, _ratios = work.results(kept)
    assert bool(found) is (work.scenario.measures and run not in UNCOUNTED)
    assert work.facts(kept)


def changed(events: list[Event], match: Event, new: Event | None) -> list[Event]:
    """Return the events with the first one that matches changed, or without it."""
    at = next(n for n, e in enumerate(events) if match.items() <= e.items())
    return [*events[:at], *([{**events[at], **new}] if new else []), *events[at + 1 :]]


AFTER = {"event": "state", "when": "after"}
UNLOAD = {"event": "state", "when": "unload"}
GONE = None


def on(event: str = "", **match: Any) -> Event:
    return {"event": event, **match} if event else match


# what is changed in which run, and what the names of the checks that fail begin with
@pytest.mark.parametrize(
    ("run", "match", "new", "fails"),
    [
        # records that are missing are counters that did not move
        ("pmem", {**AFTER, "arm": "on"}, GONE, "counters"),
        ("hmm", {**AFTER, "arm": "on"}, GONE, "counters"),
        ("hotplug", {**AFTER, "arm": "both"}, GONE, "counters|struct pages cleared"),
        ("thp", {**AFTER, "arm": "auto"}, GONE, "counters (2m auto)"),
        ("cases", {**AFTER, "arm": "auto"}, GONE, "counters"),
        ("populate", AFTER, GONE, "counters (thp touch)"),
        ("vmap", {**AFTER, "arm": "pte"}, GONE, "hits (pte)"),
        ("asked", {**AFTER, "arm": "pte"}, GONE, "vmap() is seen (pte)"),
        ("odd", UNLOAD, GONE, "hooks attached|served in ranges"),
        ("soak", UNLOAD, GONE, "hooks attached|served meanwhile"),
        ("mm", {**UNLOAD, "arm": "streaming"}, GONE, "huge pages were served"),
        # struct pages
        ("pmem", on(label="last"), compared("", 1), "struct pages identical ()"),
        ("pmem", on(label="flipped"), compared("flipped", 0), "a flipped word"),
        ("pmem", on(label="flipped"), compared("flipped", 2), "a flipped word"),
        ("pmem", on("used"), on(bytes=0), "device used"),
        ("pmem", on("graph"), on(lost=1), "time by function"),
        ("pmem", on("graph"), on(functions=""), "time by function"),
        ("hmm", on("hmm-case"), on(wrong=1), "test_hmm: 0"),
        ("hmm", on("hmm-case"), on(wrong="-14"), "test_hmm: 0"),
        ("hmm", on("hmm-case"), GONE, "all that was asked"),
        ("hmm", on("hmm-visit"), on(calls=3), "device memory brought up"),
        ("odd", on("compare"), GONE, "every namespace was compared"),
        ("odd", on(label="flipped"), GONE, "every namespace was compared"),
        ("odd", on(label="flipped"), compared("flipped", 0), "a flipped word"),
        # zones
        ("hotplug", on(arm="on", step="plugged"), on(zones="x"), "zones and free"),
        ("hotplug", on(arm="off", label="proof"), on(lists="y"), "zones and free"),
        ("hotplug", on(arm="on", step="plugged"), GONE, "zones and free"),
        ("hotplug", on("hot-used"), on(moved=0), "memory used"),
        ("hotplug", on("hot-visit", label="kept"), on(label="x"), "struct pages"),
        # bytes
        ("thp", on(label="round"), on(wrong=1), "every byte zero (2m write-first)"),
        ("thp", on(label="planted"), on(wrong=0), "a planted byte is seen (2m)"),
        ("thp", on(label="planted"), on(folio=2), "a planted byte is seen (2m)"),
        ("thp", on(label="planted"), GONE, "a planted byte is seen"),
        ("thp", on(label="forced"), on(tags_wrong=1), "every memory tag zero"),
        ("thp", on(label="forced"), GONE, "backends forced"),
        ("cases", on("case", arm="auto"), on(wrong=1), "zero, and nothing else"),
        ("cases", on("case", arm="auto"), on(calls=1), "zero, and nothing else"),
        ("cases", on(label="corrupted-inside"), on(beside=1), "corrupted inside"),
        ("cases", on(label="corrupted-beside"), on(beside=0), "corrupted beside"),
        ("soak", on("soaked"), on(wrong=1), "every byte zero (process 1)"),
        ("soak", on("soaked"), on(folios=0), "every byte zero (process 1)"),
        ("populate", on("visit", kind="2m"), on(wrong=1), "every byte zero, and"),
        ("populate", on(way="bulkmm-2"), on(faults=9), "every byte zero, and"),
        ("populate", on(way="fallocate"), on(streaming=0), "taken for populated"),
        ("populate", on(name="bound to node 1"), on(nodes="1."), "library: bound to"),
        ("populate", on(name="bound to node 1"), GONE, "library: bound to"),
        ("populate", on(name="cpus"), on(threads=1), "library: cgroup 2, two CPUs"),
        ("populate", on("pool-held"), on(bytes=0), "library: what was populated"),
        # what clearing knows of a page's use, and how long it takes at a time
        ("use", on(way="vfio"), on(cached=1), "vfio bypasses the cache"),
        ("use", on(way="kvm-run"), on(streaming=1), "kvm-run is a touch"),
        ("use", on(way="vfio"), GONE, "every way"),
        ("latency", on("late"), on(late_samples=0), "sampled"),
        ("latency", on("traced"), on(unit=8192), "tracepoint"),
        ("latency", on("bound"), on(gap_ns=1_550_000), "longest unit (cached, b)"),
        # mappings
        ("vmap", on("checked"), on(wrong=1), "arrays mapped as the model says (ra"),
        ("vmap", on("checked"), on(large=1), "arrays mapped as the model says (ra"),
        ("vmap", on(label="planted"), on(wrong=0), "a wrong page is seen (absent)"),
        ("vmap", on("visit", arm="pte"), GONE, vmaps.WHOLE),
        ("asked", on("soaked"), on(wrong=1), "arrays mapped as the model says (so"),
        ("asked", on(of="bad", arm="pte"), on(line="ok 1 null-first"), "as the orig"),
        ("asked", on(of="starve", arm="pte"), on(line="not ok 1 a"), "a (pte)|as the"),
        ("asked", on("ktap-plan", arm="off"), on(plan=2), "bad in off: all lines"),
        ("asked", on("upstream", arm="pte"), on(line=FAILED), "fix_size_alloc_test"),
        ("asked", on("upstream", arm="pte"), on(line="x"), "a result|fix_size_alloc"),
        # suites
        ("mm", on("mm", arm="on"), on(verdict="fail"), "cow: cow"),
        ("mm", on("mm", arm="on"), on(skipped=0), "cow: cow"),
        ("mm", on("mm", arm="on"), GONE, "cow: cow"),
        ("mm", on("mm-ran", arm="on"), GONE, "every category was run"),
        ("stress", on(process="stress-ng"), on(code=2), "stress-ng verifies"),
        ("stress", on(process="folios"), on(wrong=1), "huge pages: every byte zero"),
        ("stress", on(process="copies"), on(wrong=1), "hugetlb pages: copies"),
        ("stress", on(process="copies"), on(copies=0), "hugetlb pages: copies"),
        ("stress", on(process="device"), on(failed=1), "device: always came up"),
        ("stress", on("soak"), on(loads=1), "loaded more than once"),
        # pages that are ready
        ("prezero", {**AFTER, "arm": "ready"}, GONE, "known pages (ready)"),
        ("prezero", on("prezero-visit", arm="both"), on(wrong=1), "every byte zero (m"),
        ("prezero", on("prezero-visit", arm="on"), on(known=1), "known pages (on)"),
        ("prezero", on("prezero-visit", arm="both"), on(left=1), "known pages (both)"),
        ("churn", on("prezero-churned"), on(wrong=1), "every page zero"),
        ("churn", on("prezero-churned"), on(pages=8), "enough pages"),
        ("churn", on("check"), on(ok="no"), "the pool is exact"),
        ("churn", UNLOAD, GONE, "served meanwhile"),
        ("coexist", on("start"), GONE, "every part was run"),
        ("coexist", on("step"), GONE, "every part was run"),
        (
            "coexist",
            on("step"),
            event("check", name="a", ok="no", detail=""),
            "a|every",
        ),
    ],
)
def test_one_thing_changed(
    run: str, match: Event, new: Event | None, fails: str
) -> None:
    found = sorted(failing(run, changed(RUNS[run][2](), match, new)))
    wanted = sorted(fails.split("|"))
    assert [name[: len(one)] for name, one in zip(found, wanted, strict=True)] == wanted


def test_a_test_that_is_flaky_by_itself_may_be_so_with_the_module() -> None:
    said = ran()
    again = [{**one, "verdict": "fail"} for one in said if one["event"] == "mm"]
    assert failing("mm", [*said, *again[:2]]) == set()
    assert failing("mm", [*said, again[1]]) == set()  # the first of each is the same
    on = {"event": "mm", "arm": "on"}
    assert failing("mm", changed([*said, again[2]], on, {"verdict": "fail"})) == {
        "cow: cow"
    }


def test_a_category_of_the_kernels_tests_must_have_run_one() -> None:
    said = [one for one in ran() if one["event"] != "mm"]
    assert failing("mm", said) == {"tests passed", "every category was run"}
    older = [one | {"tests": 0} for one in said]
    assert failing("mm", older) == {"tests passed"}


def test_huge_pages_that_the_allocator_clears() -> None:
    """On a later kernel, and only where path alloc is on."""
    said = changed(thp(), {"event": "start"}, {"release": "7.3.4+deb13-cloud-amd64"})
    said = changed(said, {"event": "zeroing"}, {"allocator": "on"})
    counted = {f"counters (2m {arm})" for arm in huge.SERVING}
    assert failing("thp", said) == counted
    for one in said:
        if one["event"] == "state" and one["when"] == "after" and one["arm"] != "off":
            moved = {"clear": {}, "alloc": {"hits": 4}}
            one["files"] = record("", "", {"alloc": "on", "clear": one["arm"]}, moved)[
                "files"
            ]
    assert failing("thp", said) == set()


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.name)
def test_a_job_follows_the_seed_and_silence_fails(one: scenario.Scenario) -> None:
    seeds = [{"seed": n} if "seed" in one.takes else {} for n in (1, 1, 2)]
    first, same, other = (one.make(**seed) for seed in seeds)
    modules = ["kvm", "vfio_iommu_type1"]
    assert first.job(modules) == same.job(modules)
    measured = "rounds" in one.takes and one.name != "clear-latency"
    assert (first.job(modules) != other.job(modules)) or not measured
    start = event("start", release=OLD)
    told = [event("zeroing", allocator="off"), event("preemption", model="none")]
    told += [event("soak", turns=0, loads=0), event("pool-held", bytes=0)]
    told += [event("pool-case", name="the rest of the file", error=1, wrong=0)]
    if one.name != "stress":
        checks = first.checks(outcome([start, *told]))
        assert [check for check in checks if not check.ok]
    if "break_one_word" in one.takes:
        broken = one.make(break_one_word=True, **seeds[0])
        assert broken.job(modules) != first.job(modules)
