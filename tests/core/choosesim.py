# SPDX-License-Identifier: GPL-2.0-only
"""The chooser, compiled alone, and machines to simulate for it."""

from __future__ import annotations

import platform
import random
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from cffi import FFI
from corelib import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MOST = 8
FLAGS = ["-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-O2", "-g"]
SOURCES = [str(path) for path in sorted((ROOT / "core").glob("choose*.c"))]
X86 = platform.machine() == "x86_64"

ffi = FFI()
ffi.cdef(
    """
    unsigned bmm_choose_key(unsigned, size_t, int);
    int bmm_chooser_init(void *, unsigned);
    void bmm_choose_lengthy(void *, unsigned);
    void bmm_choose_reset(void *);
    unsigned bmm_choose_next(void *);
    size_t bmm_choose_chunk(void *, unsigned, size_t);
    void bmm_choose_feed(void *, unsigned, size_t, uint64_t);
    bool bmm_choose_settled(const void *);
    unsigned bmm_choose_best(const void *);
    uint32_t bmm_choose_cost(const void *, unsigned);
    """
)


def compile_with(output: str, *options: str) -> Path:
    """Compile what the options name, in a place of its own."""
    made = Path(mkdtemp(prefix="bmm-choose-")) / output
    include = ["-I", str(ROOT / "core")]
    command = ["cc", *FLAGS, *include, *options, "-o", str(made)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return made


@cache
def lib() -> Any:
    """Return the chooser, compiled as for the kernel."""
    kernel = ["-mgeneral-regs-only"] if X86 else []
    made = compile_with("libchoose.so", "-shared", "-fPIC", *kernel, *SOURCES)
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

    def settled(self) -> bool:
        """Return whether nobody is to be measured."""
        return bool(lib().bmm_choose_settled(self.at))

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
    lengthy: tuple[int, float] = (-1, 0)  # one, and its rate in long chunks
    known: int = 0  # who is announced to be like that, as a mask
    long: int = 48 * MIB  # what is a long chunk to it
    most: int = 1 << 62  # what the caller does at once, whatever is offered
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
        if self.known:
            lib().bmm_choose_lengthy(self.chooser.at, self.known)

    def piece(self, left: int) -> int:
        """Do one chunk: without noise for the account, with it for the chooser."""
        chooser, rates = self.chooser, list(self.rates(self.done))
        if self.op >= self.long and self.lengthy[1]:
            ideal = max(*rates, self.lengthy[1])
        else:
            ideal = max(rates)
        k = chooser.next()
        size = chooser.chunk(k, left)
        assert 0 < size <= left
        size = min(size, self.most)
        if size >= self.long and k == self.lengthy[0]:
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
