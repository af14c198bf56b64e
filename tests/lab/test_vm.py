# SPDX-License-Identifier: GPL-2.0-only
"""Guests of reduced size: both kernels, every scenario, and what must fail."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from lablib import LAB, lab, passed, tiers

from bulkmm.errors import Exit, GuestError
from bulkmm.lab import paths, scenario
from bulkmm.lab.families import proof
from bulkmm.lab.machine import image, kernels, root, vm
from bulkmm.lab.progress import Progress

pytestmark = pytest.mark.vm

FSDAX, DEVDAX = "pmem-fsdax-100g", "pmem-devdax-100g"
PRIVATE = "hmm-private-64g"
# several CPUs stamp once a backend is chosen
SHARED = ("--cpus", "4", "--workers", "3", "--backend", "movnti")


@pytest.mark.parametrize(
    "argv",
    tiers(
        [
            (DEVDAX, "--kernel", "7.3", "--size", "2G", "--map", "mem", *SHARED),
            (DEVDAX, "--kernel", "7.3", "--size", "1040M", "--align", "4K"),
            (PRIVATE, "--kernel", "7.3", "--size", "2G"),
        ],
        [
            (DEVDAX, "--kernel", "6.12", "--size", "2G"),
            (DEVDAX, "--kernel", "6.12", "--size", "12G", "--align", "1G"),
        ],
    ),
    ids=" ".join,
)
def test_scenario(argv: tuple[str, ...], tmp_path: Path) -> None:
    """Those that the quick matrix has not."""
    document = passed(tmp_path, *argv, "--rounds", "2")
    arms = {(r["scenario"], r["variant"]): r for r in document["results"]}
    for name in (argv[0], f"{argv[0]}-bind"):
        for arm in ("absent", "off", "on"):
            assert len(arms[name, arm]["samples"]) == 2
            assert min(arms[name, arm]["samples"]) > 0
    assert len(arms[f"{argv[0]}-first", "absent"]["samples"]) == 1
    pairs = {(r["base"], r["variant"]) for r in document["ratios"]}
    assert pairs >= {("off", "on"), ("absent", "on"), ("absent", "off")}
    assert document["run"]["kernel"].startswith(argv[2])
    assert ("[movnti" in document["run"]["backends"]) or "movnti" not in argv
    assert 0 < document["run"]["peak_rss_bytes"] < 6_000_000_000
    assert document["machine"]["guest"]["accelerator"] in {"KVM", "TCG"}


FAULTS = [
    ("pmem-faults", "--kernel", "7.3"),
    ("pmem-verify", "--kernel", "6.12"),
    ("clear-faults", "--kernel", "7.3", "--seconds", "6"),
    ("clear-populate", "--kernel", "7.3"),
]
FAULTS_TOO = [
    ("pmem-faults", "--kernel", "6.12"),
    ("pmem-verify", "--kernel", "7.3"),
    ("clear-faults", "--kernel", "6.12", "--seconds", "6"),
]


@pytest.mark.parametrize("argv", tiers(FAULTS, FAULTS_TOO), ids=" ".join)
def test_faults(argv: tuple[str, ...]) -> None:
    done = lab(*argv)
    assert done.returncode == Exit.OK, done.stderr


# the default of cached_max is checked where the CPU is Intel's
INTEL = ("--cpu", "Skylake-Server", "--accel", "tcg")


@pytest.mark.parametrize("argv", tiers([("7.3", *INTEL)], [("6.12",)]), ids=" ".join)
def test_hook_faults(argv: tuple[str, ...], tmp_path: Path) -> None:
    document = passed(tmp_path, "hook-faults", "--kernel", *argv)
    names = {check["name"].partition(":")[0] for check in document["checks"]}
    assert len(argv) == 1 or "cached_max" in names


FEW = ("--way", "write-middle", "--way", "madv-populate", "--way", "fork")
SIZES = ("--kib", "64", "--kib", "16")


@pytest.mark.parametrize(
    "argv",
    tiers(
        [
            ("thp-2m", "--kernel", "6.12", "--init-on-alloc", "0"),
            ("thp-2m", "--kernel", "7.3", "--init-on-alloc", "1", *FEW[:2]),
            ("mthp", "--kernel", "7.3", "--init-on-alloc", "0", *FEW[:2], *SIZES),
            ("hugetlb-2m", "--kernel", "6.12", *FEW),
        ],
        [
            ("thp-2m", "--kernel", "7.3", "--init-on-alloc", "0", *FEW),
            ("mthp", "--kernel", "6.12", "--init-on-alloc", "0", *FEW[:2], *SIZES),
            ("hugetlb-2m", "--kernel", "7.3", "--way", "memfd", "--way", "fallocate"),
            ("hugetlb-1g", "--kernel", "7.3", "--way", "write-middle"),
        ],
    ),
    ids=" ".join,
)
def test_huge_pages(argv: tuple[str, ...], tmp_path: Path) -> None:
    few = ("--rounds", "1", "--folios", "1" if argv[0] == "hugetlb-1g" else "3")
    document = passed(tmp_path, *argv, *few)
    assert {r["variant"] for r in document["results"]} == set(proof.ARMS)
    visits = document["run"]["visits"]
    assert {v["backend"] for v in visits} > {"", "generic", "plain"}
    hits = sum(v["hits"] for v in visits)
    taken_away = argv[:5] == ("thp-2m", "--kernel", "7.3", "--init-on-alloc", "1")
    assert (hits == 0) is taken_away
    assert (sum(v["alloc"] for v in visits) > 0) is taken_away
    assert document["machine"]["guest"]["accelerator"] in {"KVM", "TCG"}


@pytest.mark.parametrize(
    "argv",
    tiers(
        [
            ("clear-cases", "--kernel", "6.12"),
            ("clear-latency", "--kernel", "7.3", "--preempt", "lazy", "--kib", "2048"),
        ],
        [
            ("clear-cases", "--kernel", "7.3"),
            ("clear-latency", "--kernel", "6.12", "--preempt", "none", "--kib", "2048"),
        ],
    ),
    ids=" ".join,
)
def test_clear(argv: tuple[str, ...], tmp_path: Path) -> None:
    assert passed(tmp_path, *argv, "--rounds", "1")["results"]


@pytest.mark.release
def test_a_preemption_model_that_the_kernel_has_not() -> None:
    done = lab("clear-latency", "--kernel", "7.3", "--preempt", "none")
    assert done.returncode == Exit.GUEST
    assert "this kernel does not do preempt=none: it has full (lazy)" in done.stderr


@pytest.mark.release
def test_one_byte_left_fails_the_run() -> None:
    few = ("--rounds", "1", "--folios", "1", "--way", "read")
    done = lab("thp-2m", *few, "--break-one-word")
    assert done.returncode == Exit.VERDICT
    assert "every byte zero (2m read): " in done.stderr
    assert "1 words wrong, first in folio 0 at byte 2097144" in done.stderr


def test_one_broken_word_fails_the_run() -> None:
    done = lab(FSDAX, "--size", "1G", "--rounds", "1", "--break-one-word")
    assert done.returncode == Exit.VERDICT
    assert "struct pages identical (broken-on-purpose)" in done.stderr
    assert "1 words and 0 pageblocks differ" in done.stderr


@pytest.mark.release
def test_unknown_backend_lists_those_there_are() -> None:
    done = lab(FSDAX, "--size", "1G", "--backend", "avx9000")
    assert done.returncode == Exit.USAGE
    assert "unknown backend avx9000: the module has movnti" in done.stderr


def _stop_when(says: str, argv: list[str], environment: dict[str, str]) -> int:
    """Start the lab, send SIGINT when it says something, return its code."""
    # A shell's background job, as CI may be, is born with SIGINT ignored.
    argv = ["env", "--default-signal=INT", *argv]
    with subprocess.Popen(
        argv, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as running:
        assert running.stderr
        for line in running.stderr:
            if says in line:
                time.sleep(3)
                running.send_signal(signal.SIGINT)
        return running.wait(30)


def _line_of_descent(pid: int) -> set[int]:
    """Return a process and those that it descends from."""
    found = set()
    while pid and pid not in found:
        found.add(pid)
        status = Path(f"/proc/{pid}/status").read_text()
        pid = int(status.partition("PPid:")[2].split()[0])
    return found


def _processes_below(cache: Path) -> list[str]:
    """Return the command lines that name the cache, but those of other workers."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = file.read_bytes().decode(errors="replace")
            line = _line_of_descent(int(file.parent.name))
        except OSError:
            continue
        others = os.getppid() in line and os.getpid() not in line
        if f"{cache}/" in argv and "pytest" not in argv and not others:
            found.append(argv)
    return found


