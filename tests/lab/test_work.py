# SPDX-License-Identifier: GPL-2.0-only
"""The work of emulated guests, by a clock that counts instructions."""

from pathlib import Path

import pytest
from lablib import passed

from bulkmm.results.model import INSTRUCTIONS, NS
from bulkmm.shell.errors import GuestError
from bulkmm.shell.progress import Progress
from lab import judge, paths, run, scenario
from lab.commands.run import parse_request
from lab.machine import image, vm
from lab.machine.arch import ARM64, X86_64, Arch
from lab.scenario import prezero

FSDAX, SMALL = "pmem-fsdax-100g", "pmem-fsdax-2g"
MIB = 1 << 20
LAB = "/sys/kernel/debug/bulkmm_lab"
PAGE = 4096
CALLS = 100
NEAR = 400  # instructions of a call that clears a page, besides the clearing
# bytes of a store of lab/guest/module/timer.c: MOVNTI, or STP
STORE = {"x86_64": 8, "arm64": 16}
# bytes that an instruction of the kernel's clears: each turn of REP STOSB, or DC ZVA
CLEARED = {"x86_64": 1, "arm64": 64}


def outcome_of(*events: str, icount: bool = False) -> vm.Outcome:
    return vm.Outcome([{"event": event} for event in events], icount=icount)


@pytest.mark.parametrize(
    ("icount", "unit", "ns_per_unit"), [(True, INSTRUCTIONS, 2), (False, NS, 1)]
)
def test_a_clock_that_counts_measures_instructions(
    icount: bool,  # noqa: FBT001
    unit: str,
    ns_per_unit: int,
) -> None:
    outcome = vm.Outcome(icount=icount)
    for arm in ("absent", "off", "on"):
        times = {"plug_ns": 2000, "unplug_ns": 4000}
        outcome.events.append(
            {"event": "hot-visit", "label": "round", "arm": arm, **times}
        )
    hotplug = scenario.find_scenario("hotplug-kmem-4g").make(size=4096 * MIB)
    results, _ = hotplug.results(outcome)
    assert {one.unit for one in results} == {unit}
    assert {one.median * ns_per_unit for one in results} == {2000, 4000}


def test_a_device_of_another_size_has_another_name() -> None:
    """A kept file must not show 2 GiB as 4 GiB."""
    for job in scenario.SCENARIOS:
        if "size" in job.takes and job.measures:
            usual, small = (job.make(size=size) for size in (job.size, 2 << 30))
            assert usual.named_by_size == job.name
            size = job.name.rpartition("-")[2]
            assert small.named_by_size == f"{job.name.removesuffix(size)}2g"
    outcome = outcome_of()
    for arm in ("absent", "off", "on"):
        visit = {"event": "hot-visit", "label": "round", "arm": arm}
        outcome.events.append({**visit, "plug_ns": 2, "unplug_ns": 4})
    hotplug = scenario.find_scenario("hotplug-kmem-4g").make(size=2 << 30)
    names = {result.scenario for result in hotplug.results(outcome)[0]}
    assert names == {"hotplug-kmem-2g", "hotplug-kmem-2g-unplug"}


def test_what_sleeps_is_no_work() -> None:
    """The clock jumps meanwhile."""
    outcome = vm.Outcome(icount=True)
    for arm in ("absent", "off", "on"):
        bind = {"pages": 9, "ns": 2, "bind_ns": 4, "arm": arm}
        outcome.events += [
            {"event": "bind", "label": label, **bind} for label in ("first", "round")
        ]
    outcome.events.append({"event": "limit", "ns": 2})
    for size, name in ((100, FSDAX), (2, SMALL)):
        work = scenario.find_scenario(FSDAX).make(size=size << 30)
        results, _ = work.results(outcome)
        assert {one.scenario for one in results} == {
            name + suffix for suffix in ("", "-bind", "-first")
        }


def test_a_report_that_is_missing_is_an_error_of_the_guest() -> None:
    stress = scenario.find_scenario("stress").make()
    with pytest.raises(GuestError, match="incomplete: KeyError"):
        judge.judge_outcome(stress, None, 1, outcome_of("start", "soak", "end"))


# instructions of a page of 2 MiB: by way clear, ready, stock's; and freeing it
WORK = {"clear": 366_000, "ready": 3_800, "both": 3_700}
STOCK, FREE, HOOK = 2_108_000, 1_462, 43
OF_WORK = {
    "clearing is counted",
    "work of a page that is ready",
    "a start of QEMU",
    "cost of a free",
}


