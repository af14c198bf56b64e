# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab prepare``, ``bulkmm lab clean``: what runs need, made and removed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError, Exit
from bulkmm.lab import run, scenario
from bulkmm.lab.machine import arch, build, upstream
from bulkmm.lab.paths import claimed, locked, need_sources
from bulkmm.lab.progress import Progress

if TYPE_CHECKING:
    import argparse


def prepare(args: argparse.Namespace) -> int:
    """Make everything that a run needs, without running a guest."""
    defines = build.check_defines(args.module_defines)
    wanted = [
        (one, name)
        for one in ([arch.find(args.arch)] if args.arch else arch.ALL)
        for name in args.kernel or one.series
    ]
    for one, name in wanted:
        run.check_kernel(name, one)
    need_sources()
    run.need_root()
    progress = Progress()
    sets = {one.modules for one in scenario.SCENARIOS}
    tests = [one for one in scenario.SCENARIOS if one.upstream]
    with locked(progress) as cache:
        for one, name in wanted:
            for modules in sets:
                ready = run.prepare(cache, name, modules, defines, progress, arch=one)
            if args.strict:
                build.ensure(ready.kernel, defines, progress, strict=True)
            for test in tests:
                if test.runs_on(name):
                    upstream.ensure(ready.kernel, test.upstream, progress)
            progress.note(f"ready: {ready.kernel.release}")
    return Exit.OK


def clean(_args: argparse.Namespace) -> int:
    """Remove what the lab has cached (nothing of it is ever mounted)."""
    run.need_root()
    with locked(Progress()) as cache, claimed(cache) as unused:
        if not unused:
            raise BulkmmError(
                f"a guest of the cache {cache} is running: nothing removed"
            )
        for pattern in ("root-*", "packaging-*", "*.part"):
            for path in cache.glob(pattern):
                shutil.rmtree(path)
    return Exit.OK