def _nobodys(directories: Iterable[Path]) -> list[Path]:
    """Return those that no run has: others may run at once, but none begins now."""
    found = []
    with paths.locked(Progress()):
        for directory in directories:
            with suppress(FileNotFoundError), paths.claimed(directory) as free:
                found += [directory] if free else []
    return found


def _nothing_left(cache: Path) -> None:
    assert not list(cache.glob("*.part"))
    assert not _nobodys(cache.glob("root-*/var/lib/bulkmm/runs/*"))
    assert f"{cache}/" not in Path("/proc/self/mountinfo").read_text()
    assert not _processes_below(cache)


def test_interrupted_guest_leaves_nothing() -> None:
    argv = [*LAB, FSDAX, "--size", "4G"]
    assert _stop_when("under TCG ...", argv, {}) == Exit.INTERRUPTED
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
    modules = scenario.find(FSDAX).modules

    def run(job: str, *silent: float, words: str = "", **more: Any) -> vm.Outcome:
        with ExitStack() as stack:
            with paths.locked(progress) as cache:
                made = root.ensure(cache, progress)
                kernel = kernels.ensure(made, "6.12", progress)
                base = image.ensure_base(kernel, modules, progress)
                place = stack.enter_context(vm.run_directory(made, keep=False))
                initramfs = image.initramfs(made, base, place, job, [])
            stack.enter_context(paths.turn(progress))
            booted = vm.Guest(kernel.image, initramfs, 512, words=words)
            return vm.boot(booted, made, place, *silent, **more)

    yield run
    _nothing_left(paths.cache_dir())


