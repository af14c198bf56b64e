# SPDX-License-Identifier: GPL-2.0-only
"""Memory that is plugged and unplugged: the job, how a run is judged, short runs."""

from pathlib import Path
from typing import Any

import pytest
from lablib import lab, passed, whole_operations

from bulkmm.errors import Exit, UsageError
from bulkmm.lab import scenario
from bulkmm.lab.families import breakdown, hotplug
from bulkmm.lab.machine import vm
from bulkmm.lab.machine.root import Root
from bulkmm.lab.machine.vm import Outcome

KMEM = scenario.find("hotplug-kmem-32g")
VIRTIO = scenario.find("hotplug-virtio-mem-32g")
CXL = scenario.find("hotplug-cxl-4g")
ATTACHED = " ".join(f"0 {name}: attached" for name in ("a", "b", "c"))
MEMMAP = 64 << 20  # bytes of the struct pages of 4 GiB


def work(one: scenario.Scenario = KMEM, **chosen: Any) -> Any:
    usual = {"seed": 1, "rounds": 1, "size": 4 << 30}
    applies = {name: value for name, value in usual.items() if name in one.takes}
    return one.make(**{**applies, **chosen})


def state(arm: str, label: str, step: str, contiguous: int = 0) -> dict[str, Any]:
    zones = f"0 Normal 1 2 3 1 1 Movable 4 5 5 {contiguous}"
    event = {"event": "hot-state", "arm": arm, "label": label, "step": step}
    return {**event, "zones": zones, "lists": "Node 1, zone Normal 1 2 3"}


def visit(arm: str, label: str, ns: int = 100) -> dict[str, Any]:
    on, both = arm in {"on", "both"}, arm == "both"
    event = {"event": "hot-visit", "arm": arm, "label": label, "walks": 1}
    event |= {"plug_ns": ns, "unplug_ns": ns}
    event |= {"saved": 9 if on else 0, "hook": ATTACHED if on else ""}
    event |= {"clears": "0 c: attached 0 d: attached" if both else ""}
    event |= {"cleared": MEMMAP if both else 0, "streamed": 0}
    if both and label == hotplug.KEPT:
        return {**event, "cached_max": hotplug.MOST}
    return {**event, "streamed": event["cleared"], "cached_max": 2 << 20}


def graph(arm: str, operation: str) -> dict[str, Any]:
    event = {"event": "graph", "arm": arm, "operation": operation, "ns": 200}
    return {**event, "lost": 0, "functions": "set_zone_contiguous=3:100:90 b=1:50:5 "}


def good(one: hotplug.Work | None = None) -> list[dict[str, Any]]:
    one = one or work()
    events: list[dict[str, Any]] = []
    for label, arms in one.plan:
        for arm in arms:
            events += [state(arm, label, "plugged"), state(arm, label, "offline", 1)]
            events.append(visit(arm, label, 50 if arm == "on" else 100))
    for arm in one.arms:
        events += [graph(arm, operation) for operation in ("plug", "unplug")]
    used = {"event": "hot-used", "bytes": 4096, "moved": 2}
    events += [{**used, "arm": arm} for arm in (*hotplug.ARMS, hotplug.BOTH)]
    events.append(visit(hotplug.BOTH, hotplug.KEPT))
    events.append({"event": "hot-counters", "hits": 27, "inflight": 0})
    return events


def outcome(events: list[dict[str, Any]]) -> Outcome:
    return Outcome(lambda _event: None, events)


def failing(events: list[dict[str, Any]]) -> set[str]:
    return {check.name for check in work().checks(outcome(events)) if not check.ok}


def test_every_kind_of_visit_sees_every_arm() -> None:
    job = work(rounds=3).job(["a"]).splitlines()
    visits = [line.split() for line in job if line.startswith("hot_visit ")]
    assert visits[0][1:3] == ["absent", "first"]
    assert visits[-1][1:3] == ["both", "kept"]
    assert len(visits) == 1 + work(rounds=3).steps
    every = (*hotplug.ARMS, hotplug.BOTH)
    for label, arms in (
        (hotplug.ROUND, hotplug.ARMS * 3),
        (hotplug.PROOF, every),
        (hotplug.GRAPH, hotplug.ARMS),
    ):
        seen = sorted(words[1] for words in visits if words[2] == label)
        assert seen == sorted(arms)
    assert work(rounds=3, seed=2).job(["a"]).splitlines() != job


def test_a_whole_run_measures_both_paths_together() -> None:
    one = work(size=32 << 30)
    assert one.arms == (*hotplug.ARMS, hotplug.BOTH)
    found, ratios = one.results(outcome(good(one)))
    assert len(found) == 2 * len(one.arms)
    pairs = {(ratio.base, ratio.variant) for ratio in ratios}
    assert ("absent", hotplug.BOTH) in pairs
    assert not {c.name for c in one.checks(outcome(good(one))) if not c.ok} - CLEARED


