# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench populate``: the programs that it is compared with."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from populatelib import run_alone

from bench import populate, populate_peers
from bench.populate_peers import Peer, Program, Task
from bulkmm.shell.errors import BulkmmError, Exit
from bulkmm.shell.size import MIB, PAGE


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> tuple[Peer, Program]:
    """Return a peer by its name, with its program, which may not be installed."""
    by_name = {peer.name: peer for peer in populate_peers.PEERS}
    if not (installed := by_name[request.param].find()):
        pytest.skip(by_name[request.param].absent)
    return by_name[request.param], installed


@pytest.mark.parametrize("kind", ["4k", "thp"])
@pytest.mark.parametrize("peer", ["qemu", "jvm"], indirect=True)
def test_a_program_starts_with_and_without(
    monkeypatch: pytest.MonkeyPatch, peer: tuple[Peer, Program], kind: str
) -> None:
    """Both starts are real; their times are not, which load would distort."""
    time_start, commands = populate_peers.time_start, []
    took = iter([1_000, 3_000])

    def time_on_paper(command: list[str], ready: bytes, *, is_small: bool) -> int:
        assert time_start(command, ready, is_small=is_small) > 0
        commands.append(command)
        return next(took)

    monkeypatch.setattr(populate_peers, "time_start", time_on_paper)
    ways = dict(populate_peers.list_ways(dict([peer]), kind, 64 * MIB, [2]))
    (sample,) = ways[f"{peer[0].name}-2"]("populate-64m-4k")
    assert sample["ns"] == 2_000  # the difference
    plain, populating = commands
    assert plain != populating


