# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm worth``: its implementation."""

import argparse
import errno
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from bulkmm import files, machine
from bulkmm.control import module as modules
from bulkmm.control import tracefs
from bulkmm.control.command import USUAL
from bulkmm.control.kernel import Kernel
from bulkmm.control.root import Root
from bulkmm.errors import BulkmmError, Exit, UsageError, unknown
from bulkmm.worth import gain, probes, report
from bulkmm.worth.functions import Function, functions
from bulkmm.worth.gain import Known
from bulkmm.worth.probes import Probes
from bulkmm.worth.report import Worth

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = 366 * 86400
POLL = 60.0  # s between looks at how many tasks are remembered
WHAT = "the result"
STDERR = 2


def run(args: argparse.Namespace) -> int:
    """Count, then print what would be saved."""
    root = Root(Path("/"))
    seconds = _seconds(args)
    earlier = report.read(args.compare) if args.compare else None
    files.need_place(args.output, WHAT)
    home = Root(root.at(_need(root)))
    wanted, missing = _wanted(root, args.path or [])
    cpu, release = machine.cpu_name(), platform.release()
    known = measured(release) if args.measure else gain.kept(cpu, release)
    try:
        with probes.installed(home, [one.name for one in wanted]) as held:
            began = time.monotonic()
            code = _while(args.words, held, seconds, quiet=args.json)
            spent, counts = time.monotonic() - began, held.read()
    except OSError as error:
        raise _refused(root, error) from error
    rows = [report.row(one, counts, known, spent) for one in wanted]
    early = gain.early(root, known)
    found = Worth(
        kernel=release,
        cpu=cpu,
        module=modules.loaded(root),
        command=args.words,
        seconds=round(spent, 6),
        ratios_from=known.source,
        functions=rows,
        not_counted=missing,
        before=early,
        cost_seconds=round(report.COST_NS / 1e9 * sum(one.calls for one in rows), 6),
        compared=report.compare(earlier, rows) if earlier else [],
        verdict=report.verdict(rows, early, spent),
    )
    try:
        found.tell(report.lines(found), as_json=args.json)
    finally:
        if args.output:
            files.write(args.output, found.json() + "\n", WHAT)
    return code


def _seconds(args: argparse.Namespace) -> float:
    """Return for how long to count; reject what does not fit together."""
    if args.words and args.time:
        raise UsageError("--for and COMMAND: give one; what is counted ends with it")
    if args.words and not shutil.which(args.words[0]):
        raise UsageError(f"{args.words[0]}: there is no such command")
    told = args.time or USUAL
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)", told)
    seconds = float(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST:
        raise UsageError(f"--for {told}: give a time above 0, as in 90s, 10m or 24h")
    return seconds


def _need(root: Root) -> str:
    """Return where tracefs is; raise if nothing can be counted here."""
    if os.geteuid():
        raise BulkmmError("worth places probes in the kernel: run it as root")
    if tracefs.in_container(root):
        raise BulkmmError(
            "worth cannot count from within a container: run it on the host"
        )
    place, kernel = tracefs.place(root), Kernel(root)
    for name, option in (
        (tracefs.PROBES, "KPROBE_EVENTS"),
        (tracefs.SYNTHETIC, "HIST_TRIGGERS"),
    ):
        lacks = place and not root.at(f"{place}/{name}").exists()
        if lacks or kernel.option(option) is False:
            raise BulkmmError(f"this kernel has no {name} (CONFIG_{option})")
    if place is None:
        raise BulkmmError(f"worth needs tracefs: {tracefs.MOUNT}")
    if root.read("/proc/sys/kernel/ftrace_enabled") == "0":
        raise BulkmmError("kernel.ftrace_enabled is 0: sysctl kernel.ftrace_enabled=1")
    if root.read("/sys/kernel/debug/kprobes/enabled") == "0":
        raise BulkmmError("kprobes are off: echo 1 >/sys/kernel/debug/kprobes/enabled")
    return place


def _wanted(root: Root, paths: list[str]) -> tuple[list[Function], list[str]]:
    found, missing = functions(root, platform.machine())
    there = list(dict.fromkeys(one.path for one in found))
    for path in paths:
        if path not in there:
            raise unknown("path", path, there)
    found = [one for one in found if not paths or one.path in paths]
    if not found:
        raise BulkmmError("this kernel has none of the functions that can be counted")
    return found, missing


def measured(release: str) -> Known:
    """Return figures that are measured now, as by "bench kernel --quick"."""
    from bulkmm.bench.amount import FULL_PROCESSES
    from bulkmm.lab.progress import Progress
    from bulkmm.native import run as native

    sys.stderr.write("bulkmm: measuring the ratios on this CPU\n")
    kept = (name for names in gain.SCENARIOS.values() for name in names)
    names = sorted({name.replace("-100g", "-16g") for name in kept})
    often = 1, FULL_PROCESSES  # fewer processes prove no ratio
    progress = Progress()
    try:
        native.need_packages()
        from bulkmm.native import find, measure

        with find.files(release, None, progress) as (image, module):
            job = measure.Job(image, module, "host", *often, quick=True, only=names)
            found = measure.run(job, native.SUBJECTS, progress)
    except BulkmmError as error:
        raise BulkmmError(f"--measure: {error}") from error
    for one in found.failed:
        raise BulkmmError(f"--measure: check failed: {one.name}: {one.detail}")
    return Known("measured just now", gain.of(found))


def _while(words: list[str], held: Probes, seconds: float, *, quiet: bool) -> int:
    """Wait for a command, or for so long; return the exit code to end with."""
    if words:
        return _command(words, held, quiet=quiet)
    end = time.monotonic() + seconds
    # Ctrl-C ends the time, not the command
    with suppress(KeyboardInterrupt):
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, POLL))
            held.read()
    return Exit.OK


def _command(words: list[str], held: Probes, *, quiet: bool) -> int:
    """Run a command; with JSON on standard output, its own goes to standard error."""
    try:
        child = subprocess.Popen(words, stdout=STDERR if quiet else None)
    except OSError as error:
        raise UsageError(f"{words[0]}: {error.strerror}") from error
    while True:
        try:
            with suppress(subprocess.TimeoutExpired):
                code = child.wait(POLL)
                return code if code >= 0 else 128 - code
            held.read()
        except KeyboardInterrupt:
            child.terminate()


def _refused(root: Root, error: OSError) -> BulkmmError:
    """Return why there are no probes."""
    lockdown = modules.chosen(root, "/sys/kernel/security/lockdown") or "none"
    # an instance is refused with EINVAL, a probe with EPERM
    told = error.errno in (errno.EPERM, errno.EINVAL)
    if told and lockdown != "none":
        return BulkmmError(f"lockdown ({lockdown}) forbids probes: boot without it")
    where = f"{error.filename}: " if error.filename else ""
    return BulkmmError(f"the kernel refuses the probes: {where}{error.strerror}")
