# SPDX-License-Identifier: GPL-2.0-only
"""A machine whose persistent memory comes up from the initramfs: so does the module.

The package is installed into a Debian that has another one below it, the lab's, which
lends the kernel. Nothing of it is kept but what the package took part in.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bulkmm.control import needs
from bulkmm.lab import child
from bulkmm.lab.machine import accel, build, debs, image, kernels, root, vm
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.paths import locked, turn
from bulkmm.lab.progress import Progress

pytestmark = pytest.mark.vm

HERE = Path(__file__).parent
# UPPER LOWER PLACE WORDS...: both roots as one, which forgets what is written
INSTALL = """
upper=$1 lower=$2 place=$3
shift 3
mkdir "$place/over"
mount -t tmpfs tmpfs "$place/over"
cd "$place/over"
mkdir new work root
mount -t overlay -o "lowerdir=$upper:$lower,upperdir=new,workdir=work" overlay root
mount -t proc proc root/proc
mount -t tmpfs tmpfs root/tmp
mount --rbind /dev root/dev
cp "$place"/in/* root
chroot root sh /boot.sh "$@"
cd root
mv before after dracut said "$place"
"""
WORDS = "memmap=768M!1G root=/dev/pmem0 boot=bulkmm"
MEMORY = 2048
NOT_LOADED = -1  # hits, as seen.sh reports them


@dataclass(frozen=True)
class Made:
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
        with turn(Progress()):
            outcome = vm.boot(guest, self.kernel.root, self.place)
        return {seen["label"]: seen for seen in outcome.of("seen")}


@pytest.fixture(scope="module", params=kernels.SERIES[:1])
def made(request: pytest.FixtureRequest) -> Iterator[Made]:
    """Install the package, once."""
    progress = Progress()
    with ExitStack() as stack:
        with locked(progress) as cache:
            kernel = kernels.ensure(
                root.ensure(cache, progress), request.param, progress
            )
            module = build.ensure(kernel, [], progress) / "bulkmm.ko"
            base = image.ensure_base(kernel, (), progress)
            chosen = accel.choose("auto", kernel, base, progress)
            package = next(debs.ensure(cache, progress).glob("bulkmm-dkms_*.deb"))
            place = stack.enter_context(vm.run_directory(kernel.root))
            given = place / "in"
            given.mkdir()
            for file in (module, HERE / "boot.sh", HERE / "seen.sh"):
                shutil.copy(file, given)
            shutil.copy(package, given / "bulkmm-dkms.deb")
            roots = (debs.root(cache, progress).path, kernel.root.path, place)
            words = (*map(str, roots), kernel.release, debs.version())
            child.run([*child.ALONE, "sh", "-ec", INSTALL, "sh", *words], 300)
        yield Made(place, kernel, chosen)


@pytest.mark.parametrize(
    "name", ["after", pytest.param("dracut", marks=pytest.mark.release)]
)
def test_persistent_memory_comes_up_with_the_module(made: Made, name: str) -> None:
    seen = made.boot(name)
    assert seen["boot"]["disk"]
    assert seen["boot"]["hits"] == 1
    if name == "dracut":  # made after /etc/modprobe.d/bulkmm.conf
        assert "[auto]" in seen["boot"]["clear"]
    for label in ("refused", "missing"):
        assert (seen[label]["disk"], seen[label]["hits"]) == (1, NOT_LOADED)


@pytest.mark.release
def test_without_the_package_it_comes_up_alone(made: Made) -> None:
    seen = made.boot("before")
    assert (seen["boot"]["disk"], seen["boot"]["hits"]) == (1, NOT_LOADED)


def test_dkms_skips_what_the_build_refuses(made: Made) -> None:
    lines = [line.split() for line in (made.place / "said").read_text().splitlines()]
    assert {arch for arch, *_ in lines} == {"x86_64", "aarch64"}
    for arch, release, code in lines:
        supported = needs.read(arch).supports(release)
        assert code == ("21" if supported else "77"), (arch, release)
