# SPDX-License-Identifier: GPL-2.0-only
"""One run of a scenario, from nothing to its result document."""

from __future__ import annotations

import os
import platform
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulkmm import machine, stats
from bulkmm.errors import BulkmmError, UsageError
from bulkmm.lab import accel, build, image, kernels, klog, pmem, root, vm
from bulkmm.lab.paths import locked, need_sources
from bulkmm.lab.progress import Progress
from bulkmm.results import Check, Document

if TYPE_CHECKING:
    from collections.abc import Callable

    from bulkmm.lab.kernels import Kernel
    from bulkmm.lab.scenario import Scenario

MEMINFO = Path("/proc/meminfo")
PAIRS = (("off", "on"), ("absent", "on"), ("absent", "off"))
MEMORY_LIMIT = 6_000_000_000  # what a run may take of the host's memory


@dataclass(frozen=True)
class Request:
    """Where and how a scenario is run."""

    kernel: str = "6.12"
    accel: str = "auto"
    keep: bool = False
    defines: list[str] = field(default_factory=list)
    options: pmem.Options = field(default_factory=pmem.Options)


@dataclass(frozen=True)
class Prepared:
    """What can be made before a guest is booted."""

    kernel: Kernel
    base: Path
    modules: Path


def need_root() -> None:
    """Refuse early: the root, name spaces and QEMU all need it."""
    if os.geteuid():
        raise BulkmmError("the lab needs root (it makes a Debian root): use sudo")
    if platform.machine() != "x86_64":
        raise BulkmmError(f"the lab runs on x86_64 only, not on {platform.machine()}")


