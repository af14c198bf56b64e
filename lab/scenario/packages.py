# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages: used, upgraded and purged in a guest where they are installed.

The guest boots with the rescue switch, which modprobe reads from the kernel's
command line; the steps after the rescue run as after a boot without it.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from bulkmm.results.model import Check
from bulkmm.shell.progress import Progress
from lab.machine import debs
from lab.machine.kernels import Kernel
from lab.machine.vm import Outcome
from lab.paths import made_whole
from lab.scenario import base
from lab.scenario.base import Scenario

STEPS = ("install", "rescue", "use", "upgrade", "purge")  # lab/guest/packages.sh


def next_version() -> str:
    """Return the version to upgrade to: the same sources, the next number."""
    front, _, last = debs.read_version().rpartition(".")
    return f"{front}.{int(last) + 1}"


class Packages(Scenario):
    """The life cycle of the packages in a guest."""

    observations = (("steps", "step"),)

    @property
    def upgrade(self) -> bool:
        """Return whether DKMS builds the module again."""
        return not self.options.no_upgrade

    def over(self, kernel: Kernel, progress: Progress) -> list[Path]:
        if not self.upgrade:
            return []
        root = kernel.root
        directory = debs.ensure_packages(root.path.parent, progress, next_version())
        overlay = root.var / "packages"  # "debs" is where kernels are fetched
        shutil.rmtree(overlay, ignore_errors=True)
        with made_whole(overlay) as part:
            (part / "debs").mkdir()
            for deb in debs.list_packages(directory):
                shutil.copy(deb, part / "debs")
        return [overlay]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in STEPS if self.upgrade or name != "upgrade")

    def lines(self) -> list[str]:
        to = next_version() if self.upgrade else ""
        return [f"packages {debs.read_version()} {self.machine.cmdline} {to}".rstrip()]

    @property
    def quiet(self) -> float:
        return 900 if self.upgrade else super().quiet  # DKMS compiles

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        steps = tuple(event["name"] for event in outcome.of("step"))
        detail = ", ".join(steps) or "none"
        yield Check("every step is made", steps == self.names, detail)


SCENARIOS = (
    Packages(
        "packages",
        "the Debian packages are installed, upgraded and purged, and the module is "
        "kept inert by its boot parameter",
        "DKMS builds the module for the running kernel, it loads and attaches; inert "
        "hooks no function; purging leaves no file",
        family="packages",
        path="packages",
        takes=("no_upgrade",),
        runs=base.Runs(
            full=(),
        ),
        machine=base.Machine(
            modules=("virtio_blk", "ext4"),
            cmdline="bulkmm.inert=1",  # the rescue switch
            disk=True,
            memory=2048,
        ),
        needs=base.Needs(
            lacking_debug="Debian has no packages of the kernel {kernel}",
            x86_only="the packages are built",
        ),
        seconds=300,
    ),
)
