# SPDX-License-Identifier: GPL-2.0-only
"""The work of emulated guests, counted right."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from lablib import passed

from bulkmm.errors import BulkmmError, GuestError
from bulkmm.lab import paths, run
from bulkmm.lab.commands.run import asked
from bulkmm.lab.machine import counting, image, kernels, vm
from bulkmm.lab.machine.arch import ARM64, X86_64, Arch
from bulkmm.lab.machine.root import Root
from bulkmm.lab.progress import Progress
from bulkmm.results import INSTRUCTIONS, NS, STORES

FSDAX = "pmem-fsdax-100g"
MIB = 1 << 20
LAB = "/sys/kernel/debug/bulkmm_lab"
# bytes of a store of module/selftest/timer.c: MOVNTI, or STP
STORE = {"x86_64": 8, "arm64": 16}


def outcome(work: list[list[int]], *events: str) -> vm.Outcome:
    return vm.Outcome([{"event": event} for event in events], work=work)


def test_records_belong_to_events_in_order() -> None:
    held = outcome([[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9]], "a", "no", "b", "a")
    found = counting.of_events(held, lambda event: int(event["event"] != "no"))
    assert [(event["event"], records) for event, records in found] == [
        ("a", [[1, 2, 3, 4]]),
        ("b", [[5, 6, 7, 8]]),
        ("a", [[9, 9, 9, 9]]),
    ]
    assert counting.slot(found[0][1][0], 1, calls=2) == (1.5, 2)
    assert counting.of_events(outcome([], "a"), lambda _event: 1) == []


@pytest.mark.parametrize("events", [("a",), ("a", "a", "a")])
def test_records_that_do_not_fit_are_no_result(events: tuple[str, ...]) -> None:
    with pytest.raises(GuestError, match="2 operations was counted, but the guest"):
        counting.of_events(outcome([[1, 2, 3, 4]] * 2, *events), lambda _event: 1)


def test_work_has_ratios_of_its_own() -> None:
    arms = {"off": [(100, 10), (100, 10)], "on": [(25, 0), (25, 0)]}
    pairs = [("off", "on"), ("on", "off"), ("off", "absent")]
    _, (ratio, _) = counting.rated("a", 1, arms, pairs)
    assert (ratio.unit, ratio.ratio) == (INSTRUCTIONS, 4)  # no stores: no ratio
    assert counting.rated("a", 1, {"off": [], "on": []}, []) == ([], [])


def test_a_plugin_that_counts_nothing_is_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel, request = kernels.Kernel(Root(Path("/")), "7.3.4"), asked([FSDAX])
    guest = vm.Guest(Path(), Path(), 1, plugin=Path("work.so"))
    told = outcome([])
    monkeypatch.setattr(vm, "boot", lambda *_: told)
    with pytest.raises(GuestError, match="counted no work"):
        run._boot(request, kernel, guest, Path(), Progress())
    told.work.append([1, 2])
    assert run._boot(request, kernel, guest, Path(), Progress()) is told


def test_a_report_that_is_missing_is_an_error_of_the_guest() -> None:
    told = outcome([], "start", "soak", "end")
    with pytest.raises(GuestError, match="incomplete: KeyError"):
        run._document(asked(["stress"]), told)


def limits(arch: Arch, sizes: tuple[int, ...]) -> vm.Outcome:
    """Return a guest that stored so many bytes by loops that are known."""
    progress = Progress()
    job = ["must insmod /lib/modules/bulkmm_lab.ko"]
    job += [f"echo {size} >{LAB}/limit; report limit" for size in sizes]
    with paths.locked(progress) as cache:
        where = ["--kernel", arch.series[-1], "--arch", arch.name]
        ready = run.prepared(cache, asked([FSDAX, *where]), progress)
        root, plugin = ready.kernel.root, ready.plugin
        assert plugin
        with vm.run_directory(root) as place:
            text = "\n".join([*job, "must rmmod bulkmm_lab", ""])
            initramfs = image.initramfs(root, ready.base, place, text, ready.modules)
            files = (ready.kernel.image, initramfs, 512)
            # a CPU that waits for another one executes instructions meanwhile
            guest = vm.Guest(*files, cpus=1, arch=arch, plugin=plugin)
            return vm.boot(guest, root, place)


@pytest.mark.vm
@pytest.mark.parametrize(
    "arch",
    [X86_64, pytest.param(ARM64, marks=pytest.mark.release)],
    ids=lambda arch: arch.name,
)
def test_a_loop_that_is_known(arch: Arch) -> None:
    sizes = (64 * MIB, 128 * MIB)
    seen = limits(arch, sizes)
    found = counting.of_events(seen, lambda event: int(event["event"] == "limit"))
    assert len(found) == len(sizes)
    for size, (_, ((instructions, stores, *second),)) in zip(sizes, found, strict=True):
        expected = size / STORE[arch.name]
        # interrupts, and the loop around each 256 bytes
        assert expected <= stores < 1.01 * expected
        assert 1.05 * expected < instructions < 1.5 * expected
        assert second == [0, 0]


@pytest.mark.vm
def test_off_does_the_work_of_absent_and_on_less(tmp_path: Path) -> None:
    few = (FSDAX, "--size", "2G", "--rounds", "2", "--accel", "tcg", "--cpus", "1")
    held = passed(tmp_path, *few)["results"]
    arms = {(r["scenario"], r["variant"], r["unit"]): r for r in held}
    # interrupts of a guest that waits for its host add more instructions than stores
    for unit, near in ((INSTRUCTIONS, 0.05), (STORES, 0.02)):
        absent, off, on, limit = (
            arms[FSDAX, arm, unit]["median"] for arm in ("absent", "off", "on", "limit")
        )
        assert off == pytest.approx(absent, rel=near)
        assert 0.9 * limit < on < 0.7 * off
        for arm in ("absent", "off", "on"):
            whole = arms[f"{FSDAX}-bind", arm, unit]["median"]
            assert whole > arms[FSDAX, arm, unit]["median"]
    assert arms[FSDAX, "off", NS]["median"] > 0  # times are kept


@pytest.mark.vm
def test_a_plugin_that_qemu_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = shutil.copytree(counting.PLUGIN, tmp_path / "qemu")
    header = (sources / "plugin.h").read_text()
    newer = header.replace("PLUGIN_VERSION 3\n", "PLUGIN_VERSION 99\n")
    assert newer != header
    (sources / "plugin.h").write_text(newer)
    monkeypatch.setattr(counting, "PLUGIN", sources)
    request = replace(asked([FSDAX]), accel="tcg")
    with pytest.raises(BulkmmError, match=r"not start a guest: .* API version 99"):
        run.run_scenario(request)
