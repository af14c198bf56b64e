# SPDX-License-Identifier: GPL-2.0-only
"""The kernel: release, configuration, command line, who clears pages."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Literal

from bulkmm.control import requirements
from bulkmm.control.system_files import SystemFiles

CONFIGS = ("/boot/config-{}", "/lib/modules/{}/config", "/lib/modules/{}/build/.config")
PACKED_CONFIG = "/proc/config.gz"
OPTION = re.compile(r"^CONFIG_(\w+)=(.*)$", re.MULTILINE)
# Since then the allocator with init_on_alloc does the work of folio_zero_user() for
# anonymous memory.
ALLOCATOR_SERVES = "6.13"
Zeroing = Literal["once", "twice", "allocator", "unknown"]
CASES: dict[Zeroing, str] = {
    "once": "init_on_alloc is off: huge pages are cleared once, when they are faulted "
    "in; path clear serves them all",
    "twice": "init_on_alloc=1 on a kernel before 6.13: anonymous huge pages are "
    "cleared twice, by the allocator and when they are faulted in; path clear serves "
    "the second time, and nothing the first, which is inlined",
    "allocator": "init_on_alloc=1 on 6.13 or later: anonymous huge pages are cleared "
    "by the allocator only; path alloc serves those, path clear hugetlb alone",
    "unknown": "init_on_alloc is unknown: neither the command line nor a readable "
    "configuration of this kernel says it",
}
TRUE = re.compile("[1yYtT]|[oO][nN]")  # begins it, to kstrtobool() (lib/kstrtox.c)


class Kernel:
    """The running kernel, or one whose files are below another root."""

    def __init__(self, root: SystemFiles) -> None:
        self.root = root

    @cached_property
    def release(self) -> str:
        """Return what "uname -r" prints."""
        return self.root.read("/proc/sys/kernel/osrelease") or "unknown"

    @cached_property
    def cmdline(self) -> list[str]:
        """Return the words of the kernel's command line."""
        return (self.root.read("/proc/cmdline") or "").split()

    @cached_property
    def config(self) -> dict[str, str] | None:
        """Return the enabled options, without CONFIG_; None if unknown."""
        # a configuration that enables nothing is none: a container's may be masked
        configs = (dict(OPTION.findall(text)) for text in self._read_configs())
        return next(filter(None, configs), None)

    def _read_configs(self) -> Iterator[str]:
        for name in CONFIGS:
            yield self.root.read(name.format(self.release)) or ""
        packed = self.root.at(PACKED_CONFIG)
        if packed.exists():
            import gzip
            import zlib

            with suppress(OSError, EOFError, ValueError, zlib.error):
                yield gzip.decompress(packed.read_bytes()).decode()

    def has_option(self, name: str) -> bool | None:
        """Return whether an option is y or m; None if unknown."""
        if self.config is None:
            return None
        return self.config.get(name) in ("y", "m")

    def find_parameter(self, name: str) -> str | None:
        """Return a parameter's last value on the command line."""
        values = [w.partition("=")[2] for w in self.cmdline if w.startswith(f"{name}=")]
        return values[-1] if values else None

    @cached_property
    def init_on_alloc(self) -> bool | None:
        """Return whether the allocator clears all pages; None if unknown."""
        value = self.find_parameter("init_on_alloc")
        if value is not None:
            return bool(TRUE.match(value))
        return self.has_option("INIT_ON_ALLOC_DEFAULT_ON")

    @property
    def zeroing(self) -> Zeroing:
        """Return who clears a huge page before a process sees it."""
        if self.init_on_alloc is None:
            return "unknown"
        if not self.init_on_alloc:
            return "once"
        allocator_serves = requirements.is_at_least(self.release, ALLOCATOR_SERVES)
        return "allocator" if allocator_serves else "twice"
