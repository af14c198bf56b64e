# SPDX-License-Identifier: GPL-2.0-only
"""KVM or TCG: KVM is used only if a guest really boots under it.

A /dev/kvm that opens proves nothing (in some containers and nested machines
guests hang), so a guest is tried for a few seconds, once per boot of the host.
"""

import json
from pathlib import Path

from bulkmm.shell import files
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import image, vm
from lab.machine.arch import X86_64
from lab.machine.kernels import Kernel

PROBE_SECONDS = 6
DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def choose_accelerator(
    wish: str, kernel: Kernel, base: Path, progress: Progress
) -> str:
    """Return "kvm" or "tcg" for the user's choice."""
    if wish == "tcg":
        return "tcg"
    required = wish == "kvm"
    problem = f"the guest is {kernel.arch.name}, the host x86_64"
    if kernel.arch is X86_64:
        problem = _problem(kernel, base, progress, again=required)
    if not problem:
        return "kvm"
    if required:
        raise BulkmmError(f"KVM cannot be used here: {problem}")
    progress.note(f"accelerator: TCG, because KVM cannot be used here: {problem}")
    return "tcg"


def _problem(kernel: Kernel, base: Path, progress: Progress, *, again: bool) -> str:
    """Return what is wrong with KVM, probing once per boot of the host.

    Again if it was wrong: what was may have gone, a busy host or rights of a device.
    """
    if not DEVICE.exists():
        return "no /dev/kvm"
    memory = kernel.root.var / "kvm.json"
    boot = BOOT_ID.read_text(encoding="ascii").strip()
    record = files.read_json(memory)
    if record.get("boot") == boot and not (again and record["problem"]):
        return str(record["problem"])
    with progress.step("trying a guest under KVM"):
        problem = _probe(kernel, base)
    text = json.dumps({"boot": boot, "problem": problem})
    files.write_file(memory, text, "a note of the cache")
    return problem


def _probe(kernel: Kernel, base: Path) -> str:
    with vm.run_directory(kernel.root) as run:
        initramfs = image.pack_initramfs(kernel.root, base, run, "finish 0\n", [])
        guest = vm.Guest(kernel.image, initramfs, memory=512, accel="kvm")
        try:
            vm.boot_guest(guest, kernel.root, run, PROBE_SECONDS * vm.BOOTING)
        except BulkmmError as error:
            return str(error).splitlines()[0].partition(";")[0]
    return ""
