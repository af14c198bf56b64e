# SPDX-License-Identifier: GPL-2.0-only
"""Checks of a kernel and its settings: whether the module can work."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bulkmm.control import kernel as kernels
from bulkmm.control import module as modules
from bulkmm.control import requirements, tracefs
from bulkmm.control.devices import Devices
from bulkmm.control.format import format_size
from bulkmm.control.kernel import Kernel
from bulkmm.control.requirements import Table
from bulkmm.control.system_files import SystemFiles

OK, CARE, NO, UNKNOWN = "ok", "care", "no", "unknown"
ARCHITECTURE = "/proc/sys/kernel/arch"
PROC = "mount /proc, or name another root by --root"
OUTSIDE = "run it outside of the container"
CONFIG = "make /boot/config-RELEASE readable: it comes with the kernel's package"
EARLIER = (
    "load it before the driver: docs/install.md, At boot; or bind the device again"
)
SIGN = "sign the module and enrol the key: docs/install.md, Secure Boot"
PREEMPTION = "/sys/kernel/debug/sched/preempt"
# of releases whose headers are a package, named after them
OF_DEBIAN = re.compile(
    r"\d+\.\d+\.\d+(\+deb\d+[\w.~]*|-\d+)(-cloud|-rt)?-(amd64|arm64)"
)
POOLS = "/sys/kernel/mm/hugepages"
# of hugetlb pages that fork() may lose, and since which series: docs/upstream.md
FORK_SIZES = {"hugepages-1048576kB": "1 GiB", "hugepages-64kB": "64 KiB"}
FORK_SINCE = (6, 1)
FORK_MENDED: dict[tuple[int, ...], int] = {(6, 12): 118}  # sublevels
MODELS = ("PREEMPT_RT", "PREEMPT_LAZY", "PREEMPT_VOLUNTARY", "PREEMPT_NONE", "PREEMPT")


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    state: str
    says: str
    remedy: str = ""  # what to do about it if not ok


def check_all(kernel: Kernel, table: Table, devices: Devices) -> list[Check]:
    """Return the checks common to all paths."""
    root = kernel.root
    return [
        _check_architecture(root),
        _check_release(root, kernel, table),
        _check_module(root, kernel, table),
        *_check_inert(root, kernel),
        *_check_early_devices(root, devices),
        *(_check_option(kernel, name) for name in requirements.WITH),
        *_check_untested(root, kernel),
        _check_ftrace(root),
        _check_tracefs(root),
        *_check_loading(root, kernel),
        _check_ibt(root, kernel),
        _check_preemption(root, kernel),
        _check_zeroing(kernel),
        *_check_fork(root, kernel),
    ]


def _check_architecture(root: SystemFiles) -> Check:
    name = root.read(ARCHITECTURE)
    if not name:
        return Check("architecture", UNKNOWN, "the kernel does not report it", PROC)
    if name in requirements.ARCHITECTURES:
        return Check("architecture", OK, name)
    architectures = ", ".join(requirements.ARCHITECTURES)
    message = f"{name}: the module is for {architectures}"
    return Check("architecture", NO, message, "use a machine of one of these")


def _check_release(root: SystemFiles, kernel: Kernel, table: Table) -> Check:
    if not requirements.parse_version(kernel.release):
        return Check("kernel", UNKNOWN, "the kernel does not report its release", PROC)
    series = ", ".join(table.tested)
    message = f"{kernel.release}; the module is for {series}"
    if table.supports(kernel.release):
        return Check("kernel", OK, message)
    message += ", and was not tested on this one"
    if modules.is_loaded(root):  # somebody took the risk: make BMM_ANY_KERNEL=1
        return Check("kernel", CARE, message)
    return Check("kernel", NO, message, f"boot a kernel of {series}")


def _check_module(root: SystemFiles, kernel: Kernel, table: Table) -> Check:
    version = root.read(f"{modules.HOME}/version")
    if version is not None:
        return Check("module", OK, f"{version} is loaded")
    if file := modules.find_installed(root, kernel.release):
        return Check("module", OK, f"{file}: modprobe bulkmm")
    if not requirements.parse_version(kernel.release):
        return Check("module", UNKNOWN, "the kernel does not report its release", PROC)
    if not table.supports(kernel.release):
        return Check("module", CARE, "not installed, and not built for this kernel")
    if root.is_dir(f"/lib/modules/{kernel.release}/build"):
        message = "not installed; it can be built: make module"
        return Check("module", CARE, message, "make module && make install")
    message = "not installed, nor are this kernel's headers"
    remedy = f"put its headers where /lib/modules/{kernel.release}/build points"
    if OF_DEBIAN.fullmatch(kernel.release):
        remedy = f"apt install linux-headers-{kernel.release}"
    return Check("module", CARE, message, f"{remedy}, then make module")


def _check_inert(root: SystemFiles, kernel: Kernel) -> Iterator[Check]:
    """Check whether a module would load inert; a loaded one reports it."""
    value = kernel.find_parameter("bulkmm.inert") or ""
    if kernels.TRUE.match(value) and not modules.is_loaded(root):
        message = "1 on the command line: modprobe loads a module that hooks nothing"
        yield Check("bulkmm.inert", NO, message, "modprobe bulkmm inert=0")


def _check_early_devices(root: SystemFiles, devices: Devices) -> Iterator[Check]:
    """Check for devices that came up before the module."""
    if early := devices.early_size:
        of = f" of {format_size(devices.size)}" if early < devices.size else ""
        when = (
            "before the module was loaded or memmap was on"
            if modules.is_loaded(root)
            else "without bulkmm"
        )
        message = f"struct pages of {format_size(early)}{of} were built {when}"
        yield Check("device memory", CARE, message, EARLIER)


def _check_option(kernel: Kernel, name: str) -> Check:
    has = kernel.has_option(name)
    if has is None:
        message = "the configuration cannot be read"
        return Check(f"CONFIG_{name}", UNKNOWN, message, CONFIG)
    if has:
        return Check(f"CONFIG_{name}", OK, "set")
    remedy = f"boot a kernel that has CONFIG_{name}, as Debian's have"
    return Check(f"CONFIG_{name}", NO, "not set", remedy)


def _check_untested(root: SystemFiles, kernel: Kernel) -> Iterator[Check]:
    """Check for options with which the module does not build."""
    for name in requirements.read_kernels("untested"):
        if kernel.has_option(name):
            state = CARE if modules.is_loaded(root) else NO  # somebody took the risk
            message = "set: the module was not tested on such kernels"
            remedy = f"boot a kernel without CONFIG_{name}"
            yield Check(f"CONFIG_{name}", state, message, remedy)


def _check_ftrace(root: SystemFiles) -> Check:
    name, value = "kernel.ftrace_enabled", root.read("/proc/sys/kernel/ftrace_enabled")
    if value is None and not root.is_dir("/proc/sys/kernel"):
        return Check(name, UNKNOWN, "there is no /proc/sys/kernel", PROC)
    if value == "":
        return Check(name, UNKNOWN, "the kernel does not report it", PROC)
    if value is None:
        message = "no such sysctl: this kernel has no ftrace"
        return Check(
            name, NO, message, "boot a kernel that has ftrace, as Debian's have"
        )
    if value == "0":
        message = "0: every hook is without effect"
        return Check(name, NO, message, "sysctl kernel.ftrace_enabled=1")
    return Check(name, OK, value)


def _check_tracefs(root: SystemFiles) -> Check:
    if place := tracefs.find_tracefs(root):
        return Check("tracefs", OK, place)
    return Check("tracefs", UNKNOWN, *tracefs.explain_absence(root))


def _check_loading(root: SystemFiles, kernel: Kernel) -> Iterator[Check]:
    """Check what prevents loading a module."""
    loaded = modules.is_loaded(root)
    if root.read("/proc/sys/kernel/modules_disabled") == "1":
        message = "1: nothing can be loaded until the next boot"
        state = OK if loaded else NO
        remedy = "reboot, and load bulkmm before it is set again"
        yield Check("kernel.modules_disabled", state, message, remedy)
    lockdown = "/sys/kernel/security/lockdown"
    level = modules.read_choice(root, lockdown) or "none"
    signed = "only modules signed by a key that the kernel trusts are loaded"
    care = OK if loaded else CARE
    if not root.is_dir(modules.KERNEL):
        message = f"there is no {modules.KERNEL}"
        yield Check("lockdown", UNKNOWN, message, modules.MOUNT)
    elif root.read(lockdown) == "":
        yield Check("lockdown", UNKNOWN, f"{lockdown} is empty", OUTSIDE)
    elif level == "none":
        yield Check("lockdown", OK, "none")
    else:
        yield Check("lockdown", care, f"{level}: {signed}", SIGN)
    enforced = root.read("/sys/module/module/parameters/sig_enforce")
    forced = kernel.has_option("MODULE_SIG_FORCE")
    if enforced == "Y" or forced:
        yield Check("module signatures", care, f"enforced: {signed}", SIGN)
    elif not enforced and forced is None:
        message = "the kernel does not report whether they are enforced"
        yield Check("module signatures", UNKNOWN, message, CONFIG)
    else:
        yield Check("module signatures", OK, "not enforced")


def _check_ibt(root: SystemFiles, kernel: Kernel) -> Check:
    name, cpus = "indirect branch tracking", root.read("/proc/cpuinfo")
    if not cpus:
        return Check(name, UNKNOWN, "the kernel does not report the CPU", PROC)
    has = re.search(r"^flags\s*:.*\bibt\b", cpus, re.MULTILINE)
    option = kernel.has_option("X86_KERNEL_IBT")
    if has and option is None:
        return Check(name, UNKNOWN, "the configuration cannot be read", CONFIG)
    on = has and option and kernel.find_parameter("ibt") != "off"
    message = "on: the originals are reached by direct calls" if on else "not in force"
    return Check(name, OK, message)


def _check_preemption(root: SystemFiles, kernel: Kernel) -> Check:
    # in parentheses: the current model
    now = re.search(r"\((\w+)\)", root.read(PREEMPTION) or "")
    option = next((model for model in MODELS if kernel.has_option(model)), "")
    models = {
        "as the scheduler says": now and now[1],
        "as it was booted": kernel.find_parameter("preempt"),
        "as built": option.removeprefix("PREEMPT_").lower(),
    }
    for how, model in models.items():
        if model:
            return Check("preemption", OK, f"{model} ({how})")
    message = "neither the scheduler nor the configuration says it"
    return Check("preemption", UNKNOWN, message, CONFIG)


def _check_zeroing(kernel: Kernel) -> Check:
    case = kernel.zeroing
    state = UNKNOWN if case == "unknown" else OK
    return Check("clearing of huge pages", state, kernels.CASES[case], CONFIG)


def _is_mended(release: str) -> bool:
    """Return whether a kernel's fork() no longer loses hugetlb pages.

    Debian's 6.1 has another number in place of the sublevel, and no mended version.
    """
    mended = FORK_MENDED.get(requirements.parse_version(release))
    sublevel = re.match(r"\d+\.\d+\.(\d+)", release)
    return bool(mended and sublevel and int(sublevel[1]) >= mended)


def _check_fork(root: SystemFiles, kernel: Kernel) -> Iterator[Check]:
    """Name a bug of the kernel where there are pages that it affects."""
    old = requirements.parse_version(kernel.release) < FORK_SINCE
    if old or _is_mended(kernel.release):
        return
    sizes = [
        size
        for pool, size in FORK_SIZES.items()
        if root.read(f"{POOLS}/{pool}/nr_hugepages") not in (None, "", "0")
    ]
    if sizes:
        message = (
            "a bug of kernels since 6.1 (6.12: up to 6.12.117), with and without the "
            "module: a child of fork() may find zeros in private hugetlb pages of "
            f"{', '.join(sizes)}"
        )
        remedy = "apply the patches in upstream/, or do not write and then fork"
        yield Check("hugetlb and fork", CARE, message, remedy)
