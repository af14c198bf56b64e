# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench populate``: a short run, its names, its errors, its verdict."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import rootlib
from eventlib import broken, document
from populatelib import run_alone, run_bench
from programs import run_program

from bench import goals, populate, populate_python
from bench.program import find_program
from bulkmm.pool import grow
from bulkmm.results import host
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.size import MIB


def test_a_short_run(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    words = ["--quick", "--size", "64M", "--kind", "4k", "--processes", "2"]
    words += ["-o", str(file)]
    result = run_alone(tmp_path, *words)
    assert result.returncode == 0, result.stderr
    output = Document.read(file)
    assert output.run["argv"] == ["bench", "populate", *words]
    assert {r.scenario for r in output.results} == {"populate-64m-4k"}
    count = len(os.sched_getaffinity(0))
    names = {r.variant for r in output.results}
    variants = {"bulkmm-1", f"bulkmm-{count}", "resident-1", "limit"}
    variants |= {"python-1", f"python-{count}", "python-fill-1"}
    assert {"memset", "map-populate", "madvise", "madvise-again", *variants} <= names
    assert len(output.checks) == len(names)  # each was verified
    assert all(len(r.samples) == 2 for r in output.results)
    pairs = {(r.base, r.variant) for r in output.ratios}
    assert ("madvise", "bulkmm-1") in pairs
    assert ("bulkmm-1", "bulkmm-1") not in pairs
    assert {("python-fill-1", "bulkmm-1"), ("bulkmm-1", "python-1")} <= pairs
    assert ("python-fill-1", f"python-{count}") in pairs
    assert "against madvise" in result.stdout
    absent = output.run["skipped"]
    assert [*absent] == ["qemu", "perf", "jvm"]
    lines = [line for line in result.stdout.splitlines() if "left out" in line]
    assert lines == [f"left out: {why}" for why in absent.values()]


def test_a_small_range(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    result = run_bench(
        "--size", "4K", "--kind", "memfd", "--processes", "2", "-o", str(file)
    )
    assert result.returncode == 0, result.stderr
    output = Document.read(file)
    pairs = {(r.base, r.variant) for r in output.ratios}
    assert {("madvise", "bulkmm-1"), ("resident-madvise", "resident-1")} <= pairs
    assert {r.bytes for r in output.results} == {4096}


def test_what_does_not_verify_fails(tmp_path: Path) -> None:
    for name in ("bmm-bench", "bmm-populate"):
        program = tmp_path / name
        program.write_text(
            "#!/bin/sh\n"
            'named="\\"scenario\\": \\"$1\\", \\"variant\\": \\"$4\\""\n'
            'echo "{\\"event\\": \\"sample\\", $named, \\"bytes\\": $3, \\"ns\\": 9}"\n'
            'echo "{\\"event\\": \\"verified\\", $named, \\"ok\\": false}"\n'
        )
        program.chmod(0o755)
    words = ("--quick", "--size", "64M", "--kind", "memfd", "--processes", "1")
    bench = str(tmp_path / "bmm-bench")
    result = run_alone(tmp_path, *words, BULKMM_BENCH=bench)
    assert result.returncode == 1
    assert "output of bulkmm-1: leaves pages to fault" in result.stderr


def test_a_sample_is_the_median_of_runs_in_memory_that_was_resident(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took, order = iter([3_000, 9_000, 2_000]), []

    def time_way(scenario: str, **_: object) -> Iterator[dict[str, Any]]:
        order.append(scenario)
        yield {"event": "sample", "scenario": scenario, "bytes": 1, "ns": next(took)}
        yield {"event": "verified", "scenario": scenario, "ok": True}

    def back(scenario: str, **_: object) -> Iterator[dict[str, Any]]:
        order.append(scenario)
        yield {"event": "sample", "scenario": scenario, "bytes": 1, "ns": 1}

    monkeypatch.setattr(populate, "_time_way", back)
    job = populate.Job(64 * MIB, ["4k"], 1)
    events = [*populate._run_way(job, "4k", partial(time_way, "a"))]
    assert order == ["back", "a"] * 3
    assert [event.get("ns") for event in events] == [None, None, None, 3_000]


@pytest.mark.parametrize("kind", ["4k", "thp", "memfd"])
def test_what_is_not_there_or_not_zero_is_seen_by_python(kind: str) -> None:
    array = populate_python.map_memory(kind, 64 * MIB)
    assert not populate_python.is_populated(array)
    assert populate_python.is_populated(array)  # looking made it so
    array[-7] = 1
    assert not populate_python.is_populated(array)


@pytest.mark.parametrize("way", ["python-1", "python-fill-1"])
def test_the_verdict_is_on_what_was_timed(way: str) -> None:
    """The arm with its call left out: its verdict says so."""
    code = (
        "import sys; from bench import populate_python as arm; "
        "arm.libbulkmm.populate = lambda *_, **__: None; "
        "arm.main(*sys.argv[1:])"
    )
    words = [sys.executable, "-c", code, "s", "4k", 64 * MIB, way]
    result = run_program(words, check=True)
    assert f'"ok": {"true" if "fill" in way else "false"}' in result.stdout


POPULATE_CALL = "return bmm_populate(m->base, m->len, &options, NULL);"
STORES = (
    "limit_write(share->limit, BMM_CLEAR_STREAMING, share->from,\n"
    "\t\t\t    NULL, share->len);"
)


@pytest.mark.parametrize(
    ("way", "call", "instead"),
    [
        ("bulkmm-1", POPULATE_CALL, "(void)m; (void)options; return 0;"),
        ("bulkmm-1", POPULATE_CALL, f"m->base[m->len - 7] = 1; {POPULATE_CALL}"),
        ("limit", STORES, ";"),
        ("bulkmm-1", POPULATE_CALL, POPULATE_CALL),
    ],
)
def test_what_is_not_there_or_not_zero_is_seen(
    tmp_path: Path, way: str, call: str, instead: str
) -> None:
    """The program with a call left out, or a byte written: its verdict says so."""
    program = broken(tmp_path, "populate.c", call, instead)
    result = run_program([program, "s", "4k", 64 * MIB, way], check=True)
    assert f'"ok": {"true" if call == instead else "false"}' in result.stdout


def run_with_pool(program: Path, way: str, pages: int) -> str:
    """Return what a way over 32 huge pages printed, where so many are free."""
    spare = populate.POOL.count_spare()
    with grow.borrow_pages(populate.POOL, pages - spare):
        return run_program([program, "s", "hugetlb", 64 * MIB, way]).stdout


def test_pages_are_touched_and_copied_after_fork(tmp_path: Path) -> None:
    """What is not copied, for lack of pages or because it is shared, is no sample."""
    rootlib.needs_root()
    intact = find_program().with_name(populate.PROGRAM)
    private, shared = "? MAP_PRIVATE", "? MAP_SHARED"
    sharing = broken(tmp_path, "populate.c", private, shared)
    with rootlib.alone_with_the_pool():
        for way, pages in (("touch", 32), ("fork", 64)):
            assert '"ok": true' in run_with_pool(intact, way, pages)
        assert not run_with_pool(intact, "fork", 63)
        assert not run_with_pool(sharing, "fork", 64)


# a run that has pages lent, which writes what it waits for
LENT = """
import sys, time
from bulkmm import cli
from bench import populate
def measure(*_):
    print(populate.POOL.count_spare(), flush=True)
    time.sleep(60)
populate.measure_populate = measure
sys.exit(cli.main())
"""


@pytest.mark.parametrize("how", ["INT INT", "TERM HUP", "KILL"])
def test_huge_pages_are_released_however_it_ends(how: str) -> None:
    rootlib.needs_root()
    words = ["bench", "populate", "--reserve", "--size"]
    command = [sys.executable, "-c", LENT, *words]
    with rootlib.alone_with_the_pool():
        before = populate.POOL.make_record()
        # more than there is
        command.append(f"{2 * (populate.POOL.count_spare() + 32)}M")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout
            assert int(run.stdout.readline()) >= 32
            for name in how.split():
                run.send_signal(signal.Signals[f"SIG{name}"])
        if how == "KILL":
            assert populate.POOL.make_record() != before
            with grow.exclude_others(populate.POOL):
                pass
        assert populate.POOL.make_record() == before


def test_memory_that_was_reserved_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pages of the pool are there already, those of other kinds are not."""
    monkeypatch.setattr(host, "memory_kib", lambda _field: 0)
    message = "more free pages of 2M needed: --reserve, or"
    with pytest.raises(BulkmmError, match=message):
        populate.measure_populate(populate.Job(1 << 50, ("hugetlb",), 1))
    with pytest.raises(BulkmmError, match="not enough memory"):
        populate.measure_populate(populate.Job(1 << 50, ("4k", "hugetlb"), 1))


def test_a_sample_has_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = tmp_path / "bmm-bench"
    for name, body in (("bmm-bench", ""), (populate.PROGRAM, "exec sleep 60")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("BULKMM_BENCH", str(bench))
    monkeypatch.setattr(populate, "LATEST", 0.2)
    with pytest.raises(BulkmmError, match=r"s, memset: ran out of time"):
        list(populate._time_way("s", kind="4k", size=64 * MIB, way="memset"))


def make_result(scenario: str = "populate-1g-thp", **times: int) -> Document:
    """Return a result with these times of its arms, in every process."""
    samples = {name.replace("_", "-"): [[ns]] * 6 for name, ns in times.items()}
    samples[populate.AGAIN] = samples[populate.BASE]
    result: Document = document((populate.WAYS, {scenario: samples}))
    return result


def list_missed(scenario: str = "populate-1g-thp", **times: int) -> list[str]:
    """Return the goals that these times miss."""
    outcomes = goals.judge_goals(make_result(scenario, **times))
    return goals.list_missed(outcomes)


ONE_THREAD = {"madvise": 1000, "bulkmm_1": 1000, "resident_1": 20}


@pytest.mark.parametrize(
    ("more", "missed"),
    [
        ({}, []),
        ({"bulkmm_1": 1030}, ["one thread, against the kernel's call"]),
        ({"resident_1": 21}, ["already against"]),
        ({"bulkmm_2": 520, "limit_2": 100}, []),
        ({"bulkmm_2": 540, "limit_2": 100}, ["each of several threads"]),
        ({"bulkmm_2": 540, "limit_2": 490}, []),  # the limit is reached
        ({"bulkmm_2": 520, "bulkmm_4": 300}, ["each of several threads"]),
        ({"qemu_1": 900}, ["against QEMU"]),
        ({"bulkmm_2": 520, "qemu_2": 500}, ["QEMU"]),
        ({"bulkmm_2": 520, "qemu_2": 515, "qemu_4": 100}, []),  # as many threads
        ({"python_1": 1025}, []),
        ({"python_1": 1040}, ["from Python against C"]),
        ({"bulkmm_2": 520, "python_2": 540, "python_fill_1": 100}, ["from Python"]),
    ],
)
def test_goals(more: dict[str, int], missed: list[str]) -> None:
    lines = list_missed(**{**ONE_THREAD, **more})
    assert len(lines) == len(missed)
    for line, phrase in zip(lines, missed, strict=True):
        assert line.startswith("not met: ")
        assert phrase in line


def test_private_pages_that_are_there_already_are_the_kernels() -> None:
    again = {**ONE_THREAD, "resident_1": 300}
    assert not list_missed("populate-1g-4k", **again)
    assert list_missed("populate-1g-memfd", **again)
