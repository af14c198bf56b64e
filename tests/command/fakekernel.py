# SPDX-License-Identifier: GPL-2.0-only
"""A directory that looks like the /sys, /proc and /boot of a kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bulkmm.control import requirements

# node, what it takes of a total that is written
Change = Callable[[int, Callable[[int], int]], None]
RELEASE = "7.3.4+deb13-cloud-amd64"
OLD = "6.12.107+deb13-cloud-amd64"
CONFIG = f"/boot/config-{RELEASE}"
RELEASED = "/proc/sys/kernel/osrelease"
OPTIONS = (
    *requirements.WITH,
    "X86_64",
    "MEMORY_HOTPLUG",
    "SPARSEMEM_VMEMMAP",
    "PREEMPT_LAZY",
    "KPROBE_EVENTS",
    "HIST_TRIGGERS",
)
ZEROING = "INIT_ON_ALLOC_DEFAULT_ON"
PATHS: dict[str, dict[str, Any]] = {
    "memmap": {
        "mode": "off [on]",
        "backend": "generic [movdir64b=37.8] movnti=36.1",
        "hook": "0 memmap_init_zone_device: attached",
        "verify": "[off] once always",
        "stats": {"fallback_off": 2, "fallback_small": 4},
    },
    "clear": {
        "mode": "[off] auto cached streaming",
        "backend_cached": "generic=9.1 plain=8.9 [rep-b=12.0]",
        "backend_streaming": "fastest generic [movnti]",
        "hook": "-19 folio_zero_user: not attached",
        "stats": {"fallback_off": 0, "fallback_small": 7, "streamed": 4096},
        "latency_us": "1000",
        "min_pages": "16",
    },
    # no path that the module has: what is not known must be shown as well
    "later": {
        "mode": "off pte [block]",
        "hook": "0 first_function: attached\n-16 second_function: somebody has it",
        "stats": {"fallback_odd": 1, "runs": 5, "leaves_pte": 9, "no line of": "it"},
        "backend_odd": "neither a number nor a choice",
        "strange": "neither, too",
        "directory/file": "1",
    },
}
MEMINFO = "Node {0} MemTotal: 4194304 kB\nNode {0} MemFree: 1024 kB\n"
COUNTERS = {"inflight": 0, "hits": 4, "bytes": 8388608, "ns": 2000000}
READ_ONLY = ("hook", "stats")

NODE = "/sys/devices/system/node"
NODE_MEMORY = "Node {0} MemTotal: {1} kB\nNode {0} MemFree: {2} kB\n"


@dataclass
class Fake:
    """The root of it, and what is in it."""

    root: Path

    def write(self, name: str, text: str, mode: int = 0o444) -> None:
        """Make a file, or change it."""
        file = self.root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(f"{text}\n")
        file.chmod(mode)

    def read(self, name: str) -> str:
        """Return what a file holds."""
        return (self.root / name.lstrip("/")).read_text().strip()

    def remove(self, name: str) -> None:
        """Take a file away."""
        (self.root / name.lstrip("/")).unlink()

    def files(self) -> dict[Path, str]:
        """Return what all files hold."""
        return {p: p.read_text() for p in self.root.rglob("*") if p.is_file()}

    def counters(self, path: str, **values: int) -> None:
        """Move the counters of a path."""
        file = f"/sys/kernel/bulkmm/{path}/stats"
        counters = dict(line.rsplit(" ", 1) for line in self.read(file).splitlines())
        self.write(file, format_stats({**counters, **values}))


def make_kernel(root: Path, release: str = RELEASE) -> Fake:
    """Make a kernel on which everything would attach."""
    fake = Fake(root)
    fake.write("/proc/sys/kernel/osrelease", release)
    fake.write("/proc/sys/kernel/arch", "x86_64")
    fake.write("/proc/sys/kernel/ftrace_enabled", "1")
    fake.write("/proc/sys/kernel/modules_disabled", "0")
    fake.write("/sys/kernel/mm/lru_gen/enabled", "0x0007")
    fake.write("/proc/cmdline", "root=/dev/vda quiet")
    fake.write("/proc/cpuinfo", "flags\t\t: fpu sse2 ibt")
    lines = [f"CONFIG_{name}=y" for name in (*OPTIONS, ZEROING)]
    fake.write(f"/boot/config-{release}", "\n".join(lines))
    paths = requirements.read_table("x86_64").paths
    # a function that is hooked has one name on a kernel, the newest's
    older = {
        name for path in paths for group in path.hooks.values() for name in group[1:]
    }
    names = [name for path in paths for name in path.symbols if name not in older]
    symbols = [f"0000000000000000 t {name}" for name in names]
    fake.write("/proc/kallsyms", "\n".join([*symbols, "0 D jiffies", "0 t x\t[ext4]"]))
    traced = [*names, "x [ext4]"]
    fake.write("/sys/kernel/tracing/available_filter_functions", "\n".join(traced))
    fake.write("/sys/kernel/tracing/enabled_functions", "")
    fake.write("/sys/kernel/tracing/trace", "")
    return fake


def format_stats(values: dict[str, Any]) -> str:
    """Return counters as the file has them."""
    return "\n".join(f"{name} {value}" for name, value in values.items())


def load_module(fake: Fake) -> Fake:
    """Load the module."""
    home = "/sys/kernel/bulkmm"
    fake.write(f"{home}/version", "0.1.0")
    fake.write(f"{home}/off", "", 0o200)
    for path, files in PATHS.items():
        for name, content in files.items():
            text = (
                content
                if isinstance(content, str)
                else format_stats({**COUNTERS, **content})
            )
            mode = 0o444 if name in READ_ONLY else 0o644
            fake.write(f"{home}/{path}/{name}", text, mode)
    parameters = "/sys/module/bulkmm/parameters"
    fake.write(f"{parameters}/memmap_min_pages", "32768", 0o644)
    fake.write(f"{parameters}/memmap", "on")
    return fake


def make_pool(fake: Fake, nodes: dict[int, tuple[int, int, int]]) -> None:
    """Make a pool of 2 MiB pages: pages, free and surplus by node."""
    names = ("nr_hugepages", "free_hugepages", "surplus_hugepages")
    size = "hugepages/hugepages-2048kB"
    for node, counts in nodes.items():
        home = f"/sys/devices/system/node/node{node}"
        fake.write(f"{home}/meminfo", MEMINFO.format(node))
        for name, count in zip(names, counts, strict=True):
            fake.write(f"{home}/{size}/{name}", str(count), 0o644)
    home = f"/sys/kernel/mm/{size}"
    for name, counts in zip(names, zip(*nodes.values(), strict=True), strict=True):
        fake.write(f"{home}/{name}", str(sum(counts)), 0o644)
    fake.write(f"{home}/resv_hugepages", "3", 0o644)
    fake.write(f"{home}/nr_overcommit_hugepages", "0", 0o644)


def set_sizes(kernel: Fake, mib: dict[int, tuple[int, int]]) -> None:
    """Give nodes so much memory, in all and free."""
    for node, (total, free) in mib.items():
        text = NODE_MEMORY.format(node, total << 10, free << 10)
        kernel.write(f"{NODE}/node{node}/meminfo", text)
