# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm worth``: its implementation."""

import argparse
import errno
import os
import platform
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from bulkmm.control import module as modules
from bulkmm.control import tracefs
from bulkmm.control.command import USUAL
from bulkmm.control.kernel import Kernel
from bulkmm.control.system_files import SystemFiles
from bulkmm.results import host
from bulkmm.shell import checkout, files
from bulkmm.shell.child import wait_child
from bulkmm.shell.errors import BulkmmError, Exit, UsageError, unknown_word
from bulkmm.worth import gain, probes, report
from bulkmm.worth.functions import Function, find_functions
from bulkmm.worth.gain import Figures
from bulkmm.worth.probes import Counts, Probes
from bulkmm.worth.report import Worth

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = 366 * 86400
POLL = 60.0  # s between looks at how many tasks are remembered
OUTPUT_NAME = "the result"
STDERR = 2


class CannotCountError(BulkmmError):
    """Nothing can be counted here."""


def run_worth(args: argparse.Namespace) -> int:
    """Count, then print what would be saved; or what can be said without."""
    root = SystemFiles(Path("/"))
    try:
        return _count_calls(root, args)
    except CannotCountError as error:
        if not args.json:
            from bulkmm.worth import uncounted

            print(*uncounted.list_uncounted(root), sep="\n", flush=True)
        raise CannotCountError(f"{error}{_list_undone(args)}") from error


def _list_undone(args: argparse.Namespace) -> str:
    """Return what was not done: as with other tracers, nothing runs uncounted."""
    undone = [f"{word} was not run" for word in args.words[:1]]
    undone += [f"{args.output} was not written"] if args.output else []
    return f"; {' and '.join(undone)}" if undone else ""


def _count_calls(root: SystemFiles, args: argparse.Namespace) -> int:
    seconds = _seconds(args)
    earlier = report.read_result(args.compare) if args.compare else None
    files.need_place(args.output, OUTPUT_NAME)
    home = SystemFiles(root.at(_require_tracefs(root)))
    wanted, missing = _select(root, args.path or [])
    cpu, release = host.cpu_name(), platform.release()
    figures = _measure(release) if args.measure else gain.read_gains(cpu, release)
    try:
        with probes.install_probes(home, [one.name for one in wanted]) as active_probes:
            began = time.monotonic()
            code = _wait_for(args.words, active_probes, seconds, quiet=args.json)
            duration, counts = time.monotonic() - began, _read_counts(active_probes)
    except OSError as error:
        raise _probe_error(root, error) from error
    is_loaded, on = modules.is_loaded(root), modules.list_serving(root)
    all_rows = [report.make_row(one, counts, figures, duration) for one in wanted]
    rows = [report.without_saving(row, on) for row in all_rows]
    early = gain.estimate_early(root, figures, on)
    comparisons = report.compare_results(earlier, rows, on) if earlier else []
    result = Worth(
        kernel=release,
        cpu=cpu,
        module=is_loaded,
        command=args.words,
        seconds=round(duration, 6),
        ratios_from=figures.source,
        functions=rows,
        not_counted=missing,
        before=early,
        cost_seconds=round(report.COST_NS / 1e9 * sum(one.calls for one in rows), 6),
        compared=comparisons,
        verdict=report.state_loaded(on, comparisons)
        if is_loaded
        else report.state_verdict(rows, early, duration),
    )
    try:
        result.print_output(report.format_lines(result), as_json=args.json)
    finally:
        if args.output:
            files.write_file(args.output, result.to_json() + "\n", OUTPUT_NAME)
    return code


def _seconds(args: argparse.Namespace) -> float:
    """Return for how long to count; reject what does not fit together."""
    if args.words and args.time:
        raise UsageError("--for and COMMAND: give one; what is counted ends with it")
    if args.words:
        files.need_command(args.words[0])
    period = args.time or USUAL
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)", period)
    seconds = float(match[1]) * UNITS[match[2]] if match else 0
    if not 0 < seconds <= LONGEST:
        raise UsageError(f"--for {period}: give a time above 0, as in 90s, 10m or 24h")
    return seconds