def available_memory() -> int:
    """Return how much memory the host can give without swapping."""
    text = MEMINFO.read_text(encoding="ascii")
    found = re.search(r"^MemAvailable: +(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def need_memory() -> None:
    """Refuse what would drive the host out of memory."""
    have = available_memory()
    if have < MEMORY_LIMIT:
        raise BulkmmError(
            f"no memory for the guest: {MEMORY_LIMIT / 1e9:.0f} GB are needed, "
            f"{have / 1e9:.1f} GB are available"
        )


def prepare(
    cache: Path,
    name: str,
    modules: tuple[str, ...],
    defines: list[str],
    progress: Progress,
) -> Prepared:
    """Return root, kernel, guest and module, from the cache where possible."""
    made = root.ensure(cache, progress)
    kernel = kernels.ensure(made, name, progress)
    built = build.ensure(kernel, defines, progress)
    base = image.ensure_base(kernel, modules, progress)
    return Prepared(kernel, base, built)


def run_scenario(
    scenario: Scenario, request: Request, progress: Progress | None = None
) -> Document:
    """Run a scenario and return its document; checks may have failed."""
    kernels.check_name(request.kernel)
    pmem.check_options(request.options)
    defines = build.check_defines(_defines(scenario, request))
    need_sources()
    need_root()
    need_memory()
    progress = progress or Progress()
    with locked(progress) as cache:
        ready = prepare(cache, request.kernel, scenario.modules, defines, progress)
        chosen = accel.choose(request.accel, ready.kernel, ready.base, progress)
        start = time.monotonic()
        outcome = _boot(scenario, request, ready, chosen, progress)
        seconds = time.monotonic() - start
        qemu = vm.qemu_version(ready.kernel.root)
    document = _document(scenario, request, outcome)
    document.machine = _machine(outcome, chosen, qemu)
    document.run["kernel"] = ready.kernel.release
    document.run["seconds"] = round(seconds, 1)
    return document


def _defines(scenario: Scenario, request: Request) -> list[str]:
    """Return the make variables: provoking faults needs a test build."""
    return [*request.defines, *(["BMM_FAULTS=1"] if scenario.faults else [])]


def _boot(
    scenario: Scenario,
    request: Request,
    ready: Prepared,
    chosen: str,
    progress: Progress,
) -> vm.Outcome:
    """Boot the guest, with its job and our modules in a second archive."""
    kernel, options = ready.kernel, request.options
    order = kernels.with_dependencies(kernel, scenario.modules)
    names = [kernels.module_name(path) for path in order]
    job = pmem.job(scenario, options, names)
    ours = [ready.modules / product for product in build.PRODUCTS]
    what = f"{scenario.name} on {kernel.release} under {chosen.upper()}"
    with vm.run_directory(kernel.root, keep=request.keep) as run:
        initramfs = image.initramfs(kernel.root, ready.base, run, job, ours)
        guest = vm.Guest(kernel.image, initramfs, scenario.memory, options.size, chosen)
        if request.keep:
            progress.note(f"the run's files are kept in {run}")
        with progress.step(what):
            seen = _teller(what, options, progress)
            return vm.boot(guest, kernel.root, run, _limit(scenario, options), seen)


def _limit(scenario: Scenario, options: pmem.Options) -> float:
    """Return a generous time limit: it is there for guests that hang."""
    part = options.size / pmem.FULL_SIZE
    binds = 8 + len(pmem.ARMS) * options.rounds
    return 120 + part * (4 * scenario.seconds + 8 * binds)


def _teller(
    what: str, options: pmem.Options, progress: Progress
) -> Callable[[dict[str, Any]], None]:
    """Return what shows how many binds are done, and stops on bad names."""
    total = 3 + len(pmem.ARMS) * options.rounds
    done = 0

    def seen(event: dict[str, Any]) -> None:
        nonlocal done
        if event["event"] == "unknown-backend":
            raise UsageError(
                f"unknown backend {options.backend}: the module has {event['known']}"
            )
        if event["event"] == "bind":
            done += 1
            progress.detail(f"{what}: bind {done} of {total}")

    return seen


def _document(scenario: Scenario, request: Request, outcome: vm.Outcome) -> Document:
    """Return what was measured and judged."""
    options = request.options
    document = Document(machine={})
    if not scenario.faults:
        _add_results(document, scenario, options, outcome)
    judged = pmem.checks(scenario, options, outcome)
    document.checks = [*judged, *_guest_checks(outcome)]
    document.run = {
        "scenario": scenario.name,
        **asdict(options),
        "accel": request.accel,
        "defines": request.defines,
        "published": list(scenario.published),
        "peak_rss_bytes": outcome.peak_rss,
        "backends": next((c["backend"] for c in outcome.of("counters")), ""),
        "fallbacks": pmem.fallback_counts(outcome),
    }
    return document


def _add_results(
    document: Document, scenario: Scenario, options: pmem.Options, outcome: vm.Outcome
) -> None:
    """Add what was timed: the function, the whole bind, the first bring-up."""
    name = scenario.name
    nbytes = pmem.written(scenario, options, outcome)
    for suffix, key in (("", "ns"), ("-bind", "bind_ns")):
        _add_arms(document, name + suffix, nbytes, outcome, key)
    limit = stats.summarise(name, "limit", "ns", nbytes, pmem.limits(outcome))
    on = next(r for r in document.results if (r.scenario, r.variant) == (name, "on"))
    document.ratios.append(stats.ratio(limit, on))
    first = [pmem.first_bind(outcome)]
    document.results += [
        limit,
        stats.summarise(f"{name}-first", "absent", "ns", nbytes, first),
    ]


def _add_arms(
    document: Document, name: str, nbytes: int, outcome: vm.Outcome, key: str
) -> None:
    """Add the results of the arms and the ratios wanted of them."""
    arms = {
        arm: stats.summarise(name, arm, "ns", nbytes, taken)
        for arm, taken in pmem.samples(outcome, key).items()
    }
    document.results += arms.values()
    document.ratios += [stats.ratio(arms[a], arms[b]) for a, b in PAIRS]


def _guest_checks(outcome: vm.Outcome) -> list[Check]:
    """Return what holds for every scenario (vm.boot has judged the log)."""
    start, end = outcome.of("start")[0], outcome.of("end")[-1]
    taint = klog.new_taint(int(start["taint"]), int(end["taint"]))
    rss = outcome.peak_rss
    return [
        Check("kernel log clean", ok=True, detail="nothing found"),
        Check("taint", not taint, f"{start['taint']} -> {end['taint']}"),
        Check("host memory", rss < MEMORY_LIMIT, f"{rss / 1e9:.2f} GB at its peak"),
    ]


def _machine(outcome: vm.Outcome, chosen: str, qemu: str) -> dict[str, Any]:
    start, end = outcome.of("start")[0], outcome.of("end")[-1]
    guest = {
        "kernel": start["release"],
        "cmdline": start["cmdline"],
        "taint": end["taint"],
        "accelerator": chosen.upper(),
        "qemu": qemu,
    }
    return {**machine.describe(), "accelerator": chosen.upper(), "guest": guest}