def test_a_heap_is_touched() -> None:
    """A JVM has its heap in memory, and 64 MiB more at most; it has not without."""
    if not (java := populate_peers.find_java()):
        pytest.skip("Java is not installed")
    peaks = []

    def measure_peak(command: list[str], *_: object, **__: object) -> int:
        # a process of its own: the peak of a child begins with that of its parent
        code = (
            "import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL, check=True)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        output = subprocess.check_output([sys.executable, "-c", code, *command])
        peaks.append(int(output.split()[-1]) << 10)
        return peaks[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(populate_peers, "time_start", measure_peak)
        populate_peers.time_jvm(java, Task("4k", 256 * MIB, 2))
    plain, touched = peaks[:2]
    assert plain < 128 * MIB  # of this process, before the program replaced it
    assert 256 * MIB < touched < 320 * MIB


@pytest.mark.parametrize("peer", ["perf"], indirect=True)
def test_perf_times_the_bytes(peer: tuple[Peer, Program]) -> None:
    """Each thread has its share: a store of its own to each page, and no more."""
    perf, counts = peer[1], []
    for threads in range(1, min(2, peer[1].threads_most) + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        assert populate_peers.time_perf(perf, Task("4k", 64 * MIB, threads)) > 0
        faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before
        counts.append(faults * PAGE // MIB)
    assert all(64 <= count < 96 for count in counts)


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "script", "line"),
    [
        (
            "perf",
            "echo '# function populate'; echo '# Memory allocation failed - ...'",
            "perf ended and said: # Memory allocation failed - ...",
        ),
        ("perf", "echo 5.0; exit 3", "perf ended and said: 5.0"),
        (
            "java",
            "echo 'Invalid maximum heap size'; echo 'Could not create it.' >&2",
            "java ended and said: Could not create it.",
        ),
    ],
)
def test_a_program_that_fails_is_one_line(
    tmp_path: Path, name: str, script: str, line: str
) -> None:
    """A run with a program that is installed, but fails when it is to populate."""
    usage = 'case "$*" in *-h) echo "  -f, --function <all>"; exit 129;; esac'
    write_program(tmp_path / name, f"{usage}\n{script}")
    words = ["--quick", "--size", "64M", "--kind", "4k", "--processes", "1", "--json"]
    result = run_alone(tmp_path, *words)
    assert result.returncode == Exit.ENVIRONMENT
    peer = {"perf": "perf", "java": "jvm"}[name]
    assert re.search(f"populate-64m-4k, {peer}-[0-9]+: {line}\n", result.stderr)


def test_an_old_perf_is_no_peer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unknown = "Unknown benchmark: 'mmap' for collection 'mem'"
    write_program(tmp_path / "perf", f'echo "{unknown}"; exit 1')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BULKMM_CACHE", str(tmp_path))
    programs, absent = populate_peers.find_peers(["4k", "hugetlb"], 64 * MIB)
    assert not programs
    assert "a newer linux-perf" in absent["perf"]


def test_a_heap_of_another_size_is_left_out() -> None:
    _, absent = populate_peers.find_peers(["4k"], 64 * MIB + PAGE)
    assert absent["jvm"] == "jvm: 67112960 bytes are no multiple of 2M"
    programs, absent = populate_peers.find_peers(["memfd"], 64 * MIB + PAGE)
    assert {peer.name for peer in programs} | {*absent} == {"qemu"}


def test_each_thread_has_a_share() -> None:
    peer = populate_peers.PEERS[0]
    for most, wanted in ((512, [1, 2, 32]), (1, [1])):
        programs = {peer: Program(["qemu"], most)}
        ways = populate_peers.list_ways(programs, "4k", 64 * MIB, [1, 2, 32, 64])
        assert [name for name, _ in ways] == [f"qemu-{count}" for count in wanted]


def test_a_start_that_hides_what_populating_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took = iter([9_000, 8_000, 1_000, 3_000, 9_000, 9_000])
    monkeypatch.setattr(populate_peers, "time_start", lambda *_, **__: next(took))
    qemu = next(peer for peer in populate_peers.PEERS if peer.name == "qemu")
    programs = {qemu: Program(["qemu"])}
    ways = dict(populate_peers.list_ways(programs, "hugetlb", 64 * MIB, [1]))
    job = populate.Job(64 * MIB, ["hugetlb"], 1)
    with pytest.raises(BulkmmError, match=r"a: a start varies .*give a larger --size"):
        list(populate._run_way(job, "hugetlb", partial(ways["qemu-1"], "a")))


def time_start(command: list[str]) -> int:
    return populate_peers.time_start(command, b"ready", is_small=False)


def test_a_program_that_ends_is_one_line() -> None:
    with pytest.raises(BulkmmError, match=r"sh ended and said: no such thing"):
        time_start(["sh", "-c", "echo no such thing"])


def test_a_program_that_is_never_ready_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(populate_peers, "LATEST", 0.2)
    words = ["sh", "-c", "echo starting; exec sleep 60"]
    with pytest.raises(BulkmmError, match=r"sh ran out of time .* said: starting"):
        time_start(words)


def signal_for_long(child: int) -> None:
    for _ in range(200):  # an orphan that was killed waits for init
        os.kill(child, 0)
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(
    "call",
    [
        "peers.time_start([script], b'ready', is_small=False)",
        "[*program.read_events([])]",
    ],
)
def test_a_program_does_not_outlive_its_parent(
    tmp_path: Path, call: str, how: signal.Signals
) -> None:
    file, script = tmp_path / "pid", tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho $$ >{file}; exec sleep 60\n")
    script.chmod(0o755)
    code = (
        "import os, sys; from bulkmm import cli; "
        "from bench import populate_peers as peers, program; cli._heed_signals(); "
        f"script = os.environ['BULKMM_BENCH'] = sys.argv[1]; {call}"
    )
    command = [sys.executable, "-c", code, str(script)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as run:
        for _ in range(1200):
            if file.is_file() and file.read_text():
                break
            time.sleep(0.05)
        child = int(file.read_text())
        run.send_signal(how)
        run.communicate(timeout=60)
    with pytest.raises(ProcessLookupError):
        signal_for_long(child)
