# SPDX-License-Identifier: GPL-2.0-only
"""Probes that add up calls and times inside the kernel, in an instance of their own.

A kprobe event and its return, each on all functions, start and stop a clock by task
and function; a synthetic event carries the difference to a histogram.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bulkmm.control.requirements import is_at_least
from bulkmm.control.system_files import SystemFiles
from bulkmm.control.tracefs import PROBES, SYNTHETIC, own_instance

FIELDS = "u64 func; u64 bytes; u64 lat"
# Tasks by which a start is kept. Those that have gone are forgotten when it is half
# full; a call in progress then is counted and not timed.
TASKS = 1 << 14
# Calls in progress at once that are timed (a function may sleep); more are counted.
ACTIVE = 1024
BUFFER_KIB = "4"  # per CPU: nothing is recorded there
# 6.1's ring_buffer_expanded (kernel/trace/trace.c) is one flag for all instances: the
# size of one sets it, and the top level's buffer stays as small as at boot. 6.12 has
# a flag in each.
OWN_SIZES = "6.12"
# what the triggers of each event are, in the order in which they are set
CALLS = "hist:keys=__probe_ip.sym"
START = (
    "hist:keys=common_pid,__probe_ip:ts0=common_timestamp,bytes=a2-a1"
    f":size={TASKS}:clock=mono"
)
STOP = (
    "hist:keys=common_pid,__probe_func:lat=common_timestamp-$ts0,func=__probe_func"
    ":size={size}:clock=mono:onmatch({name}.in).trace({name},$func,$bytes,$lat)"
)
SUMS = "hist:keys=func.sym,bytes.log2:vals=lat"
LINE = re.compile(
    r"\{ \w+: \[[0-9a-f]+\] (\S+) *(?:, bytes: ~ 2\^(\d+) *)?\}"
    r" hitcount: +(\d+)(?: +lat: +(\d+))?"
)
ENTRIES = re.compile(r"^ +Entries: (\d+)$", re.MULTILINE)
VMSTAT = Path("/proc/vmstat")
HUGE_PAGES = re.compile(r"^thp_fault_alloc (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Sum:
    """Calls of one function with ranges of so many bytes, rounded up to 2^bits."""

    function: str
    bits: int
    calls: int
    ns: int


@dataclass(frozen=True)
class Counts:
    """All calls, what the timed ones add up to, the huge pages that faults have had."""

    calls: dict[str, int]
    sums: list[Sum]
    huge_pages: float = math.inf


class Probes:
    """The probes of an instance."""

    def __init__(self, home: SystemFiles, name: str) -> None:
        self.home = home
        self.name = name
        self.huge_pages = _huge_pages()

    def install(self, functions: Iterable[str]) -> None:
        """Install them on functions."""
        if is_at_least(os.uname().release, OWN_SIZES):
            self._append(f"instances/{self.name}/buffer_size_kb", BUFFER_KIB)
        self._append(SYNTHETIC, f"{self.name} {FIELDS}")
        for function in functions:
            arguments = "a1=$arg1:u64 a2=$arg2:u64"
            self._append(PROBES, f"p:{self.name}/in {function} {arguments}")
            self._append(PROBES, f"r{ACTIVE}:{self.name}/out {function}")
        self._trigger(f"synthetic/{self.name}", SUMS)
        self._trigger(f"{self.name}/in", START)
        self._trigger(f"{self.name}/out", self._stop())
        self._trigger(f"{self.name}/in", CALLS)

    def _append(self, file: str, text: str) -> None:
        # opening these to truncate them would remove everybody's
        self.home.write(file, text, append=True)

    def _trigger(self, event: str, text: str) -> None:
        self._append(f"instances/{self.name}/events/{event}/trigger", text)

    def _stop(self) -> str:
        return STOP.format(name=self.name, size=TASKS)

    def _hist(self, event: str) -> str:
        file = self.home.at(f"instances/{self.name}/events/{event}/hist")
        return file.read_text(encoding="utf-8", errors="replace")

    def read(self) -> Counts:
        """Return the counts so far; tasks that have gone are forgotten now and then."""
        text = self._hist(f"{self.name}/in")
        if any(int(n) > TASKS // 2 for n in ENTRIES.findall(text)):
            self._trigger(f"{self.name}/out", f"{self._stop()}:clear")
            self._trigger(f"{self.name}/in", f"{START}:clear")
        rows = LINE.findall(self._hist(f"synthetic/{self.name}"))
        return Counts(
            {name: int(n) for name, _, n, _ in LINE.findall(text)},
            [Sum(name, int(bits), int(n), int(ns)) for name, bits, n, ns in rows],
            _huge_pages() - self.huge_pages,
        )


def _huge_pages() -> int:
    return sum(map(int, HUGE_PAGES.findall(VMSTAT.read_text(encoding="ascii"))))


@contextmanager
def install_probes(home: SystemFiles, functions: Iterable[str]) -> Iterator[Probes]:
    """Have probes on functions; a signal comes as soon as all are installed."""
    with own_instance(home, "worth") as (name, interruptible):
        probes = Probes(home, name)
        probes.install(functions)
        with interruptible():
            yield probes
