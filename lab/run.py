# SPDX-License-Identifier: GPL-2.0-only
"""One run of a scenario, from nothing to its result document."""

import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from bulkmm.results import host
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.progress import Progress, format_estimate
from lab import judge
from lab.choices import CPUS
from lab.machine import (
    accel,
    build,
    cached,
    disk,
    image,
    kernel_modules,
    kernels,
    root,
    upstream,
    vm,
)
from lab.machine.arch import X86_64, Arch
from lab.machine.kernels import Kernel
from lab.paths import (
    PROJECT,
    content_key,
    need_sources,
    protect_cache,
    wait_turn,
)
from lab.scenario.base import Scenario

MOST_CPUS = 64
MEMORY_LIMIT = 6_000_000_000  # memory of the host that a run may use
# what drives and judges a run
JUDGING = (
    *("lab/*.py", "lab/machine/*.py", "lab/scenario/*.py"),
    *("bulkmm/control/*.py", "bulkmm/results/*.py"),
)


@dataclass(frozen=True)
class Request:
    """What is run, where and how."""

    scenario: Scenario  # with its options
    kernel: kernels.Choice
    accel: str = "auto"
    cpu: str = ""  # "": the architecture's default
    cpus: int = CPUS
    append: str = ""  # for the kernel's command line
    keep: bool = False
    defines: list[str] = field(default_factory=list)  # NAME=VALUE, for make

    @property
    def arch(self) -> Arch:
        """Return the architecture."""
        return self.kernel.arch

    @property
    def words(self) -> str:
        """Return the kernel's parameters, with those of the scenario and the user."""
        kind = self.kernel.kind
        words = [self.scenario.parameters, self.append]
        if kind:
            poison = "page_poison=1" if kind.poisons(" ".join(words)) else ""
            words = [kind.parameters, poison, *words]
        return " ".join(filter(None, words))

    @property
    def memory_limit(self) -> int:
        """Return the bytes of the host's memory that a run may use."""
        kind = self.kernel.kind
        poisons = bool(kind and kind.poisons(self.words))
        return MEMORY_LIMIT + self.scenario.more_memory(poisons=poisons)


@dataclass(frozen=True)
class Prepared:
    """What is made before a guest boots."""

    kernel: Kernel
    base: Path
    modules: list[Path]  # ours, the path's own first
    over: list[Path]  # trees laid over the guest's own
    disk: Path | None


def need_memory(need: int) -> None:
    """Reject runs that would exhaust the host's memory."""
    have = (host.memory_kib("MemAvailable") or 0) * 1024
    if have < need:
        raise BulkmmError(
            f"no memory for the guest: {need / 1e9:.0f} GB are needed, "
            f"{have / 1e9:.1f} GB are available"
        )


def identify_run(ready: Prepared) -> str:
    """Return a hash of all that a run with given options depends on."""
    root = ready.kernel.root
    judging = [file for pattern in JUDGING for file in PROJECT.glob(pattern)]
    parts = (ready.base, *ready.modules, *ready.over, ready.disk)
    # their directories have hashes of what they were made from
    inner_paths = [root.inner(part) for part in parts if part]
    return content_key(judging, root.path.name, ready.kernel.release, *inner_paths)


def identify_request(request: Request) -> str:
    """Return the identity that a run would have."""
    cached.need_root()
    progress = Progress()
    with cached.lock_with_kernels([request.kernel], progress) as cache:
        return identify_run(prepare_run(cache, request, progress))


def prepare_run(cache: Path, request: Request, progress: Progress) -> Prepared:
    """Return root, kernel, guest and module of a run, from the cache if possible."""
    scenario = request.scenario
    machine = scenario.machine
    kernel = cached.ensure_kernel(
        root.ensure_root(cache, progress), request.kernel, progress
    )
    defines = sorted([*request.defines, *scenario.defines])
    place = build.ensure_products(kernel, defines, progress)
    modules = [place / product for product in build.PRODUCTS]
    if machine.upstream:
        modules.append(upstream.ensure_module(kernel, machine.upstream, progress))
    return Prepared(
        kernel,
        image.ensure_base(kernel, machine.modules, progress),
        modules,
        scenario.over(kernel, progress),
        disk.ensure_disk(kernel, progress) if machine.disk else None,
    )


def check_cpus(scenario: Scenario, cpus: int) -> None:
    """Reject CPUs where memory nodes have them, and several with a counted clock."""
    machine = scenario.machine
    if cpus == CPUS:
        return
    if machine.hot.shared_out or machine.hot.bare:
        where = f"{scenario.name}: its memory nodes have them"
        raise UsageError(f"--cpus does not apply to {where}")
    most = 1 if machine.icount else MOST_CPUS
    if not 1 <= cpus <= most:
        raise UsageError(f"--cpus {cpus}: give 1 to {most}")


