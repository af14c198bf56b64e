# SPDX-License-Identifier: GPL-2.0-only
"""The machine of a measurement: no host name, no path, nothing personal."""

import math
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from bulkmm.control.module import read_choice
from bulkmm.control.system_files import SystemFiles

CPU = "/sys/devices/system/cpu"
VULNERABILITIES = ("retbleed", "spec_rstack_overflow", "spectre_v2")
ROOT = SystemFiles(Path("/"))
read = ROOT.read  # reads a system file; None if it cannot be read


def read_cpuinfo() -> dict[str, str]:
    """Return the fields of the first CPU."""
    first = (read("/proc/cpuinfo") or "").split("\n\n", maxsplit=1)[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _parse(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _read_caches() -> dict[str, str]:
    """Return the size of each cache of CPU 0, such as ``{"L2": "512K"}``."""
    caches = {}
    for index in sorted(Path(CPU, "cpu0/cache").glob("index*")):
        level, kind = read(f"{index}/level"), read(f"{index}/type") or ""
        size = read(f"{index}/size")
        if level and size:
            letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
            caches[f"L{level}{letter}"] = size
    return caches


def last_level_cache() -> int:
    """Return the bytes of the largest cache of CPU 0, 0 if unknown."""
    sizes = [_parse(text.removesuffix("K")) or 0 for text in _read_caches().values()]
    return max(sizes, default=0) << 10


def memory_kib(field: str) -> int | None:
    """Return a field of /proc/meminfo, in KiB."""
    text = read("/proc/meminfo") or ""
    match = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    return int(match[1]) if match else None


def _name_hypervisor(flags: str) -> str | None:
    """Return the hypervisor's name, "unknown" if not given; None without one."""
    if "hypervisor" not in flags.split():
        return None
    for path in ("/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor"):
        if text := read(path):
            return text
    return "unknown"


def _read_revision() -> str | None:
    """Return the commit of this checkout, with "+" if modified."""
    command = ["git", "-C", str(Path(__file__).parent), "describe"]
    command += ["--always", "--dirty=+", "--exclude=*"]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None


def _find_version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def read_load() -> dict[str, float]:
    """Return measures of disturbance: load, and CPU time so far, in ticks."""
    first = (read("/proc/stat") or "cpu").partition("\n")[0]
    ticks = [int(text) for text in first.split()[1:9]]  # guest time is in user time
    user, nice, system, _, _, irq, softirq, stolen, *_ = [*ticks, *[0] * 8]
    return {
        "load": os.getloadavg()[0],
        "ticks": sum(ticks),
        "stolen": stolen,
        "busy": user + nice + system + irq + softirq,
        "own": sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK"),
    }


def compare_load(before: dict[str, float]) -> dict[str, Any]:
    """Return load before and after, and shares of the CPU time since.

    ``other`` is what neither this process nor its children used; the load before a run
    may still be of what has prepared it.
    """
    after = read_load()
    used = {name: after[name] - before[name] for name in after}
    ticks = used["ticks"] or math.inf
    return {
        "load": [round(one["load"], 2) for one in (before, after)],
        "steal": round(used["stolen"] / ticks, 4),
        "other": round(max(0.0, used["busy"] - used["own"]) / ticks, 4),
    }


def _describe_cpu() -> dict[str, Any]:
    info = read_cpuinfo()
    frequency = f"{CPU}/cpu0/cpufreq"
    return {
        "model": info.get("model name") or platform.machine(),
        "vendor": info.get("vendor_id") or info.get("CPU implementer"),
        "family": _parse(info.get("cpu family")),
        "model_number": _parse(info.get("model")),
        "stepping": _parse(info.get("stepping")),
        "part": info.get("CPU part"),  # arm64's equivalent of these
        "cores": os.cpu_count(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "caches": _read_caches(),
        "hypervisor": _name_hypervisor(info.get("flags", "")),
        "governor": read(f"{frequency}/scaling_governor"),
        "frequency_khz": _parse(read(f"{frequency}/scaling_cur_freq")),
        "mitigations": {
            name: read(f"{CPU}/vulnerabilities/{name}") for name in VULNERABILITIES
        },
    }


def cpu_name(cpu: dict[str, Any] | None = None) -> str:
    """Return a CPU's name in results/: vendor, family, model, stepping."""
    names = ("vendor", "family", "model_number", "stepping", "part")
    fields = _describe_cpu() if cpu is None else cpu
    return "-".join(str(fields[name]) for name in names if fields.get(name) is not None)


def describe_host() -> dict[str, Any]:
    """Return the description of this machine for a result document."""
    total = memory_kib("MemTotal")
    nodes = Path("/sys/devices/system/node").glob("node[0-9]*")
    return {
        "cpu": _describe_cpu(),
        "architecture": platform.machine(),
        "memory_bytes": total * 1024 if total else None,
        "numa_nodes": len(list(nodes)) or 1,
        "kernel": platform.release(),
        "thp": read_choice(ROOT, "/sys/kernel/mm/transparent_hugepage/enabled") or None,
        "python": platform.python_version(),
        "numpy": _find_version("numpy"),
        "bulkmm": _find_version("bulkmm"),
        "revision": _read_revision(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
