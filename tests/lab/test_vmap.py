# SPDX-License-Identifier: GPL-2.0-only
"""The vmap scenarios: their jobs, how reports are judged, and reduced runs."""

from pathlib import Path
from typing import Any

import pytest
from lablib import lab, passed, series

from bulkmm.errors import Exit
from bulkmm.lab import scenario
from bulkmm.lab.choices import ARMS
from bulkmm.lab.families import vmap
from bulkmm.lab.machine import kernels, klog
from bulkmm.lab.machine.vm import Outcome

OLD = "WARNING: CPU: 0 PID: 1 at mm/vmalloc.c:556 vmap_small_pages_range_noflush+0x4"
NEW = "WARNING: mm/vmalloc.c:565 at vmap_small_pages_range_noflush+0x449/0x5e0"


def work(name: str = "vmap-order9", **chosen: Any) -> Any:
    return scenario.find(name).make(**{"seed": 1, **chosen})


def lines(name: str = "vmap-order9", **chosen: Any) -> list[str]:
    return work(name, **chosen).job([]).splitlines()


def judged(
    *events: dict[str, Any],
    log: str = "",
    name: str = "vmap-order9",
    **chosen: Any,
) -> dict[str, bool]:
    """Return the verdicts by name."""
    outcome = Outcome(lambda _event: None, list(events), log=log)
    found = {c.name: c.ok for c in work(name, **chosen).checks(outcome)}
    assert found.pop(vmap.WHOLE) is False  # of a run, these are only parts
    return found


def checked(**changed: Any) -> dict[str, Any]:
    plain = {"event": "checked", "label": "random", "arm": "pte", "hits": 1}
    plain |= {"arrays": 5, "pages": 50, "small": 50, "large": 0}
    return {**plain, "wrong": 0, "first": "none", **changed}


def visit(**changed: Any) -> dict[str, Any]:
    plain = {"event": "visit", "label": "round", "arm": "pte", "hits": 24}
    return {**plain, "result": "vmap-order9", "map": "3,4", "unmap": "5", **changed}


def ktap(arm: str, line: str, of: str = "bad") -> dict[str, Any]:
    return {"event": "ktap", "arm": arm, "of": of, "line": line}


def test_every_round_visits_every_arm() -> None:
    job = lines("ioremap-1m", rounds=3)
    arms = [li.split()[1] for li in job if li.startswith("vmap_arm")]
    visits = [li for li in job if li.startswith("timed round ")]
    assert len(visits) == 3 * 2 * len(ARMS) == work("ioremap-1m", rounds=3).steps
    assert set(arms[1 : 1 + len(ARMS)]) == set(ARMS)
    assert "timed round ioremap-1m-map ioremap-map 100 8 1048576 0x20000000" in job


def test_reading_an_array_is_timed_where_it_takes_a_time() -> None:
    limit = "timed limit vmap-order9-scan scan 3 8"
    assert lines("vmap-order9", rounds=3).count(limit) == 3
    for name in ("vmap-1page", "ioremap-1m"):
        assert not [li for li in lines(name) if "scan" in li]


def test_order_follows_the_seed() -> None:
    assert lines() == lines()
    assert lines() != lines(seed=2)


def test_blocks_are_wanted_in_block_mode_only() -> None:
    for job in (lines(), lines("vmap-check")):
        arm = ""
        for line in job:
            if line.startswith("vmap_arm "):
                arm = line.split()[1]
            if line.startswith("checked "):
                wanted = "always" if arm == "block" else "never"
                assert line.split()[2] == wanted


def test_the_modes_that_map_share_all_arrays() -> None:
    said = [li.split() for li in lines("vmap-check") if " random " in li]
    assert sorted(int(words[3]) for words in said) == [10000, 10000, 50000, 50000]


def test_physical_range_is_reserved() -> None:
    assert work().cmdline == "memmap=16M$512M"
    assert vmap.PHYSICAL == 512 << 20