def check_request(request: Request) -> None:
    """Reject what does not fit together."""
    if lack := request.scenario.lacking(request.kernel):
        raise UsageError(lack)
    request.scenario.check_options(request.arch)
    check_cpus(request.scenario, request.cpus)


def run_scenario(request: Request) -> Document:
    """Run a scenario and return its document; checks may have failed."""
    check_request(request)
    need_sources()
    cached.need_root()
    need_memory(request.memory_limit)
    progress = Progress()
    with ExitStack() as stack:
        with cached.lock_with_kernels([request.kernel], progress) as cache:
            ready = prepare_run(cache, request, progress)
            accelerator = accel.choose_accelerator(
                request.accel, ready.kernel, ready.base, progress
            )
            run = stack.enter_context(vm.run_directory(ready.kernel.root))
            if request.keep:
                directory = _make_directory(cache, request.scenario.name)
                stack.callback(_keep, run, directory)
                progress.note(f"the run's files are kept in {directory}")
            guest = _guest(request, ready, accelerator, run)
            build_facts = {  # taken before others may clean the cache
                "kernel": ready.kernel.release,
                "arch": ready.kernel.arch.name,
                "srcversion": build.source_version(ready.modules[0]),
                "key": identify_run(ready),
            }
            stack.enter_context(protect_cache(cache))
            qemu = vm.qemu_version(ready.kernel.root, request.arch)
        with wait_turn(progress):
            start = time.monotonic()
            outcome = _boot(request, ready.kernel, guest, run, progress)
            seconds = time.monotonic() - start
    document = judge.judge_outcome(
        request.scenario, request.kernel.kind, request.memory_limit, outcome
    )
    document.machine = _machine(outcome, accelerator, qemu)
    document.run |= {"accel": request.accel, "defines": request.defines, **build_facts}
    document.run["seconds"] = round(seconds, 1)
    return document


def _make_directory(cache: Path, name: str) -> Path:
    """Return a new directory for a run's files, which no root takes with it."""
    (cache / "kept").mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=cache / "kept"))


def _keep(run: Path, to: Path) -> None:
    for file in run.iterdir():
        if file.is_file():  # and no socket
            shutil.copy(file, to)


def _guest(request: Request, ready: Prepared, accelerator: str, run: Path) -> vm.Guest:
    """Return the guest, with its job and our modules in a second archive."""
    kernel, scenario = ready.kernel, request.scenario
    machine = scenario.machine
    job = scenario.job(kernel_modules.list_names(kernel, machine.modules))
    files = (ready.base, run, job, ready.modules)
    initramfs = image.pack_initramfs(kernel.root, *files, over=ready.over)
    return vm.Guest(
        kernel.image,
        initramfs,
        machine.memory,
        "nd_pmem" in machine.modules,
        scenario.options.size,
        accelerator,
        request.words,
        request.arch,
        request.cpu or (machine.cpu if request.arch is X86_64 else ""),
        request.cpus,
        icount=machine.icount or (machine.countable and request.cpus == 1),
        disk=ready.disk,
        hot=machine.hot,
        devices=machine.devices if request.arch is X86_64 else (),
    )


def _boot(
    request: Request, kernel: Kernel, guest: vm.Guest, run: Path, progress: Progress
) -> vm.Outcome:
    scenario, reports = request.scenario, count(1)
    slow = request.kernel.kind.slow if request.kernel.kind else 1
    title = f"{scenario.name} on {kernel.release} under {guest.accel.upper()}"

    def report_event(event: dict[str, Any]) -> None:
        if event["event"] == "unknown-backend":
            raise UsageError(
                f"unknown backend {scenario.options.backend}: "
                f"the module has {event['known']}"
            )
        progress.detail(f"{title}: {event['event']}, {next(reports)} reports")

    emulated = guest.accel == "tcg"  # which alone it was estimated for
    full = f"{format_estimate(scenario.seconds * slow)} in full" if emulated else ""
    with progress.step(title, full):
        silent = (vm.SILENT + scenario.quiet) * slow
        return vm.boot_guest(guest, kernel.root, run, silent, report_event)


def _machine(outcome: vm.Outcome, accelerator: str, qemu: str) -> dict[str, Any]:
    start, end = outcome.of("start")[0], outcome.of("end")[-1]
    guest = {
        "kernel": start["release"],
        "cmdline": start["cmdline"],
        "taint": end["taint"],
        "accelerator": accelerator.upper(),
        "qemu": qemu,
    }
    return {**host.describe_host(), "accelerator": accelerator.upper(), "guest": guest}
