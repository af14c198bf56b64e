# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab prepare``, ``bulkmm lab clean``: make and remove what runs need."""

import argparse
import shutil
from dataclasses import replace

from bulkmm.shell.errors import BulkmmError, Exit
from bulkmm.shell.progress import Progress
from lab import run, scenario
from lab.commands.run import parse_request
from lab.machine import arch, build, cached, kernels
from lab.paths import claim_path, lock_cache, need_sources


def prepare_runs(args: argparse.Namespace) -> int:
    """Make everything that a run needs, without booting a guest."""
    defines = build.parse_defines(args.module_defines)
    on = [arch.find_arch(args.arch)] if args.arch else arch.ARCHES
    for name in args.kernel or ():
        kernels.check_name(name, *on)
    wanted = [
        kernels.find_kernel(name, target)
        for target in on
        for name in args.kernel or target.series
        if not kernels.find_problem(name, target)
    ]
    need_sources()
    cached.need_root()
    progress = Progress()
    with cached.lock_with_kernels(wanted, progress) as cache:
        for kernel in wanted:
            for request in list_requests(kernel, defines):
                ready = run.prepare_run(cache, request, progress)
            if args.strict:
                build.ensure_products(ready.kernel, defines, progress, strict=True)
            progress.note(f"ready: {ready.kernel.release}")
    return Exit.OK


def list_requests(kernel: kernels.Choice, defines: list[str]) -> list[run.Request]:
    """Return a default run of each scenario that a kernel supports."""
    return [
        replace(parse_request([one.name]), kernel=kernel, defines=defines)
        for one in scenario.SCENARIOS
        if one.runs_on(kernel)
    ]


def clean_cache(_args: argparse.Namespace) -> int:
    """Remove the lab's cache (nothing in it is ever mounted)."""
    cached.need_root()
    with lock_cache(Progress()) as cache, claim_path(cache) as unused:
        if not unused:
            raise BulkmmError(
                f"a guest of the cache {cache} is running: nothing removed"
            )
        for pattern in ("root-*", "packaging-*", "*.part"):
            for path in cache.glob(pattern):
                shutil.rmtree(path)
    return Exit.OK