def test_chosen_arms() -> None:
    job = lines("vmap-faults", arms=("absent",), seconds=7)
    assert not [li for li in job if li.startswith("vmap_arm ") and "absent" not in li]
    assert "vmap_soak 7 1" in job
    whole = lines("vmap-faults")
    assert f"vmap_soak 60 1 {' '.join(ARMS[1:])}" in whole
    assert len([li for li in whole if li.startswith("bad ")]) == 4 * len(vmap.BAD)


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({}, True),
        ({"wrong": 1}, False),
        ({"arrays": 0}, False),
        ({"large": 1}, False),
        ({"large": 1, "arm": "block"}, True),
        ({"large": 1, "arm": "toggled", "label": "soak-1"}, True),
    ],
)
def test_arrays(changed: dict[str, Any], *, ok: bool) -> None:
    planted = checked(label="planted", wrong=2)
    found = judged(checked(**changed), planted, arms=("absent",))
    assert next(v for k, v in found.items() if k.startswith("arrays mapped")) is ok


def test_pieces_of_a_soak_are_one() -> None:
    one = checked(arm="toggled", label="soak-1", large=3)
    name = "arrays mapped as the model says (soak-1 toggled)"
    assert judged(one, one, arms=("absent",)) == {name: True}
    wrong = {**one, "wrong": 1}
    assert judged(one, wrong, one, arms=("absent",)) == {name: False}


@pytest.mark.parametrize(("wrong", "ok"), [(2, True), (0, False), (3, False)])
def test_planted_page(wrong: int, *, ok: bool) -> None:
    found = judged(checked(label="planted", wrong=wrong), arms=("absent",))
    assert found == {"a wrong page is seen (pte)": ok}


def test_no_planted_page_fails() -> None:
    found = judged(checked(), arms=("absent",))
    assert found["a wrong page is seen"] is False
    left = judged(checked(), arms=("absent",), break_one_word=True)
    assert "a wrong page is seen" not in left


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({}, True),
        ({"hits": 23}, False),
        ({"arm": "off", "hits": 0}, True),
        ({"arm": "off"}, False),
        ({"arm": "absent"}, False),
        ({"result": "vmap-order9-scan", "hits": 0}, True),
    ],
)
def test_hits(changed: dict[str, Any], *, ok: bool) -> None:
    found = judged(visit(**changed), arms=("absent",))
    assert list(found.values()) == [ok]


@pytest.mark.parametrize(("hits", "ok"), [(0, True), (799, True), (800, False)])
def test_what_is_the_kernels_own_is_not_counted(hits: int, *, ok: bool) -> None:
    """100 calls, 8 samples: two blocks, which turn back in the trampoline."""
    seen = visit(result="vmalloc-1m-huge-4m", hits=hits)
    assert judged(seen, name="vmalloc-1m", arms=("absent",)) == {"hits (pte)": ok}


@pytest.mark.parametrize(
    ("arm", "hits", "ok"),
    [("pte", 1, True), ("block", 0, False), ("off", 0, True), ("off", 1, False)],
)
def test_entries(arm: str, hits: int, *, ok: bool) -> None:
    event = {"event": "entry", "arm": arm, "name": "vmap", "hits": hits, "seen": 1}
    assert judged(event, arms=("absent",)) == {f"vmap() is seen ({arm})": ok}


def test_verdicts_of_the_guest() -> None:
    plan = {"event": "ktap-plan", "arm": "pte", "of": "parts", "plan": 2}
    first = ktap("pte", "ok 1 part unmapped # pages=3", "parts")
    second = ktap("pte", "not ok 2 the rest", "parts")
    found = judged(first, second, plan, arms=("absent",))
    assert found == {"part unmapped (pte)": True, "the rest (pte)": False}
    assert judged(first, plan, arms=("absent",))["parts in pte: all lines"] is False


def test_bad_requests_are_answered_as_by_the_original() -> None:
    said = "ok 1 null-first # err=-12 mapped=0 vmap=refused"
    name = "as the original: null-first"
    both = (ktap("absent", said), ktap("block", said))
    assert judged(*both, arms=("absent",))[name]
    other = ktap("block", said.replace("=0", "=1"))
    assert not judged(both[0], other, arms=("absent",))[name]
    assert not judged(both[1], arms=("absent",))[name]


def test_page_tables_refused_as_with_the_original() -> None:
    said = "ok 3 page table 3 refused # err=-12 mapped=188 tables=8 first=none"
    fewer = said.replace("188", "512")
    name = "as the original: page table 3 refused"
    base = ktap("absent", said, "starve")
    assert judged(base, ktap("block", fewer, "starve"), arms=("absent",))[name]
    assert not judged(base, ktap("pte", fewer, "starve"), arms=("absent",))[name]


