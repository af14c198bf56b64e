# SPDX-License-Identifier: GPL-2.0-only
"""Calibration: what it selects, when and where, and that it disturbs nothing."""

import os
import shutil
import subprocess

import pytest
from corelib import (
    NATIVE,
    Op,
    backend_names,
    build_core,
    ffi,
    list_candidates,
    read_selection,
    run_test_program,
)

CLASSES = {
    Op.STAMP: 4,
    Op.COPY: 8,
    Op.COPY_STREAMING: 8,
    Op.CLEAR: 4,
    Op.CLEAR_STREAMING: 4,
}
STREAMING = {Op.COPY: Op.COPY_STREAMING, Op.CLEAR: Op.CLEAR_STREAMING}


def check_classes(lines: list[str]) -> None:
    """Check that every class of every operation has a candidate."""
    for op, line in zip(Op, lines, strict=True):
        names = line.split(",")
        assert len(names) == CLASSES[op]
        assert set(names) <= set(backend_names(op))


@pytest.mark.parametrize(
    ("percent", "wins"),
    [((100, 98), 0), ((100, 96), 1), ((100, 98, 96), 1), ((97, 100, 98), 0)],
)
def test_a_later_candidate_has_to_win_by_a_margin(
    percent: tuple[int, ...], wins: int
) -> None:
    names = list_candidates(Op.CLEAR)
    costs = [1000 * one for one in percent]
    costs += [400_000] * (len(names) - len(costs))
    (line,) = run_test_program(
        "calibrate", "costs", str(int(Op.CLEAR)), *map(str, costs)
    )
    words = {word.strip("[]").partition("=")[0]: word for word in line.split()}
    assert [name for name, word in words.items() if word[0] == "["] == [names[wins]]
    for name, cost in zip(names, costs, strict=True):
        rate = (256 << 10) / cost  # GB/s
        assert words[name].strip("[]") == f"{name}={rate:.1f}"


@pytest.mark.parametrize(("how", "last_wins"), [("costs", True), ("close", False)])
def test_one_that_is_slow_somewhere_has_to_win_elsewhere(
    how: str, *, last_wins: bool
) -> None:
    names = list_candidates(Op.COPY, skewed=how == "close")
    costs = [*(1000 for _ in names[1:]), 700]
    (line,) = run_test_program("calibrate", how, str(int(Op.COPY)), *map(str, costs))
    (selected,) = (word for word in line.split() if word[0] == "[")
    assert selected[1:].partition("=")[0] == (names[-1] if last_wins else names[0])
    slowest = 700 * (1 if last_wins else 10)
    rate = line.partition(f"{names[-1]}=")[2].split()[0].strip("]")
    assert float(rate) == pytest.approx((256 << 10) / slowest, rel=0.01)  # GB/s


@pytest.mark.parametrize("op", [Op.COPY, Op.COPY_STREAMING, Op.CLEAR])
def test_short_calls_are_judged_by_cold_long_ones_too(op: Op) -> None:
    best = list_candidates(op, skewed=True)[-1]
    costs = ["900" if name == best else "1000" for name in list_candidates(op)]
    (line,) = run_test_program("calibrate", "long", str(int(op)), *costs)
    choices = line.split(",")[2 if CLASSES[op] == 8 else 1 :]
    assert set(choices) == {best}


def test_a_selection_is_what_is_measured_meanwhile() -> None:
    costs = [*("1000" for _ in list_candidates(Op.COPY)[1:]), "700"]
    line, answer = run_test_program("calibrate", "ask", str(int(Op.COPY)), *costs)
    assert answer == line


def test_a_clock_that_stands_still_selects_what_is_preferred() -> None:
    for op, line in zip(Op, run_test_program("calibrate", "still"), strict=True):
        first, skewed = list_candidates(op)[0], list_candidates(op, skewed=True)[0]
        short = "generic" if op in (Op.COPY, Op.CLEAR) else first
        if CLASSES[op] == 4:
            assert line.split(",") == [short, first, first, first]
        else:
            assert line.split(",")[2:] == [first, skewed] * 3


