# SPDX-License-Identifier: GPL-2.0-only
"""What is ours in tracefs: an instance, and probes and events that bear its name.

The name tells the process that owns them, so that the next run can remove what a
killed one left, and nobody else's are touched.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bulkmm.control import module as modules
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.ending import Interruptible, hold_signals

PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
MOUNT = f"mount -t tracefs tracefs {PLACES[0]}"
PROBES, SYNTHETIC = "kprobe_events", "synthetic_events"
NAME = re.compile(r"\bbulkmm_[a-z]+_(\d+)_(\d+)\b")
STARTED = 19  # field of /proc/PID/stat after the name: when the process started
# of the initial PID namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h)
OUTSIDE = "pid:[4026531836]"


def find_tracefs(root: SystemFiles) -> str | None:
    """Return where tracefs is mounted."""
    for path in PLACES:
        if "trace" in root.names(path):  # which only root can see, as a rule
            return path
    return None


def explain_absence(root: SystemFiles) -> tuple[str, str]:
    """Return why tracefs was not found, and what to do about it."""
    places = [
        fields[1]
        for fields in map(str.split, root.lines("/proc/mounts"))
        if fields[2:3] == ["tracefs"]
    ]
    if places and os.geteuid():
        return f"{places[0]}: only root can read it", "run it as root"
    if places:
        where = " or ".join(PLACES)
        return f"{places[0]} cannot be read, or is not {where}", MOUNT
    if not root.is_dir(modules.KERNEL):
        return f"there is no {modules.KERNEL}", modules.MOUNT
    kinds = root.lines("/proc/filesystems")
    if kinds and not any(line.split()[-1:] == ["tracefs"] for line in kinds):
        remedy = "boot a kernel that has CONFIG_FTRACE, as Debian's have"
        return "this kernel has none", remedy
    return "not mounted", MOUNT


def in_container(root: SystemFiles) -> bool:
    """Return whether process numbers here are not the host's."""
    with suppress(OSError):
        return str(root.at("/proc/self/ns/pid").readlink()) != OUTSIDE
    return False


def own_name(kind: str) -> str:
    """Return the name of what this process has there."""
    return f"bulkmm_{kind}_{os.getpid()}_{_start_time(os.getpid())}"


def _start_time(pid: int) -> str:
    """Return when a process started, in ticks; "" if there is none."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[STARTED]
    return ""


@contextmanager
def own_instance(home: SystemFiles, kind: str) -> Iterator[tuple[str, Interruptible]]:
    """Have an instance; yield its name, and what opens a part of the block to signals.

    All that bears the name is removed, however the block ends; where others use it,
    by a later run.
    """
    for name in remove_leftovers(home):
        sys.stderr.write(f"bulkmm: removed what {name} left behind in tracefs\n")
    name = own_name(kind)
    with hold_signals() as interruptible:
        try:
            home.at(f"instances/{name}").mkdir()
            yield name, interruptible
        finally:
            try:
                remove_instance(home, name)
            except OSError as error:  # others use it; what the block made is no less
                sys.stderr.write(f"bulkmm: {name} stays in tracefs: {error}\n")


def remove_leftovers(home: SystemFiles) -> list[str]:
    """Remove what runs left that were killed; return their names."""
    if in_container(SystemFiles(Path("/"))):
        return []
    with hold_signals():
        texts = home.names("instances") + home.lines(PROBES) + home.lines(SYNTHETIC)
        leftovers = {m[0]: m for m in NAME.finditer("\n".join(texts))}
        removed = []
        for name, match in leftovers.items():
            if _start_time(int(match[1])) != match[2]:
                with suppress(OSError):
                    remove_instance(home, name)
                    removed.append(name)
    return removed


def remove_instance(home: SystemFiles, name: str) -> None:
    """Remove all of one owner: whatever refers to something goes before it."""
    instance = f"instances/{name}"
    for event in (f"{name}/out", f"synthetic/{name}", f"{name}/in"):
        file = f"{instance}/events/{event}/trigger"
        for line in reversed(home.lines(file)):
            if line.startswith("hist:"):
                home.write(file, f"!{line.rpartition(' [')[0]}", append=True)
    for event in ("in", "out"):
        if any(f":{name}/{event} " in line for line in home.lines(PROBES)):
            home.write(PROBES, f"-:{name}/{event}", append=True)
    for line in home.lines(SYNTHETIC):
        if line.split()[0] == name:
            home.write(SYNTHETIC, f"!{line}", append=True)
    if home.is_dir(instance):
        home.at(instance).rmdir()  # tracefs: rmdir() despite the files in it