def logged(arm: str, *said: str, what: str = "null-first") -> str:
    begin = f"[ 1.0] bulkmm-lab: warnings of {what} in {arm} begin"
    return "\n".join([begin, *said, "[ 1.1] bulkmm-lab: warnings end", ""])


def test_expected_warnings_are_no_fault() -> None:
    log = logged("pte", OLD, "Call Trace:", "[ 1.0] BUG: sleeping function")
    assert klog.search(log) == ["[ 1.0] BUG: sleeping function"]
    assert klog.search(log + "Call Trace:") == [*klog.search(log), "Call Trace:"]
    assert klog.search(logged("pte", "WARNING: Oops")) == ["WARNING: Oops"]


@pytest.mark.parametrize(
    ("line", "place"), [(OLD, "mm/vmalloc.c:556"), (NEW, "mm/vmalloc.c:565")]
)
def test_where_the_kernel_warns(line: str, place: str) -> None:
    log = logged("pte", line, line) + line
    assert klog.warnings(log) == [("null-first", "pte", [place, place])]


@pytest.mark.parametrize(
    ("what", "absent", "pte", "ok"),
    [
        ("null-first", (OLD,), (OLD,), True),
        ("null-first", (OLD,), (), False),
        ("null-first", (OLD,), (OLD, OLD), False),
        ("null-first", (), (), False),
        ("too-many", (), (), True),
        ("too-many", (OLD,), (OLD,), False),
        ("test_vmalloc", (), (), True),
        ("test_vmalloc", (OLD,), (OLD,), False),
    ],
)
def test_warnings(
    what: str, absent: tuple[str, ...], pte: tuple[str, ...], *, ok: bool
) -> None:
    log = logged("absent", *absent, what=what) + logged("pte", *pte, what=what)
    assert judged(log=log, arms=("absent",)) == {f"warnings ({what})": ok}


@pytest.mark.parametrize(
    ("test", "absent", "pte", "ok"),
    [
        ("fix_size_alloc_test", "passed: 1 failed: 0", "passed: 1 failed: 0", True),
        ("fix_size_alloc_test", "passed: 1 failed: 0", "passed: 0 failed: 1", False),
        ("fix_size_alloc_test", "passed: 0 failed: 1", "passed: 0 failed: 1", False),
        ("align_shift_alloc_test", "passed: 0 failed: 1", "passed: 0 failed: 1", True),
        (
            "align_shift_alloc_test",
            "passed: 0 failed: 0 xfailed: 1",
            "passed: 1 failed: 0 xfailed: 0",
            False,
        ),
    ],
)
def test_upstream(test: str, absent: str, pte: str, *, ok: bool) -> None:
    events = [
        {"event": "upstream", "arm": arm, "line": f"Summary: {test} {said} repeat: 1"}
        for arm, said in (("absent", absent), ("pte", pte))
    ]
    assert judged(*events, arms=("absent",)) == {f"{test} (upstream)": ok}


def test_a_guest_that_says_nothing_fails() -> None:
    for name in ("vmap-order0", vmap.CHECK, vmap.FAULTS, vmap.UPSTREAM):
        assert judged(name=name, arms=("absent",)) == {}


def test_a_guest_that_says_all_passes() -> None:
    chosen: dict[str, Any] = {"arms": ("absent",), "rounds": 2}
    seen = [visit(arm="absent", hits=0)] * 5  # the first, two rounds, two scans
    seen += [checked(arm="absent"), checked(arm="absent", label="planted", wrong=2)]
    found = work("vmap-order9", **chosen).checks(Outcome(lambda _event: None, seen))
    assert {c.name: c.ok for c in found}[vmap.WHOLE]


ATTACHED = "0 a: attached 0 b: attached "
DETACHED = "-19 a: not attached -19 b: not attached "


def switched(arm: str, hook: str) -> dict[str, Any]:
    return {"event": "vmap-hooks", "arm": arm, "hook": hook}


@pytest.mark.parametrize(
    ("on", "off", "inflight", "ok"),
    [
        (ATTACHED, DETACHED, "0 ", True),
        ("0 a: attached -16 b: taken ", DETACHED, "0 ", False),
        (DETACHED, DETACHED, "0 ", False),
        (ATTACHED, ATTACHED, "0 ", False),
        (ATTACHED, DETACHED, "1 ", False),
    ],
)
def test_hooks(on: str, off: str, inflight: str, *, ok: bool) -> None:
    seen = {"event": "vmap-counters", "hook": off, "inflight": inflight}
    events = [switched("off", off), switched("pte", on), switched("block", on), seen]
    assert judged(*events)["hooks attached, nobody left inside"] is ok


