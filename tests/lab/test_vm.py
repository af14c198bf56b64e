# SPDX-License-Identifier: GPL-2.0-only
"""Guests of reduced size: both kernels, every scenario, and what must fail."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from judgelib import Reports, all_is_seen
from lablib import LAB, lab, lock_kernel, passed, tiers, whole

from bulkmm import cli
from bulkmm.shell.errors import BulkmmError, Exit, GuestError
from bulkmm.shell.progress import Progress
from lab import paths, scenario
from lab.machine import image, root, vm
from lab.scenario import clear

pytestmark = pytest.mark.vm

FSDAX, DEVDAX = "pmem-fsdax-100g", "pmem-devdax-100g"
# several CPUs stamp once a backend is chosen
SHARED = ("--cpus", "4", "--workers", "3", "--backend", "movnti")


FEW = ("--way", "write-middle", "--way", "madv-populate", "--way", "fork")
SIZES = ("--kib", "64", "--kib", "16")
UNZEROED = ("--init-on-alloc", "0")  # by the allocator
THP = ("--rounds", "1", "--folios", "3")
# the default of cached_max is checked where the CPU is Intel's
INTEL = ("--cpu", "Skylake-Server", "--accel", "tcg")
UPSTREAM = ("--loops", "5", "--arm", "absent", "--arm")
COEXIST = ("--part", "fentry", "--part", "livepatch", "--part", "knob")
ARM64 = ("--arch", "arm64")
# no MOPS, no memory tags, no signed pointers, no landing pads
OLD_CPU = ("--cpu", "cortex-a72")
ALL_OFF = "arm64.nomte arm64.nobti arm64.nopauth arm64.nomops"
BACKENDS = {"", "generic", "stp", "stnp", "dczva", "mops"}
ONE_ROUND, TWO_ROUNDS = ("--rounds", "1"), ("--rounds", "2")
PUSH = [  # what the quick matrix has not
    (DEVDAX, "7.3", "--size", "2G", "--map", "mem", *SHARED, *TWO_ROUNDS),
    (DEVDAX, "7.3", "--size", "1040M", "--align", "4K", *TWO_ROUNDS),
    ("upstream-hmm", "7.3", *ONE_ROUND),
    ("hmm-private-64g", "7.3", "--size", "1G", *ONE_ROUND),
    ("pmem-faults", "7.3"),
    ("pmem-verify", "6.12"),
    ("hook-faults", "7.3", *INTEL),
    ("clear-faults", "7.3", "--seconds", "6"),
    ("clear-populate", "7.3"),
    ("thp-2m", "6.1", *UNZEROED, *THP),
    ("thp-2m", "7.3", "--init-on-alloc", "1", *FEW[:2], *THP),
    ("mthp", "7.3", *UNZEROED, *FEW[:2], *SIZES, *THP),
    ("hugetlb-2m", "6.1", *FEW, *THP),
    ("clear-cases", "6.12", *ONE_ROUND),
    ("clear-latency", "7.3", "--preempt", "lazy", "--kib", "2048", *ONE_ROUND),
    ("hotplug-faults", "7.3"),
    ("prezero-scarce", "7.3"),
    ("pool-grow", "7.3", *ONE_ROUND),
    ("populate-fragmented", "7.3", *ONE_ROUND),
    ("vmap-faults", "7.3", "--seconds", "5"),
    ("upstream-vmalloc", "7.3", *UPSTREAM, "block"),
    ("coexist", "7.3", *COEXIST),
    ("ndctl-odd", "6.12", *ONE_ROUND, "--seed", "6"),
    ("thp-2m", "7.3", *ARM64, *UNZEROED, *FEW, *THP),
]
RELEASE = [
    (DEVDAX, "6.12", "--size", "2G", *TWO_ROUNDS),
    (DEVDAX, "6.12", "--size", "12G", "--align", "1G", *TWO_ROUNDS),
    ("pmem-faults", "6.12"),
    ("pmem-verify", "7.3"),
    ("hook-faults", "6.1"),
    ("hook-faults", "6.12"),
    ("clear-faults", "6.1", "--seconds", "6"),
    ("clear-faults", "6.12", "--seconds", "6"),
    ("thp-2m", "6.12", *UNZEROED, *THP),
    ("thp-2m", "7.3", *UNZEROED, *FEW, *THP),
    ("mthp", "6.12", *UNZEROED, *FEW[:2], *SIZES, *THP),
    ("hugetlb-2m", "6.12", *FEW, *THP),
    ("hugetlb-2m", "7.3", "--way", "memfd", "--way", "fallocate", *THP),
    ("prezero-faults", "6.12"),
    ("prezero-faults", "7.3"),
    ("prezero-scarce", "6.12"),
    ("prezero-days", "6.12", "--seconds", "300"),
    ("prezero-days", "7.3", "--seconds", "300"),
    ("prezero-stress", "7.3", "--folios", "3000"),
    ("prezero-stress", "6.12", "--folios", "3000"),
    ("pool-grow", "6.1", *ONE_ROUND),
    ("populate-fragmented", "6.1", *ONE_ROUND),
    ("populate-guest", "6.1", *ONE_ROUND),
    ("hugetlb-1g", "7.3", "--way", "write-middle", *ONE_ROUND, "--folios", "1"),
    ("clear-cases", "7.3", *ONE_ROUND),
    ("clear-latency", "6.12", "--preempt", "none", "--kib", "2048", *ONE_ROUND),
    ("hotplug-virtio-mem-4g", "6.1", *ONE_ROUND),
    ("hotplug-virtio-mem-4g", "7.3", *ONE_ROUND),
    ("vmap-faults", "6.12", "--seconds", "5"),
    ("upstream-vmalloc", "6.12", *UPSTREAM, "pte"),
    (DEVDAX, "7.3", *ARM64, "--size", "2G", "--map", "mem", *OLD_CPU, *ONE_ROUND),
    ("pmem-faults", "7.3", *ARM64),
    ("mthp", "7.3", *ARM64, *UNZEROED, *SIZES[:2], *OLD_CPU, *FEW[:2], *THP),
    ("thp-2m", "7.3", *ARM64, "--init-on-alloc", "1", *FEW[:2], *THP),
    ("hugetlb-2m", "7.3", *ARM64, "--way", "fallocate", "--append", ALL_OFF, *THP),
]


@pytest.mark.parametrize("argv", tiers(PUSH, RELEASE), ids=" ".join)
def test_scenario(argv: tuple[str, ...], tmp_path: Path, reports: Reports) -> None:
    name, kernel, *words = argv
    document = passed(tmp_path, name, "--kernel", kernel, *words)
    ((work, outcome),) = reports
    all_is_seen(" ".join(argv), work, outcome)
    facts, declaration = document["run"], scenario.find_scenario(name)
    assert facts["kernel"].startswith(kernel)
    whole(document, rounds=1 if "--rounds 1" in " ".join(words) else 2)
    arms = {(r["scenario"], r["variant"]): r for r in document["results"]}
    assert bool(arms) is declaration.measures
    if name == DEVDAX:
        assert ("[movnti" in facts["backends"]) or "movnti" not in words
        assert ("stnp" in facts["backends"]) is (facts["arch"] == "arm64")
    if words[-2:] == list(THP[-2:]):
        assert {arm for _, arm in arms} == set(clear.ARMS)
        backends = {v["backend"] for v in facts["visits"]}
        if facts["arch"] == "arm64":
            old = {OLD_CPU[1], ALL_OFF} & set(words)  # nor has it memory tags
            assert backends == BACKENDS - ({"mops"} if old else set())
            tagged = [c for c in document["checks"] if "memory tag" in c["name"]]
            assert bool(tagged) is not bool(old)
        else:
            assert backends > {"", "generic", "plain"}
        if facts["arch"] == "arm64":
            assert {v["alloc_on"] for v in facts["visits"]} == {"no"}
    if name == "upstream-hmm":
        assert facts["hooks"] == ["0 memmap_init_zone_device: attached"]
    if INTEL[1] in words:
        assert "cached_max" in {c["name"].partition(":")[0] for c in document["checks"]}


def test_kvm_is_for_the_hosts_own_kind() -> None:
    result = lab(FSDAX, *ARM64, "--accel", "kvm")
    assert result.returncode == Exit.ENVIRONMENT
    assert "KVM cannot be used here: the guest is arm64" in result.stderr


@pytest.mark.release
def test_a_preemption_model_that_the_kernel_has_not() -> None:
    result = lab("clear-latency", "--kernel", "7.3", "--preempt", "none")
    assert result.returncode == Exit.GUEST
    assert "this kernel does not do preempt=none: it has full (lazy)" in result.stderr


POPULATED = "every byte zero, and there ({} corrupted)"
LAST = "wrong=1 folio=0 offset=2097144"


@pytest.mark.parametrize(
    ("argv", "fails", "message"),
    tiers(
        [
            (
                (FSDAX, "--size", "1G", *ONE_ROUND),
                {"struct pages identical (broken-on-purpose)"},
                "words_differ=1 pageblocks_differ=0",
            ),
            (
                ("populate-guest", *ONE_ROUND),
                {POPULATED.format("thp"), POPULATED.format("2m")},
                " wrong=1",
            ),
        ],
        [
            (
                ("thp-2m", *ONE_ROUND, "--folios", "1", "--way", "read"),
                {"every byte zero (2m read)"},
                LAST,
            ),
            (
                ("hotplug-kmem-4g", "--kernel", "7.3", *ONE_ROUND),
                {"zones and free lists as without (proof)"},
                "first differing: on",
            ),
            (
                ("vmap-check", "--arrays", "5", "--arm", "absent"),
                {"arrays mapped as the model says (broken-on-purpose absent)"},
                "1 wrong: ",
            ),
            (
                ("prezero-stress", "--kernel", "7.3", "--folios", "1000"),
                {"every page zero"},
                " wrong: ",
            ),
            (
                ("prezero-2m", "--kernel", "7.3", *ONE_ROUND),
                {"every byte zero (corrupted)"},
                "1 wrong: ",
            ),
        ],
    ),
    # the order of a set differs between the processes that run tests
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_what_is_broken_on_purpose_fails(
    argv: tuple[str, ...],
    fails: set[str],
    message: str,
    *,
    tmp_path: Path,
    reports: Reports,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "result.json"
    words = ["lab", "run", *argv, "--break-one-word", "-o", str(file)]
    assert cli.main(words) == Exit.VERDICT
    checks = json.loads(file.read_text())["checks"]
    assert {check["name"] for check in checks if not check["ok"]} == fails
    assert message in capsys.readouterr().err
    ((work, outcome),) = reports
    all_is_seen(" ".join(argv), work, outcome)


@pytest.mark.release
def test_unknown_backend_lists_those_there_are() -> None:
    result = lab(FSDAX, "--size", "1G", "--backend", "avx9000")
    assert result.returncode == Exit.USAGE
    assert "unknown backend avx9000: the module has movnti" in result.stderr


def _stop_when(message: str, argv: list[str], environment: dict[str, str]) -> int:
    """Start the lab, send SIGINT when it says something, return its code."""
    with subprocess.Popen(
        argv, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as running:
        assert running.stderr
        for line in running.stderr:
            if message in line:
                time.sleep(3)
                running.send_signal(signal.SIGINT)
        return running.wait(30)


def _line_of_descent(pid: int) -> dict[int, str]:
    """Return the command lines of a process and of those that it descends from."""
    commands: dict[int, str] = {}
    while pid and pid not in commands:
        home = Path(f"/proc/{pid}")
        commands[pid] = (home / "cmdline").read_bytes().decode(errors="replace")
        pid = int((home / "status").read_text().partition("PPid:")[2].split()[0])
    return commands


def _processes_below(cache: Path) -> list[str]:
    """Return the command lines that name the cache, but those of runs that go on.

    What a run leaves behind descends from nobody, or from this process.
    """
    leftovers = []
    for home in Path("/proc").glob("[0-9]*"):
        try:
            line = _line_of_descent(int(home.name))
        except OSError:
            continue
        in_other_run = any(
            re.search(r"[/\0](bulkmm|pytest)\0", said) for said in line.values()
        )
        argv = line[int(home.name)]
        if f"{cache}/" in argv and (os.getpid() in line or not in_other_run):
            leftovers.append(argv)
    return leftovers


def _nobodys(directories: Iterable[Path]) -> list[Path]:
    """Return those that no run has: others may run at once, but none begins now."""
    unused = []
    with paths.lock_cache(Progress()):
        for directory in directories:
            with suppress(FileNotFoundError), paths.claim_path(directory) as free:
                unused += [directory] if free else []
    return unused


def _nothing_left(cache: Path) -> None:
    assert not list(cache.glob("*.part"))
    assert not _nobodys(cache.glob("root-*/var/lib/bulkmm/runs/*"))
    assert f"{cache}/" not in Path("/proc/self/mountinfo").read_text()
    assert not _processes_below(cache)


def test_interrupted_guest_leaves_nothing() -> None:
    argv = [*LAB, FSDAX, "--size", "4G"]
    assert _stop_when("under TCG", argv, {}) == Exit.INTERRUPTED
    _nothing_left(paths.cache_dir())


def test_interrupted_setup_leaves_nothing(tmp_path: Path) -> None:
    environment = {"BULKMM_CACHE": str(tmp_path)}
    code = _stop_when("making the Debian root", [*LAB, FSDAX], environment)
    assert code == Exit.INTERRUPTED
    _nothing_left(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.fixture
def guest() -> Iterator[Callable[..., vm.Outcome]]:
    """Return what boots a guest with a job of the test's own."""
    progress = Progress()
    modules = scenario.find_scenario(FSDAX).machine.modules

    def run(job: str, *silent: float, **more: Any) -> vm.Outcome:
        with ExitStack() as stack:
            with lock_kernel("6.12") as kernel:
                lab_root = kernel.root
                base = image.ensure_base(kernel, modules, progress)
                place = stack.enter_context(vm.run_directory(lab_root))
                initramfs = image.pack_initramfs(lab_root, base, place, job, [])
            stack.enter_context(paths.wait_turn(progress))
            booted = vm.Guest(kernel.image, initramfs, 512)
            return vm.boot_guest(booted, lab_root, place, *silent, **more)

    yield run
    _nothing_left(paths.cache_dir())


