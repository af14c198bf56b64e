# SPDX-License-Identifier: GPL-2.0-only
"""Kernels of the lab's own configuration: which there are, and what they ask for.

Each is made of fragments in lab/kernels, on top of "make allnoconfig".
"""

import re
from dataclasses import dataclass
from pathlib import Path

from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.paths import FRAGMENTS, content_key

SERIES = "7.3"  # of the source they are built from
# With checks on, emulated, on a host with other work: no CPU is stuck before that.
PATIENT = "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=150"
SETS = re.compile(r"(CONFIG_\w+)=(.+)")


@dataclass(frozen=True)
class Kind:
    """A configuration, and what guests with such a kernel are told."""

    name: str
    fragments: tuple[str, ...]
    poisons: bool = False  # what is freed is filled with a pattern, and looked at
    slow: int = 1  # how much longer a run may take than on a stock kernel
    no_disks: bool = False  # the kernel itself warns when one goes
    arch: Arch = X86_64

    @property
    def files(self) -> list[Path]:
        """Return the fragments."""
        return [FRAGMENTS / f"{name}.config" for name in self.fragments]

    @property
    def text(self) -> str:
        """Return what the fragments say, one after the other."""
        return "".join(file.read_text(encoding="ascii") for file in self.files)

    @property
    def proves_locking(self) -> bool:
        """Return whether such a kernel says at the end whether its locking held."""
        return "CONFIG_PROVE_LOCKING" in options(self.text)

    def command_line(self, words: str) -> str:
        """Return what a guest is told, besides what its scenario has it told.

        A kernel that poisons what is freed does not zero what it allocates.
        """
        zeroes = re.search(r"\binit_on_(?:alloc|free)=1", words)
        poison = "page_poison=1 " if self.poisons and not zeroes else ""
        return f"{PATIENT} {poison}{words}".strip()

    def release(self, version: str) -> str:
        """Return the release of a build from the source of a version.

        It names the fragments' content: whatever is kept by release is of this
        configuration.
        """
        key = content_key(self.files)[:6]
        return f"{version}-{self.name}.{key}-{self.arch.debian}"


KINDS = (
    Kind("debug", ("guest", "debug"), poisons=True, slow=8),
    # bdev_free_inode() frees a gendisk, the queue's kobject in it not yet released
    Kind(
        "debug-kobject",
        ("guest", "debug", "kobject"),
        poisons=True,
        slow=8,
        no_disks=True,
    ),
    Kind("kasan", ("guest", "kasan"), slow=8),
)
NAMES = tuple(kind.name for kind in KINDS)


def find(name: str) -> Kind | None:
    """Return the kind with this name; other names are those of stock kernels."""
    return next((kind for kind in KINDS if kind.name == name), None)


def of(arch: Arch) -> tuple[str, ...]:
    """Return the names of those for an architecture."""
    return tuple(kind.name for kind in KINDS if kind.arch is arch)


def series(name: str) -> str:
    """Return what a kernel's name says of its version: series or full release."""
    return SERIES if find(name) else name


def options(text: str) -> dict[str, str]:
    """Return what a fragment, or a whole configuration, sets."""
    found = map(SETS.fullmatch, text.splitlines())
    return {option[1]: option[2] for option in found if option}


def lacking(asked: str, config: str) -> list[str]:
    """Return what fragments ask for and a configuration has not, in words."""
    has = options(config)
    return [
        f"{name} is {has.get(name, 'n')}, not {value}"
        for name, value in options(asked).items()
        if has.get(name, "n") != value
    ]