def _require_tracefs(root: SystemFiles) -> str:
    """Return where tracefs is; raise if nothing can be counted here."""
    if os.geteuid():
        raise CannotCountError("worth places probes in the kernel: run it as root")
    if tracefs.in_container(root):
        raise CannotCountError(
            "worth cannot count from within a container: run it on the host"
        )
    place, kernel = tracefs.find_tracefs(root), Kernel(root)
    for name, option in (
        (tracefs.PROBES, "KPROBE_EVENTS"),
        (tracefs.SYNTHETIC, "HIST_TRIGGERS"),
    ):
        lacks = place and not root.at(f"{place}/{name}").exists()
        if lacks or kernel.has_option(option) is False:
            raise CannotCountError(
                f"worth counts by {name}, which this kernel lacks (CONFIG_{option})"
            )
    if place is None:
        raise CannotCountError(f"worth needs tracefs: {tracefs.MOUNT}")
    if root.read("/proc/sys/kernel/ftrace_enabled") == "0":
        raise CannotCountError(
            "kernel.ftrace_enabled is 0: sysctl kernel.ftrace_enabled=1"
        )
    if root.read("/sys/kernel/debug/kprobes/enabled") == "0":
        raise CannotCountError(
            "kprobes are off: echo 1 >/sys/kernel/debug/kprobes/enabled"
        )
    return place


def _select(root: SystemFiles, paths: list[str]) -> tuple[list[Function], list[str]]:
    candidates, missing = find_functions(root, platform.machine())
    path_names = list(dict.fromkeys(one.path for one in candidates))
    for path in paths:
        if path not in path_names:
            raise unknown_word("path", path, path_names)
    candidates = [one for one in candidates if not paths or one.path in paths]
    if not candidates:
        raise CannotCountError(
            "this kernel has none of the functions that can be counted"
        )
    return candidates, missing


def _wait_for(
    words: list[str], active_probes: Probes, seconds: float, *, quiet: bool
) -> int:
    """Wait for a command, or for so long; return the exit code to end with."""
    if words:
        return _command(words, active_probes, quiet=quiet)
    end = time.monotonic() + seconds
    # Ctrl-C ends the time, not the command
    with suppress(KeyboardInterrupt):
        while (remaining := end - time.monotonic()) > 0:
            time.sleep(min(remaining, POLL))
            _read_counts(active_probes)
    return Exit.OK


def _command(words: list[str], active_probes: Probes, *, quiet: bool) -> int:
    """Run a command; with JSON on standard output, its own goes to standard error."""
    try:
        child = subprocess.Popen(words, stdout=STDERR if quiet else None)
    except OSError as error:
        raise UsageError(f"{words[0]}: {error.strerror}") from error
    while True:
        try:
            code = wait_child(child, POLL)
            if code is not None:
                return code if code >= 0 else 128 - code
            _read_counts(active_probes)
        except KeyboardInterrupt:
            child.terminate()


def _read_counts(active_probes: Probes) -> Counts:
    """Return the counts; whatever fails now, the command has run."""
    try:
        return active_probes.read()
    except OSError as error:
        raise BulkmmError(f"the counts cannot be read: {error}") from error


def _probe_error(root: SystemFiles, error: OSError) -> CannotCountError:
    """Return why there are no probes."""
    lockdown = modules.read_choice(root, "/sys/kernel/security/lockdown") or "none"
    # an instance is refused with EINVAL, a probe with EPERM
    is_denied = error.errno in (errno.EPERM, errno.EINVAL)
    if is_denied and lockdown != "none":
        return CannotCountError(
            f"lockdown ({lockdown}) forbids probes: boot without it"
        )
    where = f"{error.filename}: " if error.filename else ""
    return CannotCountError(f"the kernel refuses the probes: {where}{error.strerror}")


def _measure(release: str) -> Figures:
    """Return figures that are measured now, as bench/ in a checkout does it."""
    ratios = checkout.import_room("bench.kernel.ratios", "--measure")
    figures: Figures = ratios.measure_ratios(release)
    return figures
