# SPDX-License-Identifier: GPL-2.0-only
"""Kernels for which DKMS builds the module, and those whose packages it leaves alone.

By the dkms of each supported Debian, which differ in what they make of a kernel that a
module is not for.
"""

from collections.abc import Iterator
from pathlib import Path

import overlay
import pytest

from bulkmm.control import requirements
from lab.machine import debs

pytestmark = pytest.mark.vm

SKIPPED = "77"
BUILDABLE = ["6.1.0", "7.3.0"]


@pytest.fixture(scope="module", params=["6.1", "6.12"], ids=["Debian 12", "Debian 13"])
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return the directory with what dkms.sh has left."""
    version = debs.read_version()
    with overlay.run_with_package(
        request.param, "bulkmm-dkms", "dkms.sh", version
    ) as place:
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
