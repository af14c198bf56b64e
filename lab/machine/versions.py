# SPDX-License-Identifier: GPL-2.0-only
"""The versions that the lab prefers: lab/versions.txt.

The archive moves. A run takes what is pinned as long as the archive has it, and
otherwise what the archive has, and says so.
"""

import shlex

from lab.machine.arch import Arch
from lab.paths import VERSIONS

KERNEL = "linux-"  # and its series
PRIORITY = 990  # above that of any suite


def read_versions() -> dict[str, str]:
    """Return the version of each kernel series and package."""
    lines = VERSIONS.read_text(encoding="utf-8").splitlines()
    return dict(li.split() for li in lines if li and not li.startswith("#"))


def find_release(name: str, arch: Arch) -> str:
    """Return the release that is pinned for a series; "" for any other name."""
    version = read_versions().get(KERNEL + name)
    return f"{version}-cloud-{arch.debian}" if version else ""


def find_source(series: str) -> str:
    """Return the version of the source that the lab's own kernels are built from.

    "": that of the stock kernel of the series.
    """
    return read_versions().get(f"{KERNEL}source-{series}", "")


def read_packages() -> dict[str, str]:
    """Return the packages of the lab's root and their versions."""
    pins = read_versions().items()
    return {name: version for name, version in pins if not name.startswith(KERNEL)}


def make_hook() -> str:
    """Return the shell command that has the apt below $1 prefer these versions."""
    text = "".join(
        f"Package: {name}\nPin: version {version}\nPin-Priority: {PRIORITY}\n\n"
        for name, version in read_packages().items()
    )
    return f'printf %s {shlex.quote(text)} >"$1/etc/apt/preferences.d/bulkmm"'


def list_mismatches(installed: str) -> str:
    """Return which packages have another version, among lines of name and version."""
    pinned = read_packages()
    has = (line.split() for line in installed.splitlines())
    return ", ".join(
        f"{name} {pinned[name]} ({version} instead)"
        for name, version in has
        if pinned.get(name, version) != version
    )
