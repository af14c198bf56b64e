# SPDX-License-Identifier: GPL-2.0-only
"""The lab's parts that need no guest."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bulkmm.shell import child
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.progress import Progress
from lab import judge, paths, scenario
from lab.machine import accel, kernels, klog, root, vm
from lab.machine.arch import ARM64, X86_64, Arch
from lab.machine.root import DebianRoot
from lab.scenario import vmap

INDEX = {
    f"linux-headers-{release}"
    for release in (
        "6.12.94+deb13-cloud-amd64",
        "6.12.107+deb13-cloud-amd64",
        "6.12.107+deb13-amd64",
        "6.12.107+deb13-common",
        "6.1.0-9-cloud-amd64",
        "6.1.0-56-cloud-amd64",
        "6.1.0-57-amd64",
        "7.3.4+deb13-cloud-amd64",
        "7.3.4+deb13.1-cloud-amd64",
        "7.3.5+deb13-cloud-arm64",
        "7.3.6+deb13-arm64",
        "7.3.4+deb13-arm64-16k",
    )
}

OLD = "WARNING: CPU: 0 PID: 1 at mm/vmalloc.c:556 vmap_small_pages_range_noflush+0x4"
NEW = "WARNING: mm/vmalloc.c:565 at vmap_small_pages_range_noflush+0x449/0x5e0"
LogLines = tuple[str, ...]


@pytest.mark.parametrize(
    ("name", "arch", "release"),
    [
        ("6.1", X86_64, "6.1.0-56-cloud-amd64"),
        ("6.12", X86_64, "6.12.107+deb13-cloud-amd64"),
        ("7.3", X86_64, "7.3.4+deb13.1-cloud-amd64"),
        ("7.3", ARM64, "7.3.5+deb13-cloud-arm64"),
        ("6.12.94+deb13-cloud-amd64", X86_64, "6.12.94+deb13-cloud-amd64"),
        # a flavour for machines, and one with other pages: by full name only
        ("6.12.107+deb13-amd64", X86_64, "6.12.107+deb13-amd64"),
        ("7.3.4+deb13-arm64-16k", ARM64, "7.3.4+deb13-arm64-16k"),
    ],
)
def test_newest_release(name: str, arch: Arch, release: str) -> None:
    assert kernels._release(INDEX, name, arch) == release
    assert kernels.Kernel(DebianRoot(Path("/")), release).arch is arch


def test_a_kernel_without_headers() -> None:
    release = "7.1.13+deb13-cloud-amd64"
    index = {*INDEX, f"linux-image-{release}", f"linux-binary-{release}"}
    with pytest.raises(UsageError, match=r"-7\.1\.13.*, but no headers of it"):
        kernels._release(index, release)


def test_release_that_the_index_lacks() -> None:
    with pytest.raises(UsageError, match=r"the index has .*6\.12\.94\+deb13"):
        kernels._release(INDEX, "6.12.1+deb13-cloud-amd64")


@pytest.mark.parametrize(
    "line",
    [
        "[ 1.0] WARNING: CPU: 0 PID: 1 at mm/memremap.c:1",
        "BUG: unable to handle page fault",
        "[ 2.0] Oops: 0000 [#1]",
        "INFO: task insmod:1 blocked for more than 120 seconds.",
        "refcount_t: underflow; use-after-free.",
        "unchecked MSR access error",
        "[ 3.0] Call trace:",  # arm64's
        "Unable to handle kernel paging request at virtual address 0",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "WARNING: stack going in the wrong direction? at bmm_clear_entry+0x46/0x50",
    ],
)
def test_bad_kernel_log(line: str) -> None:
    log = f"[ 0.1] Linux version 6.12\n{line}\n[ 9.9] bulkmm-lab: end"
    assert klog.find_faults(log) == [line]


def test_good_kernel_log() -> None:
    log = "mtrr: your CPUs had inconsistent fixed MTRR settings\nx86/mm: passed"
    assert klog.find_faults(log) == []
    parameters = "rcupdate.rcu_cpu_stall_timeout=60 panic_on_oops=1"
    log = f"Command line: {parameters}\nKernel command line: {parameters} BUG:"
    log += "\nRCU CPU stall warnings timeout set to 60 (rcu_cpu_stall_timeout)."
    log += "\nbulkmm: memmap: off: CONFIG_KASAN: the configuration rules it out (-95)"
    assert klog.find_faults(log) == []


def logged(arm: str, *lines: str, case: str = "null-first") -> str:
    begin = f"[ 1.0] bulkmm-lab: warnings of {case} in {arm} begin"
    return "\n".join([begin, *lines, "[ 1.1] bulkmm-lab: warnings end", ""])


def test_expected_warnings_are_no_fault() -> None:
    log = logged("pte", OLD, "Call Trace:", "[ 1.0] BUG: sleeping function")
    assert klog.find_faults(log) == ["[ 1.0] BUG: sleeping function"]
    assert klog.find_faults(log + "Call Trace:") == [
        *klog.find_faults(log),
        "Call Trace:",
    ]
    assert klog.find_faults(logged("pte", "WARNING: Oops")) == ["WARNING: Oops"]
    for line, place in ((OLD, "mm/vmalloc.c:556"), (NEW, "mm/vmalloc.c:565")):
        warnings = klog.list_warnings(logged("pte", line, line) + line)
        assert warnings == [("null-first", "pte", [place, place])]
    lockdep = "WARNING: bad unlock balance detected!"
    assert klog.list_warnings(logged("pte", f"[ 1.0] {lockdep}"))[0][2] == [lockdep]


@pytest.mark.parametrize(
    ("absent", "on", "ok"),
    [((OLD,), (OLD,), True), ((OLD,), (), True), ((OLD,), (NEW,), False)],
)
def test_nothing_else_warns_than_without_the_module(
    absent: LogLines, on: LogLines, *, ok: bool
) -> None:
    log = logged("absent", *absent) + logged("on", *on)
    faults = scenario.find_scenario("hotplug-faults")
    assert [check.ok for check in judge._warning_checks(faults, log)] == [ok]


@pytest.mark.parametrize(
    ("case", "absent", "pte", "ok"),
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
def test_warnings(case: str, absent: LogLines, pte: LogLines, *, ok: bool) -> None:
    log = logged("absent", *absent, case=case) + logged("pte", *pte, case=case)
    outcome = vm.Outcome(log=log)
    assert [check.ok for check in vmap.check_warnings(outcome, "absent")] == [ok]


def test_what_was_wrong_is_tried_again_if_kvm_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, tried = kernels.Kernel(DebianRoot(tmp_path), "7.3.4-cloud-amd64"), []
    kernel.root.var.mkdir(parents=True)

    def probe(*_: object) -> str:
        tried.append(1)
        return "" if len(tried) > 2 else "busy"

    def choose(wish: str) -> str:
        return accel.choose_accelerator(wish, kernel, tmp_path, Progress())

    monkeypatch.setattr(accel, "DEVICE", tmp_path)
    monkeypatch.setattr(accel, "_probe", probe)
    assert [choose("auto"), choose("auto"), len(tried)] == ["tcg", "tcg", 1]
    with pytest.raises(BulkmmError, match="busy"):
        choose("kvm")
    assert [choose("kvm"), choose("kvm"), choose("auto")] == ["kvm"] * 3
    assert len(tried) == 3


def test_a_signal_that_ends_qemu_is_named() -> None:
    outcome = vm.Outcome([{"event": "start"}], code=-11)
    with pytest.raises(BulkmmError, match=r"QEMU ended by SIGSEGV .*: last$"):
        vm._judge(outcome, "first\nlast\n", 1)


def test_warnings_that_unit_tests_provoke() -> None:
    """Until the suite ends, and nothing worse."""
    begin, end = "[    1.2]     # Subtest: vmap", "[    1.4] ok 1 vmap"
    case, bug = "[    1.3]     ok 1 vmap_arrays", "[    1.3] BUG: unable to handle"
    warning = "[    1.3] WARNING: CPU: 0 PID: 35 at mm/vmalloc.c:679"
    assert klog.find_faults(f"{begin}\n{case}\n{warning}\n{end}") == []
    assert klog.find_faults(f"{begin}\n{warning}\n{end}\n{warning}") == [warning]
    assert klog.find_faults(f"{warning}\n{begin}\n{end}") == [warning]
    assert klog.find_faults(f"{begin}\n{bug}\n{end}") == [bug]


def test_only_our_taint_is_allowed() -> None:
    assert klog.new_taint(0, 4096 | 8192) == 0
    assert klog.new_taint(512, 512 | 4096) == 0
    assert klog.new_taint(0, 4096 | 512) == 512


def test_mirror_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BULKMM_DEBIAN_MIRROR", "file:/a/mirror")
    monkeypatch.setenv("BULKMM_DEBIAN_KEYRING", str(tmp_path / "none.gpg"))
    with pytest.raises(BulkmmError, match="does not exist"):
        root.apt_source()
    (tmp_path / "none.gpg").touch()
    assert root.apt_source() == (
        "file:/a/mirror",
        tmp_path / "none.gpg",
    )


@pytest.mark.parametrize(
    "text",
    ["Types: deb\nSigned-By: {}\n", "deb [arch=amd64 signed-by={}] http://x y main\n"],
)
def test_signed_by(tmp_path: Path, text: str) -> None:
    keyring = tmp_path / "keys.gpg"
    keyring.touch()
    entry = tmp_path / "entry"
    entry.write_text(text.format(keyring))
    assert root._signed_by(entry) == keyring


def test_child_out_of_time_is_killed() -> None:
    with pytest.raises(child.ChildError, match="ran out of time"):
        child.run_child(["sleep", "60"], 1)
    with pytest.raises(child.ChildError, match="failed with code -1"):
        child.run_child(["sh", "-c", "kill -HUP $$"], 60)


def test_a_child_ends_after_an_interrupt_that_kept_its_lock(tmp_path: Path) -> None:
    """As one does that reaches Popen.wait() between taking the lock and its try."""
    with (
        (tmp_path / "output").open("w") as output,
        child.start_child(["sleep", "600"], output) as sleeper,
    ):
        sleeper._waitpid_lock.acquire()
    assert sleeper.returncode == -signal.SIGKILL


def test_a_child_is_waited_for_with_a_limit() -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        assert child.wait_child(sleeper, 0) is None
        sleeper.terminate()
        assert child.wait_child(sleeper) == -signal.SIGTERM
    with subprocess.Popen(["true"]) as short:
        os.waitpid(short.pid, 0)
        assert child.wait_child(short) == -signal.SIGINT


def test_what_failed_is_the_program_and_not_what_started_it() -> None:
    with pytest.raises(child.ChildError, match=r"^make failed with code 2: "):
        child.run_child([*child.TIED, "make", "-C", "/none"], 60)
    argv = DebianRoot(Path("/root-1")).enter(["apt-get", "update"])
    assert str(child.ChildError(argv, 100, "E: no")).startswith("apt-get failed")


def test_the_reason_why_there_is_no_root_is_the_cause() -> None:
    output = "W: no sandbox\nErr:1 m InRelease\nE: m: refused\nE: Some files"
    assert root._reason(child.ChildError(["mmdebstrap"], 100, output)) == "m: refused"
    late = root._reason(child.ChildError(["mmdebstrap"], None, output))
    assert late.startswith("mmdebstrap ran out of time")


def test_child_dies_with_the_lab(tmp_path: Path) -> None:
    """Even SIGKILL leaves nothing running."""
    script = (
        "import sys; from bulkmm.shell import child\n"
        f"words = ['sh', '-c', 'echo $$ >{tmp_path}/pid; sleep 60']\n"
        "child.run_child([*child.TIED, *words], 60)"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as lab:
        pid = _wait_for(tmp_path / "pid")
        lab.kill()
    assert _has_ended(pid)


def _wait_for(file: Path) -> int:
    for _ in range(100):
        if file.is_file() and (text := file.read_text()):
            return int(text)
        subprocess.run(["sleep", "0.1"], check=True)
    pytest.fail("the child did not start")


def _has_ended(pid: int) -> bool:
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        subprocess.run(["sleep", "0.1"], check=True)
    return False


SCRATCH = """
import os, signal, sys
from pathlib import Path
from bulkmm import cli
from lab.paths import make_scratch
cli._heed_signals()
with make_scratch("bulkmm-a-"), make_scratch("bulkmm-a-") as made:
    try:
        (made / "file").touch()
        print(made, flush=True)
        signal.pause()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_scratch_directories_go_with_their_owner(
    tmp_path: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, with the next one; those of others, and of the living, stay."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    foreign = tmp_path / "bulkmm-b-1"
    foreign.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", SCRATCH],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as run:
        assert run.stdout
        run.stdout.readline()
        with paths.make_scratch("bulkmm-a-"):
            assert len([*tmp_path.glob("bulkmm-a-*")]) == 3
        run.send_signal(how)
    assert len([*tmp_path.iterdir()]) == (3 if how == signal.SIGKILL else 1)
    with paths.make_scratch("bulkmm-a-") as directory:
        assert {*tmp_path.iterdir()} == {foreign, directory}


def test_no_two_functions_of_the_guest_have_one_name() -> None:
    """A guest reads all scripts into one shell."""
    texts = [file.read_text() for file in paths.GUEST.glob("*.sh")]
    names = re.findall(r"^(\w+)\(\)", "\n".join(texts), re.MULTILINE)
    assert len(names) > 100
    assert len(names) == len({*names})
