# SPDX-License-Identifier: GPL-2.0-only
"""How long clearing goes on without a chance to reschedule, by a clock made up."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    ROOT / "core/image.c",
    ROOT / "core/pick.c",
    ROOT / "core/turn.c",
    ROOT / "module/clear_unit.c",
    ROOT / "tests/module/unitsim.c",
]
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]

# bytes per us of the backends, which become a tenth half way: a server, one that
# emulates, one where they differ a hundredfold, a lone one, slow ones
SERVER = (12000, 15000, 16000, 20000, 50000)
EMULATED = (3000, 150, 5000, 140, 4500)
FAR = (100, 10000, 40, 2500)
ALONE = (8000,)
SLOW = (1500, 1400, 1300, 1200, 1100)
FOLIOS = 3000  # of a run
MOST = 5  # backends
SHARE = 8  # a unit is to take one part in so many of the latency


@dataclass(frozen=True)
class Run:
    """What a simulated run came to."""

    units: int
    bytes: int
    longest: int  # ns
    ns: int
    looks: int  # at the clock
    page: int  # ns of a page by the slowest backend at its slowest
    noticed: int  # longest until it was noticed that all got ten times slower, ns


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the simulation, compiled."""
    made = tmp_path_factory.mktemp("unit") / "unitsim"
    command = ["cc", *FLAGS, *map(str, SOURCES), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


def simulate(
    program: Path,
    rates: tuple[int, ...],
    latency: int,
    *,
    worst: int = 1,
    cache: int = 1,
    seed: int = 1,
) -> Run:
    argv = [str(program), *map(str, (seed, latency, worst, cache, *rates))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return Run(*map(int, done.stdout.split()))


@pytest.mark.parametrize("rates", [SERVER, EMULATED, FAR, ALONE])
@pytest.mark.parametrize("latency", [10, 1000, 10000])
@pytest.mark.parametrize("worst", [1, 4])
def test_no_unit_takes_more_than_is_promised(
    program: Path, rates: tuple[int, ...], latency: int, worst: int
) -> None:
    for seed in (1, 2, 3):
        run = simulate(program, rates, latency, worst=worst, seed=seed)
        assert run.longest <= 1.5 * latency * 1000 + run.page + 200


def test_what_is_fast_in_the_cache_is_no_promise(program: Path) -> None:
    for seed in (1, 2, 3):
        run = simulate(program, SLOW, 1000, cache=40, seed=seed)
        assert run.longest <= 1.5 * 1000 * 1000


@pytest.mark.parametrize("rates", [SERVER, EMULATED, FAR, ALONE])
def test_no_time_is_wanted(program: Path, rates: tuple[int, ...]) -> None:
    run = simulate(program, rates, 0)
    assert run.units * 4096 == run.bytes
    assert run.longest <= run.page + 200


def test_units_are_as_long_as_they_may_be(program: Path) -> None:
    run = simulate(program, ALONE, 1000)
    slow = ALONE[0] / 10
    assert run.units < 2 * FOLIOS + run.bytes / (0.8 * slow * 1000 / SHARE)


@pytest.mark.parametrize("rates", [SERVER, EMULATED, ALONE])
def test_a_tenth_of_the_rate_is_no_surprise(
    program: Path, rates: tuple[int, ...]
) -> None:
    runs = [simulate(program, rates, 1000, seed=seed) for seed in range(1, 6)]
    assert all(run.noticed <= 1.5 * 1000 * 1000 + run.page for run in runs)
    assert any(run.noticed > 1000 * 1000 for run in runs)


@pytest.mark.parametrize("rates", [SERVER, ALONE])
def test_the_clock_is_looked_at_rarely(program: Path, rates: tuple[int, ...]) -> None:
    # twice for one unit in 61; all are timed only while a pick measures (4 times)
    # or a forecast grows, which begins again 60 times in a run
    run = simulate(program, rates, 1000)
    assert run.looks < 2 * run.units / 61 + 60 * (4 * 9 * MOST + 2 * 2 * 14)
