# SPDX-License-Identifier: GPL-2.0-only
"""A machine whose persistent memory comes up from the initramfs: so does the module.

The package is installed into a Debian that has another one below it, the lab's, which
lends the kernel. Nothing of it is kept but what the package took part in.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import overlay
import pytest
from lablib import lock_kernel

from bulkmm.shell.progress import Progress
from lab.machine import accel, build, debs, image, kernels, vm
from lab.machine.kernels import Kernel
from lab.paths import cache_dir, wait_turn

pytestmark = pytest.mark.vm

WORDS = "memmap=768M!1G root=/dev/pmem0 boot=bulkmm"
MEMORY = 2048
NOT_LOADED = -1  # hits, as seen.sh reports them


@dataclass(frozen=True)
class Installation:
    """What was made, and what it is booted with."""

    place: Path
    kernel: Kernel
    accel: str

    def boot(self, name: str, words: str = "") -> dict[str, dict[str, Any]]:
        """Return what came up with an initramfs, by when."""
        guest = vm.Guest(
            self.kernel.image,
            self.place / name,
            MEMORY,
            accel=self.accel,
            words=f"{WORDS} {words}",
        )
        with wait_turn(Progress()):
            outcome = vm.boot_guest(guest, self.kernel.root, self.place)
        return {state["label"]: state for state in outcome.of("seen")}


@pytest.fixture(scope="module", params=kernels.SERIES[:1])
def installation(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """Install the package, once."""
    progress = Progress()
    with ExitStack() as stack:
        with lock_kernel(request.param) as kernel:
            products = build.ensure_products(kernel, [], progress)
            base = image.ensure_base(kernel, (), progress)
            accelerator = accel.choose_accelerator("auto", kernel, base, progress)
            place = stack.enter_context(vm.run_directory(kernel.root))
            files = {
                "bulkmm.ko": products / "module" / "bulkmm.ko",
                "seen.sh": overlay.FOLDER / "seen.sh",
                "bulkmm-dkms.deb": overlay.find_package("bulkmm-dkms"),
            }
            builder = debs.ensure_builder(cache_dir(), progress)
            roots = (builder.path, kernel.root.path)
            overlay.run_script(roots, place, "boot.sh", kernel.release, files=files)
        yield Installation(place, kernel, accelerator)


@pytest.mark.parametrize(
    "name", ["after", pytest.param("dracut", marks=pytest.mark.release)]
)
def test_persistent_memory_comes_up_with_the_module(
    installation: Installation, name: str
) -> None:
    states = installation.boot(name)
    assert states["boot"]["disk"]
    assert states["boot"]["hits"] == 1
    if name == "dracut":  # made after /etc/modprobe.d/bulkmm.conf
        assert "[auto]" in states["boot"]["clear"]
    for label in ("refused", "missing"):
        assert (states[label]["disk"], states[label]["hits"]) == (1, NOT_LOADED)


@pytest.mark.release
def test_without_the_package_it_comes_up_alone(installation: Installation) -> None:
    states = installation.boot("before")
    assert (states["boot"]["disk"], states["boot"]["hits"]) == (1, NOT_LOADED)