def test_hooks_of_each_mode_count() -> None:
    seen = {"event": "vmap-counters", "hook": DETACHED, "inflight": "0 "}
    events = [switched("pte", ATTACHED), switched("block", DETACHED), seen]
    assert not judged(*events)["hooks attached, nobody left inside"]


def test_a_soak_is_unloaded_with_somebody_inside() -> None:
    seen = {"event": "vmap-counters", "hook": ATTACHED, "inflight": "1 "}
    soak = {"event": "soak", "loads": 1, "hits": 5, "turns": 1}
    found = judged(switched("pte", ATTACHED), seen, soak)
    assert found["hooks attached, nobody left inside"]


def test_samples_are_of_rounds_only() -> None:
    taken = [visit(arm=arm) for arm in ARMS] + [visit(label="first", map="9")]
    taken.append(visit(label="limit", result="vmap-order9-scan", map="2"))
    results, ratios = work().results(Outcome(lambda _event: None, taken))
    arms = {(r.scenario, r.variant): r.samples for r in results}
    assert arms["vmap-order9", "block"] == [3, 4]
    assert arms["vmap-order9-unmap", "absent"] == [5]
    assert arms["vmap-order9", "limit"] == [2]
    assert results[0].bytes == 100 << 20
    assert len(ratios) == 2 * len(vmap.PAIRS)


WHOLE = ("vmap-1page",)
QUICK = "vmap-100m-order8"  # which is in the quick matrix
KERNELS = {name: kernels.SERIES[i % 2] for i, name in enumerate(vmap.CASES)}
del KERNELS[QUICK]
LATER = (
    "vmap-order9",
    "vmap-order0",
    "vmap-1page",
    "vmalloc-1m",
)  # a release shows these


@pytest.mark.vm
@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        pytest.param(*row, marks=[pytest.mark.release] * (row[0] in LATER))
        for row in KERNELS.items()
    ],
)
def test_timed(name: str, kernel: str, tmp_path: Path) -> None:
    # loading and unloading take time: not in every case
    arms = ARMS if name in WHOLE else ("off", "block")
    few = ["--rounds", "1", "--arrays", "50"]
    few += [word for arm in arms for word in ("--arm", arm)]
    document = passed(tmp_path, name, "--kernel", kernel, *few)
    measured = {(r["scenario"], r["variant"]) for r in document["results"]}
    limit = [vmap.LIMIT] if vmap.CASES[name][0].scanned else []
    assert measured >= {(name, arm) for arm in (*arms, *limit)}


@pytest.mark.vm
@pytest.mark.parametrize("kernel", series("6.12"))
def test_check(kernel: str, tmp_path: Path) -> None:
    document = passed(tmp_path, "vmap-check", "--kernel", kernel, "--arrays", "3000")
    seen = document["run"]["checked"]
    large = {e["arm"]: e["large"] for e in seen if e["label"] == "random"}
    assert large["block"] > 20
    assert {large[arm] for arm in ARMS if arm != "block"} == {0}


@pytest.mark.vm
@pytest.mark.parametrize("kernel", series("7.3"))
def test_faults(kernel: str) -> None:
    done = lab("vmap-faults", "--kernel", kernel, "--seconds", "5")
    assert done.returncode == Exit.OK, done.stderr


@pytest.mark.vm
@pytest.mark.parametrize("kernel", series("7.3"))
def test_kernels_own_test(kernel: str) -> None:
    mode = "block" if kernel == "7.3" else "pte"
    arms = ("--arm", "absent", "--arm", mode)
    done = lab("upstream-vmalloc", "--kernel", kernel, "--loops", "5", *arms)
    assert done.returncode == Exit.OK, done.stderr


@pytest.mark.vm
@pytest.mark.release
def test_one_wrong_page_fails_the_run() -> None:
    few = ("--rounds", "1", "--arrays", "5", "--arm", "absent")
    done = lab("vmap-1page", *few, "--break-one-word")
    assert done.returncode == Exit.VERDICT
    assert "arrays mapped as the model says (broken-on-purpose absent)" in done.stderr
