# SPDX-License-Identifier: GPL-2.0-only
"""How many stamp together: on machines whose bandwidth grows in any way."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
TESTED = ROOT / "module/crew_size.c"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
MOST = 32  # BMM_CREW_MOST
ROUNDS = 3  # BMM_CREW_ROUNDS


class Size(ctypes.Structure):
    """struct bmm_crew_size."""

    _fields_ = (
        ("members", ctypes.c_uint32),
        ("other", ctypes.c_uint32),
        ("rate", ctypes.c_uint32),
        ("best", ctypes.c_uint32),
        ("rounds", ctypes.c_uint32),
        ("settled", ctypes.c_bool),
    )


def built(source: Path, to: Path) -> ctypes.CDLL:
    command = ["cc", *FLAGS, f"-I{ROOT / 'module'}", str(source), "-o", str(to)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(to))


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return built(TESTED, tmp_path_factory.mktemp("crew") / "crew.so")


def settled(
    code: ctypes.CDLL, most: int, rate: Callable[[int], float], rounds: int = 100
) -> Size:
    """Return what it comes to on a machine that stores so fast with n members."""
    size = Size()
    for _ in range(rounds):
        members = code.bmm_crew_members(ctypes.byref(size), most)
        assert 1 <= members <= most
        if size.settled:
            return size
        code.bmm_crew_learn(ctypes.byref(size), most, members, int(rate(members)))
    raise AssertionError("never settled")


@pytest.mark.parametrize("most", [1, 2, 3, 8, MOST])
def test_one_that_is_at_the_limit_stays_alone(code: ctypes.CDLL, most: int) -> None:
    assert settled(code, most, lambda _n: 37800).members == 1
    assert settled(code, most, lambda n: 37800 * (1 + 0.1 * (n > 1))).members == 1
    assert settled(code, most, lambda n: 37800 / n).members == 1


def test_a_round_of_another_number_says_nothing(code: ctypes.CDLL) -> None:
    """It was forgotten meanwhile, or another job of the node was first."""
    size = Size()
    for _ in range(10 * ROUNDS):
        code.bmm_crew_learn(ctypes.byref(size), MOST, 8, 90000)
    assert (size.members, size.best, size.rounds, size.settled) == (0, 0, 0, False)


@pytest.mark.parametrize("most", [2, 3, 8, MOST])
def test_as_many_as_there_may_be_where_each_adds(code: ctypes.CDLL, most: int) -> None:
    size = settled(code, most, lambda n: 5000 * n)
    assert (size.members, size.best) == (most, 5000 * most)
    assert size.other < most


def test_the_number_up_to_which_it_grew(code: ctypes.CDLL) -> None:
    for limit in (2, 4, 8, 16):
        size = settled(code, MOST, lambda n, limit=limit: 22500 * min(n, limit))
        assert (size.members, size.other) == (limit, 2 * limit)
        assert (size.best, size.rate) == (22500 * limit, 22500 * limit)


@pytest.mark.parametrize("good", range(ROUNDS))
def test_disturbed_rounds_change_nothing(code: ctypes.CDLL, good: int) -> None:
    calls = iter(range(1000))

    def rate(members: int) -> float:
        nr = next(calls)
        return 20000 * min(members, 2) * (1 if nr % ROUNDS == good else 0.1 + nr / 100)

    assert settled(code, 8, rate).members == 2


def test_what_was_measured_outlives_fewer_cpus(code: ctypes.CDLL) -> None:
    size = settled(code, 8, lambda n: 5000 * n)
    assert code.bmm_crew_members(ctypes.byref(size), 2) == 2
    assert code.bmm_crew_members(ctypes.byref(size), 8) == 8


@pytest.mark.parametrize(
    "change",
    [
        ("size->rate / 10", "size->rate / 1000"),
        ("else if (members < most)", "else if (members <= most)"),
        ("swap_words(&size->members, &size->other);", ""),
        ("rate > size->best", "rate"),
    ],
)
def test_what_is_broken_is_seen(tmp_path: Path, change: tuple[str, str]) -> None:
    text = TESTED.read_text()
    assert text.count(change[0]) == 1
    broken = tmp_path / "broken.c"
    broken.write_text(text.replace(*change))
    code = built(broken, tmp_path / "broken.so")
    with pytest.raises(AssertionError):
        every(code)


def every(code: ctypes.CDLL) -> None:
    test_one_that_is_at_the_limit_stays_alone(code, 1)
    test_one_that_is_at_the_limit_stays_alone(code, 8)
    test_as_many_as_there_may_be_where_each_adds(code, 3)
    test_the_number_up_to_which_it_grew(code)
    for good in range(ROUNDS):
        test_disturbed_rounds_change_nothing(code, good)
