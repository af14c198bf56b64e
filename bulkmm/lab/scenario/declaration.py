# SPDX-License-Identifier: GPL-2.0-only
"""What a scenario declares."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bulkmm.control.needs import at_least
from bulkmm.errors import UsageError
from bulkmm.lab.choices import FLAGS, USUAL, Options
from bulkmm.lab.machine import kinds
from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.machine.vm import Hot

if TYPE_CHECKING:  # lab list must not wait for what runs need
    from bulkmm.lab.work import Work

LIVE_PATCH = 1 << 15  # taint of a live patch
LACKING = "the kernel {kernel} lacks what Debian's own has"
# pages of this size are there if they are reserved at boot, where one is left whole
GIB_PAGE = "hugepagesz=1G hugepages=1"
NVDIMM = ("libnvdimm", "nfit", "nd_btt", "nd_pmem", "dax_pmem", "device_dax")


@dataclass(frozen=True)
class Scenario:
    """What a scenario measures, what it takes and needs, and which matrices run it."""

    name: str
    about: str  # what is measured; of scenarios that measure nothing, what is done
    check: str
    family: str
    path: str  # of the module
    seconds: int  # for one run at full size under TCG, without set-up
    work: str = "work:Work"  # its implementation: module and class of bulkmm.lab
    job: tuple[str, ...] = ()  # lines with options: what a guest does alone
    measures: bool = True
    published: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()  # options that apply
    rounds: int = 5  # default
    size: int = 0  # default: bytes of each device
    sizes: tuple[int, int, int] = (0, 1 << 62, 1)  # that fit: least, most, multiple of
    full: tuple[str, ...] = ("",)  # options of its runs in the support matrix
    quick: tuple[str, ...] = ()  # likewise with --quick
    debug: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by kernel
    memory: int = 4096  # MiB of the guest, with an aligned GiB left whole at boot
    cmdline: str = ""  # parameters of its kernel
    hot: Hot = field(default_factory=Hot)
    modules: tuple[str, ...] = ()  # kernel modules that the guest needs
    devices: tuple[str, ...] = ()  # of QEMU, on x86-64
    cpu: str = ""  # likewise; "": the architecture's default
    mode: str = ""  # of pmem and hotplug: the kind of device
    shape: Any = ()  # of its pages, or its cases, as its family has them
    counted: bool = False  # the guest's clock counts instructions
    marked: bool = False  # TCG: the work of its operations is counted
    faults: bool = False  # can be injected: it needs a test build
    since: str = ""  # the oldest kernel that supports it; "": all do
    kind: str = ""  # of the lab's own kernels: runs on no other
    lacking_debug: str = ""  # why it runs on no other of the lab's own kernels
    x86_only: str = ""  # what of it is for x86-64 only
    upstream: str = ""  # a test from the kernel's source, built as a module
    suite: str = ""  # programs of others in the guest (machine/suites.py)
    disk: bool = False  # the guest has one with a Debian system
    taint: int = 0  # expected taint, besides that of loading modules
    warns: bool = False  # warnings are expected between marks

    def lacking(self, kernel: str, arch: Arch) -> str:
        """Return why it cannot run on a kernel of an architecture; "" if it can."""
        if self.x86_only and arch is not X86_64:
            return f"{self.name}: {self.x86_only} for x86_64 only"
        kind = kinds.find(kernel)
        if self.lacking_debug and kind and kernel not in self.debug:
            return f"{self.name}: {self.lacking_debug.format(kernel=kernel)}"
        if kind and kind.no_disks and "nd_pmem" in self.modules:
            return (
                f"{self.name}: its disk would be reported on the kernel {kernel}, "
                "which frees disks before what they hold is released"
            )
        if self.kind not in ("", kernel):
            return f"{self.name} needs kernel {self.kind}, not {kernel}"
        if self.since and not at_least(kinds.series(kernel), self.since):
            return f"{self.name} needs kernel {self.since} or later, not {kernel}"
        return ""

    def runs_on(self, kernel: str, arch: Arch = X86_64) -> bool:
        """Return whether it runs on a kernel, given as series or release."""
        return not self.lacking(kernel, arch)

    def make(self, **chosen: object) -> "Work":
        """Return its work with the user's options; reject those that do not apply."""
        for name in chosen:
            if name not in self.takes:
                raise UsageError(f"{FLAGS[name]} does not apply to {self.name}")
        usual = {**USUAL, "rounds": self.rounds, "size": self.size}
        usual["seed"] = random.SystemRandom().getrandbits(32)
        module, _, name = self.work.partition(":")
        kind = getattr(import_module(f"bulkmm.lab.{module}"), name)
        made: Work = kind(self, Options(**{**usual, **chosen}))
        return made
