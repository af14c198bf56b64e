# SPDX-License-Identifier: GPL-2.0-only
"""packages: use, upgrade and purge the installed Debian packages in a guest.

The guest boots with the rescue switch, which modprobe reads from the kernel's
command line; the steps after the rescue run as after a boot without it.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bulkmm.lab import work
from bulkmm.lab.machine import debs
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.paths import made_whole
from bulkmm.lab.progress import Progress
from bulkmm.results import Check

STEPS = ("install", "rescue", "use", "upgrade", "purge")  # lab/guest/packages.sh


def next_version() -> str:
    """Return the version to upgrade to: the same sources, the next number."""
    front, _, last = debs.version().rpartition(".")
    return f"{front}.{int(last) + 1}"


@dataclass(frozen=True)
class Work(work.Work):
    """The life cycle of the packages in a guest."""

    @property
    def upgrade(self) -> bool:
        """Return whether DKMS builds the module again."""
        return not self.options.no_upgrade

    def over(self, kernel: Kernel, progress: Progress) -> list[Path]:
        if not self.upgrade:
            return []
        root = kernel.root
        built = debs.ensure(root.path.parent, progress, next_version())
        made = root.var / "packages"  # "debs" is where kernels are fetched
        shutil.rmtree(made, ignore_errors=True)
        with made_whole(made) as part:
            (part / "debs").mkdir()
            for deb in debs.packages(built):
                shutil.copy(deb, part / "debs")
        return [made]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in STEPS if self.upgrade or name != "upgrade")

    def lines(self) -> list[str]:
        to = next_version() if self.upgrade else ""
        rescue = self.scenario.cmdline
        return [f"packages {debs.version()} {rescue} {to}".rstrip()]

    @property
    def quiet(self) -> float:
        return 900 if self.upgrade else super().quiet  # DKMS compiles

    def checks(self, outcome: Outcome) -> list[Check]:
        done = tuple(event["name"] for event in outcome.of("step"))
        made = Check(
            "every step is made", done == self.names, ", ".join(done) or "none"
        )
        return [made, *work.told(outcome)]

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        return {"steps": outcome.of("step")}