def test_panic(guest: Callable[..., vm.Outcome]) -> None:
    with pytest.raises(GuestError, match="sysrq triggered crash") as error:
        guest("echo c >/proc/sysrq-trigger\nsleep 60\n")
    assert "Kernel panic" in str(error.value)


STARTED = """echo '{"event":"start"}' >>$1/results"""


@pytest.mark.parametrize(
    ("script", "message", "boots"),
    [
        ("exec sleep 600", "the guest reported nothing for 3 s", 2),  # once more
        (f"{STARTED}; exec sleep 600", "the guest reported nothing for 3 s", 1),
        (STARTED, "the guest ended early", 1),
        (f"{STARTED}; echo a; exit 7", "QEMU ended with code 7 .*: a", 1),
    ],
)
def test_guest_that_does_not_end_as_it_should(
    guest: Callable[..., vm.Outcome],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    message: str,
    boots: int,
) -> None:
    """The shell does what a guest might do to QEMU."""
    starts: list[str] = []

    def command(_guest: vm.Guest, lab_root: root.DebianRoot, run: Path) -> list[str]:
        starts.append(script)
        return ["sh", "-c", script, "sh", lab_root.inner(run)]

    monkeypatch.setattr(vm, "make_command", command)
    monkeypatch.setattr(vm, "BOOTING", 1)
    with pytest.raises(BulkmmError, match=message):
        guest("", 3)
    assert len(starts) == boots


def test_a_warning_in_the_kernel_log_and_a_command_that_fails(
    guest: Callable[..., vm.Outcome],
) -> None:
    events: list[dict[str, Any]] = []
    job = 'echo "<6>WARNING: planted" >/dev/kmsg\nmust insmod /no-such.ko\n'
    with pytest.raises(GuestError, match="WARNING: planted"):
        guest(job, on_event=events.append)
    assert [event["event"] for event in events] == ["start", "fail", "end"]
    assert events[1]["what"].startswith("insmod")