def test_blocks_that_go_come_back() -> None:
    job = work(seed=5).job([])
    gone = [line.split()[2] for line in job.splitlines() if "hot_block offline" in line]
    back = [
        line.split()[2]
        for line in job.splitlines()
        if "hot_block online_movable" in line
    ]
    assert sorted(gone) == sorted(back)
    assert len(set(gone)) > hotplug.STEPS


def test_what_the_guest_is_made_of() -> None:
    assert work().hot == vm.Hot(nodes=2)
    assert work(VIRTIO).hot == vm.Hot(plug=4 << 30, node=1, nodes=2)
    assert work(CXL).hot == vm.Hot(cxl=4 << 30)
    assert [work(one).pmem for one in (KMEM, VIRTIO, CXL)] == [4 << 30, 0, 0]
    faults = work(scenario.find("hotplug-faults"))
    assert (work().defines, faults.defines) == ([], ["BMM_FAULTS=1"])


def test_the_machine_has_a_node_for_the_device_and_a_monitor(tmp_path: Path) -> None:
    def argv(one: scenario.Scenario) -> str:
        made = work(one)
        files = tmp_path / "vmlinuz", tmp_path / "initrd"
        guest = vm.Guest(*files, 4096, pmem=made.pmem, hot=made.hot)
        return " ".join(vm.command(guest, Root(tmp_path), tmp_path / "run"))

    for one in (KMEM, VIRTIO):
        assert "-numa node,nodeid=0,cpus=0-1,memdev=ram -numa node,nodeid=1" in argv(
            one
        )
    # its window is a node of the kernel's, if there is a table of nodes
    window = "cxl-fmw.0.targets.0=cxl,cxl-fmw.0.size=4294967296"
    assert f"-M q35,cxl=on,{window} -m 4096M" in argv(CXL)
    assert "-numa node,nodeid=0,cpus=0-1,memdev=ram" in argv(CXL)
    assert "nodeid=1" not in argv(CXL)
    assert argv(CXL).index("virtio-serial-pci") < argv(CXL).index("pxb-cxl")
    assert "nvdimm,id=nvdimm,memdev=pmem,label-size=2097152,node=1" in argv(KMEM)
    assert "virtio-mem" not in argv(KMEM)
    assert "memdev=hot,node=1,block-size=134217728" in argv(VIRTIO)
    assert "-mon chardev=monitor" in argv(VIRTIO)


@pytest.mark.parametrize("size", [64 << 20, 1 << 40, 3 << 25])
def test_sizes_that_do_not_fit(size: int) -> None:
    with pytest.raises(UsageError):
        work(size=size).check_options()


def test_a_cxl_device_is_a_multiple_of_its_unit() -> None:
    odd = (1 << 30) + hotplug.BLOCK
    work(size=odd).check_options()
    with pytest.raises(UsageError, match="a multiple of 256M"):
        work(CXL, size=odd).check_options()


@pytest.mark.parametrize(
    ("kind", "gigabytes", "used"),
    [
        (KMEM, 4, hotplug.USED_REDUCED),
        (KMEM, 32, hotplug.USED),
        (CXL, 32, hotplug.USED_REDUCED),
    ],
)
def test_how_much_a_guest_fills(
    kind: scenario.Scenario, gigabytes: int, used: int
) -> None:
    job = work(kind, size=gigabytes << 30).job([])
    assert int(job.split("hot_use ")[1].split()[0]) == used


def test_a_run_that_held() -> None:
    assert not failing(good())
    found, ratios = work().results(outcome(good()))
    assert {one.scenario for one in found} == {KMEM.name, f"{KMEM.name}-unplug"}
    assert {one.ratio for one in ratios if one.variant == "on"} == {2.0}


def test_a_guest_that_says_nothing_fails() -> None:
    assert len(failing([])) == len(work().checks(outcome([])))


@pytest.mark.parametrize("key", ["zones", "lists"])
@pytest.mark.parametrize("label", [hotplug.ROUND, hotplug.PROOF, hotplug.GRAPH])
def test_another_state_after_a_step_fails(key: str, label: str) -> None:
    events = good()
    corrupted = next(
        e for e in events if e.get("label") == label and (e["arm"], e["event"]) == ON
    )
    corrupted[key] = "1 Movable 4 5 5 1" if key == "zones" else "x"
    assert f"zones and free lists as without ({label})" in failing(events)


ON = ("on", "hot-state")


def test_a_step_that_is_missing_fails() -> None:
    events = good()
    events.remove(state("off", hotplug.PROOF, "plugged"))
    assert failing(events) == {"zones and free lists as without (proof)"}


