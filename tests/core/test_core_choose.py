# SPDX-License-Identifier: GPL-2.0-only
"""The chooser on simulated machines: what it loses against the best, at most."""

from __future__ import annotations

import platform
import random
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pytest
from cffi import FFI
from corelib import EINVAL, ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
AUTO = 2**32 - 1
OPS, KEYS, MOST = 4, 128, 8
FLAGS = ["-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-O2", "-g"]
X86 = platform.machine() == "x86_64"

ffi = FFI()
ffi.cdef(
    """
    unsigned bmm_choose_key(unsigned, size_t, int);
    int bmm_chooser_init(void *, unsigned);
    void bmm_choose_reset(void *);
    int bmm_choose_force(void *, unsigned);
    unsigned bmm_choose_next(void *);
    size_t bmm_choose_chunk(void *, unsigned, size_t);
    void bmm_choose_feed(void *, unsigned, size_t, uint64_t);
    unsigned bmm_choose_best(const void *);
    uint32_t bmm_choose_cost(const void *, unsigned);
    """
)


def compile_with(output: str, *options: str) -> Path:
    """Compile the chooser, and what the options name, in a place of its own."""
    made = Path(mkdtemp(prefix="bmm-choose-")) / output
    include = ["-I", str(ROOT / "core"), str(ROOT / "core" / "choose.c")]
    command = ["cc", *FLAGS, *include, *options, "-o", str(made)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return made


@cache
def lib() -> Any:
    """Return the chooser, compiled as for the kernel."""
    kernel = ["-mgeneral-regs-only"] if X86 else []
    made = compile_with("libchoose.so", "-shared", "-fPIC", *kernel)
    loaded = ffi.dlopen(str(made))
    shutil.rmtree(made.parent)
    return loaded


class Chooser:
    """A chooser among so many, in memory that held something else."""

    def __init__(self, candidates: int, fill: int = 0xA5) -> None:
        """Start it."""
        self.memory = ffi.new("char[]", bytes([fill]) * 1024)
        address = int(ffi.cast("uintptr_t", self.memory))
        self.at = self.memory + -address % 64
        assert lib().bmm_chooser_init(self.at, candidates) == 0

    def next(self) -> int:
        """Return who takes the next chunk."""
        return int(lib().bmm_choose_next(self.at))

    def chunk(self, candidate: int, left: int) -> int:
        """Return how much of what is left to do."""
        return int(lib().bmm_choose_chunk(self.at, candidate, left))

    def feed(self, candidate: int, size: int, ns: int) -> None:
        """Tell how long it took."""
        lib().bmm_choose_feed(self.at, candidate, size, ns)

    def best(self) -> int:
        """Return the best known."""
        return int(lib().bmm_choose_best(self.at))

    def cost(self, candidate: int) -> int:
        """Return its median."""
        return int(lib().bmm_choose_cost(self.at, candidate))

    @property
    def state(self) -> bytes:
        """Return all that it knows."""
        return bytes(ffi.buffer(self.at, 448))


def one(_: random.Random) -> float:
    return 1.0


def uniform(share: float) -> Callable[[random.Random], float]:
    return lambda r: r.uniform(1 - share, 1 + share)


def gauss(share: float) -> Callable[[random.Random], float]:
    return lambda r: max(0.05, r.gauss(1, share))


@dataclass
class Run:
    """Work on a machine whose rates are known, in GB/s by what is done."""

    rates: Callable[[int], Sequence[float]]
    op: int = GIB  # what the caller is asked to do at a time
    noise: Callable[[random.Random], float] = one
    stall: Callable[[int, int], float] = lambda _k, _i: 1.0
    lengthy: tuple[int, float] = (-1, 0)  # one, and its rate from 48 MiB on
    seed: int = 1
    done: int = 0
    took: float = 0
    ideal: float = 0
    switches: int = 0
    log: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the chooser."""
        self.random = random.Random(self.seed)  # noqa: S311 - no secret
        self.chooser = Chooser(len(self.rates(0)))
        self.chunks = [0] * len(self.rates(0))

    def piece(self, left: int) -> int:
        """Do one chunk: without noise for the account, with it for the chooser."""
        chooser, rates = self.chooser, list(self.rates(self.done))
        if self.op >= 48 * MIB and self.lengthy[1]:
            ideal = max(*rates, self.lengthy[1])
        else:
            ideal = max(rates)
        k = chooser.next()
        size = chooser.chunk(k, left)
        assert 0 < size <= left
        if size >= 48 * MIB and k == self.lengthy[0]:
            rates[k] = self.lengthy[1]
        time = size / rates[k] * self.stall(k, self.chunks[k])
        self.log.append((k, size))
        self.chunks[k] += 1
        self.done += size
        self.took += time
        self.ideal += size / ideal
        before = chooser.best()
        chooser.feed(k, size, round(time * self.noise(self.random)))
        self.switches += chooser.best() != before
        return size

    def work(self, total: int = GIB) -> Run:
        """Do so much, from now on."""
        self.took = self.ideal = self.switches = 0
        for _ in range(total // self.op):
            left = self.op
            while left:
                left -= self.piece(left)
        return self

    @property
    def lost(self) -> float:
        """Return the time lost against always using the best, in percent."""
        return (self.took / self.ideal - 1) * 100


def steady(*rates: float, **how: Any) -> Run:
    return Run(lambda _: rates, **how)


def then(
    at: int, before: Sequence[float], after: Sequence[float]
) -> Callable[[int], Sequence[float]]:
    return lambda done: before if done < at else after


REAL = (12.0, 22.0, 35.0, 70.0)
MACHINES = [
    (12, 70),
    (35, 70),
    (69, 70),
    (12, 22, 70),
    REAL,
    (12, 22, 35, 66, 70),
    (12, 14, 22, 35, 60, 70),
    (60, 62, 64, 66, 68, 70),
    (12, 12, 12, 12, 12, 70),  # all but one are six times slower
    (7, 7, 7, 7, 7, 70),  # ten times
]
SIZES = [64 * KIB, 2 * MIB, 32 * MIB, GIB]


@pytest.mark.parametrize("op", SIZES)
@pytest.mark.parametrize("rates", MACHINES)
def test_steady(rates: Sequence[float], op: int) -> None:
    for order in (rates, rates[::-1]):
        run = steady(*order, op=op).work()
        assert run.lost <= 1.5
        assert run.chooser.best() == order.index(70)
        more = 4 * GIB if op > MIB else GIB
        assert run.work(more).lost <= 1.6  # re-trials alone
        if op >= 32 * MIB:
            assert run.work(16 * GIB).lost <= 0.8


def test_steady_in_every_order() -> None:
    for rates in permutations(REAL):
        assert steady(*rates).work().lost <= 0.6


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(10, 70), min_size=1, max_size=6), st.sampled_from(SIZES[1:]))
def test_steady_at_any_rates(rates: list[float], op: int) -> None:
    assert steady(*rates, op=op).work().lost <= 2


@pytest.mark.parametrize("op", [64 * MIB, 256 * MIB, GIB])
@pytest.mark.parametrize("rates", [(17, 14, 22), (20, 21, 14), (14, 27)])
def test_faster_only_in_long_chunks(rates: Sequence[float], op: int) -> None:
    """As REP STOSB is: in a few turns it is found, and then it stays."""
    slow = rates.index(14)
    run = steady(*rates, op=op, lengthy=(slow, 44)).work(5 * GIB)
    assert run.chooser.best() == slow
    run.work(8 * GIB)
    assert run.lost <= 2
    assert run.chooser.best() == slow
    assert steady(*rates, op=2 * MIB, lengthy=(slow, 44)).work(5 * GIB).lost <= 0.5


def lost_over(seeds: int, rates: Sequence[float], **how: Any) -> list[float]:
    return sorted(steady(*rates, seed=s, **how).work().lost for s in range(seeds))


@pytest.mark.parametrize("noise", [uniform(0.1), uniform(0.3), gauss(0.1), gauss(0.2)])
@pytest.mark.parametrize("op", [2 * MIB, GIB])
def test_noisy(noise: Callable[[random.Random], float], op: int) -> None:
    """The best is found wherever it is better by more than the noise."""
    for rates in (REAL, (12.0, 22.0, 50.0, 70.0)):
        lost = lost_over(30, rates, noise=noise, op=op)
        assert sum(lost) / len(lost) <= 1
        assert lost[-1] <= 4


@pytest.mark.parametrize(
    ("noise", "mean"), [(uniform(0.1), 2), (uniform(0.3), 3.5), (gauss(0.2), 3.5)]
)
def test_noise_that_hides_the_differences(
    noise: Callable[[random.Random], float], mean: float
) -> None:
    """One of the better ones is found: the slowest would lose 17 %."""
    lost = lost_over(30, (60, 62, 64, 66, 68, 70), noise=noise, op=2 * MIB)
    assert sum(lost) / len(lost) <= mean
    assert lost[-1] <= 10


@pytest.mark.parametrize(
    ("after", "small", "large"),
    [
        ((12, 22, 35, 20), 2, 30),  # the winner is slower: the second takes over
        ((70, 22, 35, 12), 8, 130),  # and what is best now was the slowest
        ((6, 11, 17, 35), 1, 1),  # all are slower, and the winner is the same
    ],
)
def test_winner_becomes_slower(
    after: Sequence[float], small: float, large: float
) -> None:
    """At once in small pieces; blind for up to 128 MiB in a large operation."""
    rates = then(GIB // 2, REAL, after)
    assert Run(rates, op=2 * MIB).work().lost <= small
    assert Run(rates, op=GIB).work().lost <= large
    for op in (2 * MIB, GIB):
        run = Run(rates, op=op).work()
        assert run.chooser.best() == after.index(max(after))
        assert run.work().lost <= 1.5


def test_drift_long_after_the_decision() -> None:
    run = Run(then(9 * GIB, REAL, (12, 22, 35, 20)), op=2 * MIB).work(9 * GIB)
    assert run.work().lost <= 1.5
    assert run.chooser.best() == 2


def test_noisy_drift() -> None:
    rates = then(GIB // 2, REAL, (12, 22, 35, 20))
    for seed in range(10):
        run = Run(rates, op=2 * MIB, noise=uniform(0.3), seed=seed).work()
        assert run.lost <= 5


@pytest.mark.parametrize("op", [2 * MIB, GIB])
def test_rival_that_becomes_faster_is_found_when_its_turn_comes(op: int) -> None:
    for slow in range(3):
        now = list(REAL)
        now[slow] = 140.0
        run = Run(then(6 * GIB, REAL, now), op=op).work(6 * GIB)
        run.work(4 * GIB)  # three rivals, one turn in 1024 MiB
        assert run.lost <= 100
        assert run.chooser.best() == slow
        assert run.work().lost <= 1.5


def test_endless_change() -> None:
    """The best changes every 128 MiB: still better than to stay with either."""
    two = ((12.0, 22.0, 70.0, 30.0), (12.0, 22.0, 60.0, 70.0))
    run = Run(lambda done: two[done >> 27 & 1], op=2 * MIB).work(4 * GIB)
    assert run.lost <= 9


@pytest.mark.parametrize("candidates", range(2, 7))
def test_tied(candidates: int) -> None:
    run = steady(*[50.0] * candidates, op=2 * MIB).work()
    assert run.work(4 * GIB).switches == 0


@pytest.mark.parametrize(("share", "switches"), [(0.1, 5), (0.2, 10), (0.3, 15)])
def test_tied_and_noisy(share: float, switches: int) -> None:
    """Switches in 2048 chunks, when each is as good as any other."""
    for seed in range(8):
        run = steady(50, 50, 50, op=2 * MIB, noise=uniform(share), seed=seed)
        run.work()
        assert run.work(4 * GIB).switches <= switches


def test_better_by_less_than_the_margin_is_no_reason_to_switch() -> None:
    run = Run(then(GIB, (50, 40), (50, 51.5)), op=2 * MIB).work()
    assert run.work(8 * GIB).switches == 0
    assert run.lost <= 3


@pytest.mark.parametrize("op", [2 * MIB, GIB])
@pytest.mark.parametrize("slow", range(3))
def test_stalling_candidate_is_asked_once(slow: int, op: int) -> None:
    """It costs a chunk of 256 KiB, the next one after three GiB, then every 8."""
    run = steady(*REAL, op=op, stall=lambda k, _: 100 if k == slow else 1)
    run.work(3 * GIB)
    assert [size for k, size in run.log if k == slow] == [256 * KIB]
    once = 256 * KIB * (100 / REAL[slow] - 1 / 70)
    assert run.took - once <= run.ideal * 1.03
    run.work(16 * GIB)
    assert 1 < sum(k == slow for k, _ in run.log) <= 3


@pytest.mark.parametrize("op", [2 * MIB, GIB])
def test_best_stalls_on_its_first_chunk(op: int) -> None:
    """The second takes its place for 7 GiB; that is the price of the above."""
    run = steady(*REAL, op=op, stall=lambda k, i: 100 if (k, i) == (3, 0) else 1)
    run.work(7 * GIB)
    assert run.lost <= 105
    assert run.chooser.best() == 3
    assert run.work().lost <= 1.5


@pytest.mark.parametrize("chunk", [12, 20, 50])
def test_winner_stalls_once_and_keeps_its_place(chunk: int) -> None:
    run = steady(
        *REAL, op=2 * MIB, stall=lambda k, i: 100 if (k, i) == (3, chunk) else 1
    )
    run.work()
    once = 2 * MIB * 99 / 70
    assert run.took - once <= run.ideal * 1.03
    assert run.chooser.best() == 3
    assert run.chunks[3] > 490


def test_winner_that_stalls_from_now_on_costs_a_few_chunks() -> None:
    run = steady(*REAL, op=2 * MIB, stall=lambda k, i: 100 if k == 3 < i - 36 else 1)
    run.work()
    assert run.chooser.best() == 2
    assert 40 <= run.chunks[3] <= 43
    assert run.work(2 * GIB).chunks[3] <= 43


def test_retrials_are_rare() -> None:
    run = steady(*REAL, op=64 * KIB).work()
    run.log.clear()
    run.work()
    assert 10 <= sum(k != 3 for k, _ in run.log) <= 16  # of 16384 chunks


def test_calibration_begins_with_the_fastest_guess_and_asks_all() -> None:
    run = steady(*REAL).work()
    assert run.log[:4] == [(k, 256 * KIB) for k in (3, 2, 1, 0)]
    longest = max(size for _, size in run.log)
    assert 64 * MIB <= longest <= 160 * MIB


def test_long_operation_calibrates_in_longer_chunks() -> None:
    for left, chunk in ((GIB, 1), (3 * GIB, 3), (2**40, 8), (2**63, 8)):
        chooser = Chooser(3)
        assert chooser.chunk(2, left) == 256 * KIB
        chooser.feed(2, MIB, 15000)
        assert chooser.chunk(2, left) == chunk * MIB
        assert chooser.chunk(1, left) == 256 * KIB


@given(st.integers(0, 7), st.integers(0, 2**64 - 1), st.integers(0, 300))
def test_chunk_is_some_of_what_is_left(candidate: int, left: int, chunks: int) -> None:
    chooser = Chooser(6)
    for _ in range(chunks):
        k = chooser.next()
        chooser.feed(k, MIB, 15000 + 9000 * k)
    size = chooser.chunk(candidate, left)
    assert size == left or (0 < size < left and size % (256 * KIB) == 0)
    assert left - size == 0 or left - size > size / 5


def test_the_last_is_best_until_something_is_known() -> None:
    chooser = Chooser(5)
    assert chooser.best() == 4
    chooser.feed(1, MIB, 10**6)
    assert chooser.best() == 1
    chooser.feed(4, MIB, 10**6 - 1)
    assert chooser.best() == 4


def test_a_single_candidate() -> None:
    run = steady(40.0).work(4 * GIB)
    assert run.lost == 0
    assert {k for k, _ in run.log} == {0}


def test_caller_that_never_feeds() -> None:
    chooser = Chooser(4)
    asked = [chooser.next() for _ in range(10000)]
    assert sum(k != 3 for k in asked[:256]) <= 27
    assert sum(k != 3 for k in asked[400:]) <= 20


def test_caller_that_loses_half_of_its_samples() -> None:
    chooser = Chooser(4)
    asked = [chooser.next() for _ in range(5)]
    for i in range(5000):
        asked.append(k := chooser.next())
        if i % 2:
            chooser.feed(k, MIB, round(MIB / REAL[::-1][k]))
    assert chooser.best() == 0
    assert sum(k != 0 for k in asked[500:]) <= 30


SAMPLE = st.tuples(
    st.one_of(st.integers(0, 9), st.integers(0, 2**32 - 1)),
    st.one_of(st.sampled_from([0, 1, 4095, 4096, MIB]), st.integers(0, 2**64 - 1)),
    st.one_of(st.sampled_from([0, 1, 15000, 2**43]), st.integers(0, 2**64 - 1)),
)
CALL = st.one_of(
    SAMPLE,
    st.just("next"),
    st.just("reset"),
    st.tuples(st.integers(0, 9), st.integers(0, 2**64 - 1)),
    st.tuples(st.one_of(st.integers(0, 9), st.just(AUTO))),
)


def apply(chooser: Chooser, call: Any) -> int:
    """Make one call; return what was answered."""
    if call == "next":
        return chooser.next()
    if call == "reset":
        lib().bmm_choose_reset(chooser.at)
    elif len(call) == 1:
        return int(lib().bmm_choose_force(chooser.at, *call))
    elif len(call) == 2:
        return chooser.chunk(*call)
    else:
        chooser.feed(*call)
    return 0


@settings(max_examples=300, deadline=None)
@given(st.integers(1, MOST), st.lists(CALL, max_size=150))
def test_garbage_gives_answers_in_range_and_always_the_same(
    candidates: int, calls: list[Any]
) -> None:
    first, second = Chooser(candidates, 0), Chooser(candidates, 255)
    for call in calls:
        said = apply(first, call)
        assert said == apply(second, call)
        assert first.best() == second.best() < candidates
        assert first.next() == second.next() < candidates
        assert [first.cost(k) for k in range(10)] == [second.cost(k) for k in range(10)]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, MOST), st.integers(0, 2**32), st.integers(1, 40))
def test_wild_samples_in_order(candidates: int, seed: int, spread: int) -> None:
    chooser = Chooser(candidates)
    chance = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(1500):
        k = chooser.next()
        assert k < candidates
        size = chooser.chunk(k, GIB)
        chooser.feed(k, size, chance.getrandbits(spread))


@pytest.mark.parametrize(
    ("size", "ns"), [(MIB, 0), (MIB, 255), (0, 100), (4095, 10**6), (2**50, 1000)]
)
def test_impossible_samples_are_ignored(size: int, ns: int) -> None:
    chooser = Chooser(2)
    before = chooser.state
    chooser.feed(0, size, ns)
    chooser.feed(2, MIB, 15000)
    assert chooser.state == before


def test_cost_is_the_median_in_ns_per_mib() -> None:
    chooser = Chooser(2)
    for size, ns in ((MIB, 50000), (4 * MIB, 80000), (64 * KIB, 10**9)):
        chooser.feed(1, size, ns)
    assert chooser.cost(0) == 0
    assert chooser.cost(1) == 50000
    assert chooser.cost(2) == 0
    for _ in range(9):
        chooser.feed(1, 4096, 2**64 - 1)
    assert chooser.cost(1) == 2**32 - 2


def test_reset_is_a_new_beginning() -> None:
    run = steady(*REAL).work(2 * GIB)
    assert not lib().bmm_choose_force(run.chooser.at, 1)
    lib().bmm_choose_reset(run.chooser.at)
    again = Run(lambda _: REAL[::-1])
    again.chooser = run.chooser
    assert again.work().log == steady(*REAL[::-1]).work().log
    assert again.chooser.best() == 0


def test_forced() -> None:
    run = steady(*REAL).work()
    force = lib().bmm_choose_force
    for wrong in (4, 5, 8, 255, 256, AUTO - 1):
        assert force(run.chooser.at, wrong) == EINVAL
        assert run.chooser.best() == 3
    assert force(run.chooser.at, 1) == 0
    run.log.clear()
    run.work(4 * GIB)
    assert run.log == [(1, GIB)] * 4  # whole, and no trial of another
    assert run.chooser.best() == 1
    assert force(run.chooser.at, 9) == EINVAL
    assert run.chooser.best() == 1
    assert force(run.chooser.at, AUTO) == 0
    assert run.chooser.best() == 3  # as before
    assert run.work().lost <= 1.5


def test_forced_before_anything_is_known() -> None:
    chooser = Chooser(3)
    assert lib().bmm_choose_force(chooser.at, 0) == 0
    assert {chooser.next() for _ in range(5000)} == {0}
    assert lib().bmm_choose_force(chooser.at, AUTO) == 0
    assert [chooser.next() for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize("candidates", [0, MOST + 1, 256, 2**32 - 1])
def test_number_out_of_range(candidates: int) -> None:
    chooser = Chooser(2)
    before = chooser.state
    assert lib().bmm_chooser_init(chooser.at, candidates) == EINVAL
    assert chooser.state == before


def test_zeroed_memory_answers_zero() -> None:
    chooser = Chooser(1)
    ffi.buffer(chooser.memory)[:] = bytes(len(chooser.memory))
    chooser.feed(0, MIB, 15000)
    assert (chooser.next(), chooser.best(), chooser.cost(0)) == (0, 0, 0)
    assert chooser.chunk(0, 2**40) == 2**40
    assert lib().bmm_choose_force(chooser.at, 0) == EINVAL
    assert not any(chooser.state)


def test_keys() -> None:
    key = lib().bmm_choose_key
    sizes = [64 * KIB - 1, 64 * KIB, MIB, 64 * MIB]
    keys = {key(o, s, n) for o in range(OPS) for s in sizes for n in range(8)}
    assert keys == set(range(KEYS))
    for low, high in ((0, 65535), (65536, MIB - 1), (MIB, 2**26 - 1), (2**26, 2**63)):
        assert key(1, low, 3) == key(1, high, 3)
    assert key(2, MIB, -1) == key(2, MIB, 0) == key(2, MIB, 8)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(-(2**31), 99))
def test_keys_are_in_range(op: int, length: int, node: int) -> None:
    assert lib().bmm_choose_key(op, length, node) < KEYS


CONCURRENT = r"""
#include <pthread.h>
#include <stdio.h>
#include "choose.h"

#define THREADS 4
static struct bmm_chooser chooser;
static unsigned int wrong;

static void *work(void *arg)
{
    unsigned int me = (unsigned int)(size_t)arg, i, k;
    size_t n;

    for (i = 0; i < 40000; i++) {
        if (!me && i % 10000 == 9999)
            bmm_choose_reset(&chooser);
        if (!me && i % 5000 == 100)
            bmm_choose_force(&chooser, i % 3);
        if (!me && i % 5000 == 200)
            bmm_choose_force(&chooser, BMM_CHOOSE_AUTO);
        if (me == 1 && i % 15000 == 7)
            bmm_chooser_init(&chooser, 5);
        k = bmm_choose_next(&chooser);
        n = bmm_choose_chunk(&chooser, k, 1UL << 21);
        if (k >= 5 || !n || n > 1UL << 21 ||
            bmm_choose_best(&chooser) >= 5)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        /* Five times slower after the half of it. */
        bmm_choose_feed(&chooser, k, n,
                (n / (10 + 15 * (i < 20000 ? k : 4 - k))) +
                    (i * 7919 + me) % 97);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    size_t i;

    bmm_chooser_init(&chooser, 5);
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)i))
            return 3;
    for (i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (i = 0; i < 6000; i++) {
        unsigned int k = bmm_choose_next(&chooser);

        bmm_choose_feed(&chooser, k, 1UL << 20, 10000 + 10000 * k);
    }
    printf("%u wrong, best %u\n", wrong, bmm_choose_best(&chooser));
    return 0;
}
"""


def concurrent(tmp_path: Path, sanitizer: str) -> subprocess.CompletedProcess[str]:
    """Run four threads on one chooser under a sanitizer."""
    source = tmp_path / "concurrent.c"
    source.write_text(CONCURRENT)
    made = compile_with(
        "concurrent", str(source), f"-fsanitize={sanitizer}", "-pthread"
    )
    done = subprocess.run(
        [str(made)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={"TSAN_OPTIONS": "halt_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1"},
    )
    shutil.rmtree(made.parent)
    return done


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_concurrent_use(tmp_path: Path, sanitizer: str) -> None:
    done = concurrent(tmp_path, sanitizer)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout == "0 wrong, best 0\n"


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_needs_nothing_of_its_host() -> None:
    """Neither a library function nor, on any CPU, atomics from a library."""
    for level in ("-O0", "-O2", "-Os", "-O3"):
        made = compile_with("choose.o", "-c", level)
        listing = subprocess.run(
            ["nm", "-u", str(made)], check=True, capture_output=True, text=True
        )
        shutil.rmtree(made.parent)
        needed = set(listing.stdout.split()) - {"U", "_GLOBAL_OFFSET_TABLE_"}
        assert not needed