def test_panic(guest: Callable[..., vm.Outcome]) -> None:
    with pytest.raises(GuestError, match="sysrq triggered crash") as error:
        guest("echo c >/proc/sysrq-trigger\nsleep 60\n")
    assert "Kernel panic" in str(error.value)


Stands = Callable[[str], None]
STARTED = """echo '{"event":"start"}' >>$1/results"""


@pytest.fixture
def stands_in(monkeypatch: pytest.MonkeyPatch) -> Stands:
    """Return what gives the shell something to do that a guest might do to QEMU."""

    def begin(script: str) -> None:
        words = ["sh", "-c", script, "sh"]
        monkeypatch.setattr(
            vm, "command", lambda _guest, root, run: [*words, root.inner(run)]
        )

    return begin


def test_guest_that_never_says_anything(
    guest: Callable[..., vm.Outcome], stands_in: Stands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is booted once more, and then given up."""
    boots: list[float] = []
    once = vm._once

    def counted(*more: Any) -> tuple[vm.Outcome, bool]:
        boots.append(time.monotonic())
        return once(*more)

    monkeypatch.setattr(vm, "_once", counted)
    stands_in("exec sleep 600")
    with pytest.raises(GuestError, match="the guest ran out of time"):
        guest("", 3)
    assert len(boots) == 2


def test_guest_that_hangs(
    guest: Callable[..., vm.Outcome], stands_in: Stands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm, "BOOTING", 0.2)
    said: list[str] = []
    stands_in(f"{STARTED}; exec sleep 600")
    with pytest.raises(GuestError, match="the guest ran out of time"):
        guest("", 3, seen=lambda event: said.append(event["event"]))
    assert said == ["start"]


def test_guest_that_ends_without_its_marker(
    guest: Callable[..., vm.Outcome], stands_in: Stands
) -> None:
    stands_in(STARTED)
    with pytest.raises(GuestError, match="the guest ended early"):
        guest("")


def test_each_report_gives_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm, "BOOTING", 1)
    step = f"sleep 0.6; echo '{{}}' >>{tmp_path}/results"
    job = f"for n in 1 2 3 4 5; do {step}; done; exec sleep 600"
    outcome = vm.Outcome(lambda _event: None)
    assert not vm._follow(["sh", "-c", job], tmp_path, 2, outcome)
    assert outcome.events == [{}] * 5


def test_a_warning_in_the_kernel_log_and_a_command_that_fails(
    guest: Callable[..., vm.Outcome],
) -> None:
    said: list[dict[str, Any]] = []
    job = 'echo "<6>WARNING: planted" >/dev/kmsg\nmust insmod /no-such.ko\n'
    with pytest.raises(GuestError, match="WARNING: planted"):
        guest(job, seen=said.append)
    assert [event["event"] for event in said] == ["start", "fail", "end"]
    assert said[1]["what"].startswith("insmod")