@pytest.mark.parametrize("label", [hotplug.ROUND, hotplug.PROOF, hotplug.GRAPH])
def test_a_step_too_many_fails(label: str) -> None:
    """Also one that there was, and that ends as it did then."""
    events = good()
    events.append(state("on", label, "plugged"))
    assert failing(events) == {f"zones and free lists as without ({label})"}


def test_a_zone_that_is_never_contiguous_proves_nothing() -> None:
    events = [
        {**e, "zones": e["zones"][:-1] + "0"} if e["event"] == "hot-state" else e
        for e in good()
    ]
    assert failing(events) == {"zones contiguous and not"}


@pytest.mark.parametrize(("arm", "saved"), [("on", 0), ("off", 1), ("absent", 1)])
def test_counters(arm: str, saved: int) -> None:
    events = good()
    next(e for e in events if e["event"] == "hot-visit" and e["arm"] == arm)[
        "saved"
    ] = saved
    assert failing(events) == {"counters"}


CLEARED = {"struct pages cleared as their size wants it"}


@pytest.mark.parametrize(
    ("label", "more"),
    [
        (hotplug.PROOF, {"streamed": 0}),
        (hotplug.PROOF, {"cleared": 0, "streamed": 0}),
        (hotplug.PROOF, {"clears": ATTACHED.split(" 0 ")[0]}),
        (hotplug.PROOF, {"label": "x"}),
        (hotplug.KEPT, {"streamed": 4096}),
        (hotplug.KEPT, {"cleared": 0}),
        (hotplug.KEPT, {"label": "x"}),
    ],
)
def test_struct_pages_cleared_another_way(label: str, more: dict[str, Any]) -> None:
    events = [
        {**e, **more}
        if (e["event"], e.get("arm"), e.get("label"))
        == ("hot-visit", hotplug.BOTH, label)
        else e
        for e in good()
    ]
    assert failing(events) == CLEARED


def test_what_virtio_mem_adds_fits_the_cache() -> None:
    """A block's struct pages are 2 MiB: nothing bypasses it."""
    events = [{**e, "streamed": 0} if e["event"] == "hot-visit" else e for e in good()]
    one = work(VIRTIO)
    assert CLEARED.isdisjoint(
        check.name for check in one.checks(outcome(events)) if not check.ok
    )


def test_a_kernel_where_alloc_does_not_attach() -> None:
    none = {"clears": "-2 c: -2", "cleared": 0, "streamed": 0}
    events = [{**e, **none} if e["event"] == "hot-visit" else e for e in good()]
    assert not failing(events)


@pytest.mark.parametrize(
    ("event", "more"),
    [
        ("hot-visit", {"hook": "0 a: attached"}),
        ("hot-counters", {"inflight": 1}),
    ],
)
def test_hooks(event: str, more: dict[str, Any]) -> None:
    events = [{**e, **more} if e["event"] == event else e for e in good()]
    assert failing(events) == {"hooks attached, nobody left inside"}


def test_memory_that_was_not_moved_proves_nothing() -> None:
    events = [{**e, "moved": 0} if e["event"] == "hot-used" else e for e in good()]
    assert failing(events) == {"memory used, moved and read back"}


def test_breakdown() -> None:
    (first, *_rest) = breakdown.of(outcome(good()))
    counted = {"calls": 3, "ns": 100, "own_ns": 90}
    assert first["functions"]["set_zone_contiguous"] == counted
    assert (first["operation"], first["variant"], first["ns"]) == (
        "plug",
        "absent",
        200,
    )


@pytest.mark.parametrize("change", [{"lost": 1}, {"functions": ""}, {"event": "x"}])
def test_a_breakdown_that_is_not_whole_fails(change: dict[str, Any]) -> None:
    events = [
        {**e, **change} if e["event"] == "graph" and e["arm"] == "on" else e
        for e in good()
    ]
    assert failing(events) == {"time by function"}


SMALL = ("--rounds", "1")


@pytest.mark.vm
@pytest.mark.release
def test_short_run(tmp_path: Path) -> None:
    """Of what the quick matrix has not."""
    document = passed(tmp_path, "hotplug-virtio-mem-4g", "--kernel", "7.3", *SMALL)
    whole_operations(document)


@pytest.mark.vm
@pytest.mark.release
def test_short_run_that_is_broken_on_purpose() -> None:
    done = lab("hotplug-kmem-4g", "--kernel", "7.3", *SMALL, "--break-one-word")
    assert done.returncode == Exit.VERDICT
    assert "zones and free lists as without (proof)" in done.stderr


@pytest.mark.vm
def test_faults(tmp_path: Path) -> None:
    passed(tmp_path, "hotplug-faults", "--kernel", "7.3")