@pytest.mark.parametrize("how", ["old", "threads", "signal"])
def test_calibration_in_the_way_of_others(how: str) -> None:
    check_classes(run_test_program("calibrate", how))


def test_a_child_made_during_calibration_calibrates_anew() -> None:
    lines = run_test_program("calibrate", "fork")
    check_classes(lines[:5])
    check_classes(lines[5:])


def test_on_a_single_cpu() -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    check_classes(run_test_program("calibrate", "threads", by=("taskset", "-c", cpu)))


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
def test_under_valgrind() -> None:
    by = ("valgrind", "-q", "--error-exitcode=9")
    for op, line in zip(Op, run_test_program("calibrate", by=by), strict=True):
        assert len(line.split(",")) == CLASSES[op]  # of a CPU that valgrind emulates


@pytest.mark.parametrize("cpu", ["this", "old"])
def test_what_is_selected_is_frozen(cpu: str) -> None:
    """No clock, no system call, no shared write; the check can fail."""
    assert run_test_program("frozen", cpu) == []
    assert subprocess.run([str(NATIVE / "bmm-frozen"), "break"], check=False).returncode


def test_a_first_call_makes_no_system_call() -> None:
    assert run_test_program("frozen", "first") == []


@pytest.mark.parametrize("op", Op)
def test_the_list_shows_what_was_measured_and_what_is_selected(op: Op) -> None:
    lib = build_core()

    def words() -> list[str]:
        return read_listing(op, 1 << 20).split()

    assert lib.bmm_backend_select(op, b"fastest", 7) == 0
    assert not any("=" in word for word in words())
    choice = read_selection(op)[-2 if CLASSES[op] == 8 else -1]
    names = [word.strip("[]").partition("=")[0] for word in words()]
    assert names == backend_names(op)
    timed_names = {n for n, w in zip(names, words(), strict=True) if "=" in w}
    assert timed_names == set(list_candidates(op))
    assert next(w for w in words() if w[0] == "[").startswith(f"[{choice}")
    assert lib.bmm_backend_select(op, b"fastest", 7) == 0


def read_listing(op: Op, size: int) -> str:
    buf = ffi.new("char[500]")
    build_core().bmm_backend_list(op, size, buf, 500)
    return ffi.string(buf).decode()


def test_what_fits_no_cache_is_streamed_unless_a_backend_is_forced() -> None:
    lib, most = build_core(), 2**64 - 1
    for op, streaming in STREAMING.items():
        # a copy's source has its place there, too
        cache = lib.bmm_host_llc() // (2 if op == Op.COPY else 1) or most
        assert lib.bmm_backend_select(op, b"fastest", 7) == 0
        assert lib.bmm_streams_above[op] == cache
        assert lib.bmm_streams_above[streaming] == most
        if cache != most:
            assert read_listing(op, cache + 1) == read_listing(streaming, cache + 1)
        assert lib.bmm_backend_select(op, b"generic", 7) == 0
        assert lib.bmm_streams_above[op] == most
        assert read_listing(op, most) == read_listing(op, 1 << 20)
        assert lib.bmm_backend_select(op, b"fastest", 7) == 0


def test_short_calls_measure_nothing() -> None:
    lib, target, source = build_core(), ffi.new("char[4096]"), ffi.new("char[4096]")
    calls = {Op.COPY: lib.bmm_copy, Op.COPY_STREAMING: lib.bmm_copy_streaming}
    for op, call in calls.items():
        assert lib.bmm_backend_select(op, b"fastest", 7) == 0
        for size in (0, 1, 2047):
            call(target, source, size)
            assert "=" not in read_listing(op, 1 << 20)
        call(target, source, 2048)
        assert "=" in read_listing(op, 1 << 20)