@pytest.mark.parametrize(
    ("planted", "fails"),
    [
        ({}, set()),
        # of a page that is ready: 1 % is stored; it is cleared; the path takes its time
        ({"work": 2 * MIB // 100 // 8}, {"work of a page that is ready"}),
        ({"work": 2 * MIB}, {"work of a page that is ready", "a start of QEMU"}),
        ({"free": 25}, {"cost of a free"}),
        ({"clear": -300_000}, {"clearing is counted"}),
    ],
)
def test_work_that_is_wrong_is_seen(planted: dict[str, int], fails: set[str]) -> None:
    work = scenario.find_scenario("prezero-2m").make()
    outcome = vm.Outcome([{"event": "start", "release": "7.3.4-amd64"}], icount=True)
    for arm in prezero.ARMS:
        page = WORK.get(arm, STOCK)
        page += planted.get("work", 0) if arm in prezero.READY else 0
        page += planted.get("clear", 0) if arm == "clear" else 0
        free = FREE + (HOOK + planted.get("free", 0) if arm in prezero.HOOKED else 0)
        times = {"ns": page * 64, "free_ns": free * 64}  # of 32 pages
        for way in prezero.WAYS:
            visit = {"event": prezero.VISIT, "arm": arm, "way": way, **times}
            outcome.events.append({**visit, "wrong": 0, "known": 0, "left": 0})
    outcome.events.append({**outcome.events[-1], "way": prezero.CORRUPTED})
    assert {one.unit for one in work.results(outcome)[0]} == {INSTRUCTIONS}
    failed = [check.name for check in work.judge(outcome) if not check.ok]
    assert {name.partition(" (")[0] for name in failed} & OF_WORK == fails


def boot_counted(arch: Arch, *lines: str) -> vm.Outcome:
    """Return a guest that did these lines of a job, with a clock that counts."""
    progress = Progress()
    job = ["must insmod /lib/modules/bulkmm_lab.ko", *lines, "must rmmod bulkmm_lab"]
    with paths.lock_cache(progress) as cache:
        where = ["--kernel", arch.series[-1], "--arch", arch.name]
        ready = run.prepare_run(cache, parse_request(["clear-cases", *where]), progress)
        root = ready.kernel.root
        with vm.run_directory(root) as place:
            text = "\n".join([*job, ""])
            initramfs = image.pack_initramfs(
                root, ready.base, place, text, ready.modules
            )
            files = (ready.kernel.image, initramfs, 512)
            return vm.boot_guest(vm.Guest(*files, arch=arch, icount=True), root, place)


@pytest.mark.vm
@pytest.mark.parametrize(
    "arch",
    [X86_64, pytest.param(ARM64, marks=pytest.mark.release)],
    ids=lambda arch: arch.name,
)
def test_loops_that_are_known(arch: Arch) -> None:
    sizes = (64 * MIB, 128 * MIB)
    stored = [f"PAGES={size} limit 1 1" for size in sizes]
    outcome = boot_counted(arch, *stored, "state absent", f"call_times {CALLS} 0")
    for size, event in zip(sizes, outcome.of("limit"), strict=True):
        stores = size / STORE[arch.name]
        # interrupts, and the loop around each 256 bytes
        assert 1.05 * stores < event["ns"] / vm.INSTRUCTION_NS < 1.25 * stores
    (call,) = outcome.of("calls")
    clearing = PAGE / CLEARED[arch.name]
    work = call["median_ns"] / vm.INSTRUCTION_NS
    assert clearing < work < clearing + NEAR


@pytest.mark.vm
def test_off_does_the_work_of_absent_and_on_less(tmp_path: Path) -> None:
    few = (FSDAX, "--size", "2G", "--rounds", "2", "--accel", "tcg", "--cpus", "1")
    results = passed(tmp_path, *few)["results"]
    assert {one["unit"] for one in results} == {INSTRUCTIONS}
    medians = {(r["scenario"], r["variant"]): r["median"] for r in results}
    absent, off, on, limit = (
        medians[SMALL, arm] for arm in ("absent", "off", "on", "limit")
    )
    assert off == pytest.approx(absent, rel=0.01)
    assert 0.9 * limit < on < 0.7 * off
    for arm in ("absent", "off", "on"):
        assert medians[f"{SMALL}-bind", arm] > medians[SMALL, arm]
