# SPDX-License-Identifier: GPL-2.0-only
"""Kernels for which DKMS builds the module, and those whose packages it leaves alone.

By the dkms of each supported Debian, which differ in what they make of a kernel that a
module is not for.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import overlay
import pytest

from bulkmm.control import requirements
from bulkmm.shell.progress import Progress
from lab.machine import debs, disk, kernels, root, vm
from lab.paths import lock_cache

pytestmark = pytest.mark.vm

FOLDER = Path(__file__).parent
SKIPPED = "77"
BUILDABLE = ["6.1.0", "7.3.0"]


@pytest.fixture(scope="module", params=["6.1", "6.12"], ids=["Debian 12", "Debian 13"])
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return the directory with what dkms.sh has left."""
    progress = Progress()
    with ExitStack() as stack:
        with lock_cache(progress) as cache:
            lab = root.ensure_root(cache, progress)
            tree = disk.ensure_tree(
                kernels.fetch_kernel(lab, request.param, progress), progress
            )
            package = next(
                debs.ensure_packages(cache, progress).glob("bulkmm-dkms_*.deb")
            )
            place = stack.enter_context(vm.run_directory(lab))
            (place / "in").mkdir()
            shutil.copy(package, place / "in/bulkmm-dkms.deb")
            shutil.copy(FOLDER / "dkms.sh", place / "in")
            overlay.run_script([tree.path], place, "dkms.sh", debs.read_version())
        yield place


def test_every_kernel_installs(place: Path) -> None:
    """A package of headers that fails leaves apt without a way on."""
    rows = [line.split() for line in (place / "packages").read_text().splitlines()]
    assert {release: state for release, state, _ in rows} == {
        release: "ii" for release, *_ in rows
    }
    assert [release for release, _, module in rows if module != "none"] == BUILDABLE


def test_dkms_skips_what_the_build_refuses(place: Path) -> None:
    lines = [line.split() for line in (place / "codes").read_text().splitlines()]
    assert {arch for arch, *_ in lines} == {"x86_64", "aarch64"}
    for arch, release, code in lines:
        supported = requirements.read_table(arch).supports(release)
        assert code != "0"  # there are no headers
        assert (code != SKIPPED) is supported, (arch, release)
