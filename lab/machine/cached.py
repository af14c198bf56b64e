# SPDX-License-Identifier: GPL-2.0-only
"""Kernels from the cache, fetched or built first where it lacks them.

Without the scenarios, which take long to load.
"""

import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import kernel_build, kernels, root
from lab.machine.kernels import Kernel
from lab.paths import lock_cache, protect_cache


def need_root() -> None:
    """Raise early unless this is root on x86_64."""
    if os.geteuid():
        raise BulkmmError("the lab needs root (it makes a Debian root): use sudo")
    if platform.machine() != "x86_64":
        raise BulkmmError(f"the lab runs on x86_64 only, not on {platform.machine()}")


def ensure_kernel(
    debian_root: root.DebianRoot, choice: kernels.Choice, progress: Progress
) -> Kernel:
    """Return a stock kernel or one of the lab's own, from the cache where possible."""
    if choice.kind:
        return kernel_build.build_kernel(debian_root, choice.kind, progress)
    return kernels.fetch_kernel(debian_root, choice.name, progress, choice.arch)


@contextmanager
def lock_with_kernels(
    choices: Iterable[kernels.Choice], progress: Progress
) -> Iterator[Path]:
    """Lock the cache once it has those of these kernels that the lab builds.

    That takes minutes, in which other commands have the cache.
    """
    for kind in filter(None, (choice.kind for choice in choices)):
        with ExitStack() as stack:
            with lock_cache(progress) as cache:
                debian_root = root.ensure_root(cache, progress)
                if kernel_build.find_built(debian_root, kind):
                    continue
                kernel_build.prepare_build(debian_root, kind, progress)
                stack.enter_context(protect_cache(cache))
            kernel_build.build_kernel(debian_root, kind, progress)
    with lock_cache(progress) as cache:
        yield cache


def find_cached(debian_root: root.DebianRoot, choice: kernels.Choice) -> Kernel | None:
    """Return a kernel if there is nothing to fetch or build."""
    if choice.kind:
        return kernel_build.find_built(debian_root, choice.kind)
    return kernels.find_fetched(debian_root, choice.name, choice.arch)
