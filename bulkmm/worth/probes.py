# SPDX-License-Identifier: GPL-2.0-only
"""Probes that add up calls and times inside the kernel, in an instance of their own.

A kprobe event and its return, each on all functions, start and stop a clock by task
and function; a synthetic event carries the difference to a histogram. Everything is
named after its owner, so that the next run can remove what a killed one left, and
nobody else's probes are touched. Files are appended to: opening kprobe_events or
synthetic_events to truncate it would remove everybody's.
"""

import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bulkmm.control.needs import at_least

PREFIX = "bulkmm_worth_"
OWN = re.compile(rf"\b{PREFIX}(\d+)_(\d+)\b")
PROBES, SYNTHETIC = "kprobe_events", "synthetic_events"
FIELDS = "u64 func; u64 bytes; u64 lat"
STARTED = 19  # field of /proc/PID/stat after the name: when the process started
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
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@dataclass(frozen=True)
class Sum:
    """Calls of one function with ranges of so many bytes, rounded up to 2^bits."""

    function: str
    bits: int
    calls: int
    ns: int


@dataclass(frozen=True)
class Counts:
    """All calls, and what the timed ones add up to."""

    calls: dict[str, int]
    sums: list[Sum]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no signal that ends the command in between."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _started(pid: int) -> str:
    """Return when a process started, in ticks; "" if there is none."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[STARTED]
    return ""


def _append(file: Path, text: str) -> None:
    """Write to a file of tracefs without emptying it; Python's own "a" would seek."""
    held = os.open(file, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(held, f"{text}\n".encode("ascii"))
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{file}: {text}") from error
    finally:
        os.close(held)


def _lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


class Probes:
    """The probes of this process; a context that installs and removes them."""

    def __init__(self, home: Path, functions: Iterable[str]) -> None:
        self.home = home
        self.functions = list(functions)
        self.name = f"{PREFIX}{os.getpid()}_{_started(os.getpid())}"
        self.events = self.home / "instances" / self.name / "events"

    def __enter__(self) -> Self:
        """Install them; a failure leaves nothing."""
        try:
            # a signal that came meanwhile is raised at the end of this, in the try
            with undisturbed():
                self._install()
        except BaseException:
            with undisturbed():
                remove(self.home, self.name)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove them."""
        with undisturbed():
            remove(self.home, self.name)

    def _install(self) -> None:
        instance = self.events.parent
        instance.mkdir()
        if at_least(os.uname().release, OWN_SIZES):
            _append(instance / "buffer_size_kb", BUFFER_KIB)
        _append(self.home / SYNTHETIC, f"{self.name} {FIELDS}")
        for one in self.functions:
            arguments = "a1=$arg1:u64 a2=$arg2:u64"
            _append(self.home / PROBES, f"p:{self.name}/in {one} {arguments}")
            _append(self.home / PROBES, f"r{ACTIVE}:{self.name}/out {one}")
        stop = STOP.format(name=self.name, size=TASKS)
        _append(self._event("synthetic", self.name) / "trigger", SUMS)
        _append(self._event(self.name, "in") / "trigger", START)
        _append(self._event(self.name, "out") / "trigger", stop)
        _append(self._event(self.name, "in") / "trigger", CALLS)

    def _event(self, group: str, name: str) -> Path:
        return self.events / group / name

    def read(self) -> Counts:
        """Return the counts so far; tasks that have gone are forgotten now and then."""
        calls = self._event(self.name, "in") / "hist"
        text = calls.read_text(encoding="utf-8", errors="replace")
        if any(int(n) > TASKS // 2 for n in ENTRIES.findall(text)):
            stop = STOP.format(name=self.name, size=TASKS)
            _append(self._event(self.name, "out") / "trigger", f"{stop}:clear")
            _append(self._event(self.name, "in") / "trigger", f"{START}:clear")
        sums = self._event("synthetic", self.name) / "hist"
        found = LINE.findall(sums.read_text(encoding="utf-8", errors="replace"))
        return Counts(
            {name: int(n) for name, _, n, _ in LINE.findall(text)},
            [Sum(name, int(bits), int(n), int(ns)) for name, bits, n, ns in found],
        )


def sweep(home: Path) -> list[str]:
    """Remove what runs left that were killed; return their names."""
    with undisturbed():
        texts = [*_lines(home / PROBES), *_lines(home / SYNTHETIC)]
        with suppress(OSError):
            texts += [one.name for one in (home / "instances").iterdir()]
        left = {m[0]: m for m in OWN.finditer("\n".join(texts))}
        dead = [name for name, m in left.items() if _started(int(m[1])) != m[2]]
        for name in dead:
            remove(home, name)
    return dead


def remove(home: Path, name: str) -> None:
    """Remove all of one owner: whatever refers to something goes before it."""
    instance = home / "instances" / name
    for event in (f"{name}/out", f"synthetic/{name}", f"{name}/in"):
        file = instance / "events" / event / "trigger"
        for line in reversed([t for t in _lines(file) if t.startswith("hist:")]):
            _append(file, f"!{line.rpartition(' [')[0]}")
    for event in ("in", "out"):
        if any(f":{name}/{event} " in line for line in _lines(home / PROBES)):
            _append(home / PROBES, f"-:{name}/{event}")
    for line in _lines(home / SYNTHETIC):
        if line.split()[0] == name:
            _append(home / SYNTHETIC, f"!{line}")
    if instance.is_dir():
        instance.rmdir()  # tracefs: rmdir() despite the files in it
