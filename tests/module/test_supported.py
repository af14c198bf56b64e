# SPDX-License-Identifier: GPL-2.0-only
"""Which kernels the module builds for: one line for any other."""

import subprocess

import pytest

from bulkmm.control import needs
from bulkmm.lab.paths import PROJECT

RULES = PROJECT / "module/compat/supported.mk"
X86_64, ARM64 = "CONFIG_X86_64=y", "CONFIG_ARM64=y"
OLDEST, NEWEST = needs.kernels("range-x86_64")
OLDEST_ARM64, _ = needs.kernels("range-arm64")


def build(version: str, *settings: str) -> subprocess.CompletedProcess[str]:
    """Read the rules as the kernel's build of a version would."""
    number, _, patchlevel = version.partition(".")
    settings = (f"VERSION={number}", f"PATCHLEVEL={patchlevel}", *settings)
    rules = f"include {RULES}\nall:\n"
    return subprocess.run(
        ["make", "-sf", "-", "CONFIG_MODULES=y", *settings],
        input=rules,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("version", "arch"), [(OLDEST, X86_64), ("7.0", X86_64), (NEWEST, ARM64)]
)
def test_supported(version: str, arch: str) -> None:
    done = build(version, arch)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("version", "arch", "says"),
    [
        ("5.10", X86_64, f"Linux 5.10 here: {OLDEST} to {NEWEST} only"),
        ("6.0", X86_64, f"Linux 6.0 here: {OLDEST} to {NEWEST} only"),
        ("99.0", X86_64, f"Linux 99.0 here: {OLDEST} to {NEWEST} only"),
        ("6.12", ARM64, f"Linux 6.12 here: {OLDEST_ARM64} to {NEWEST} only"),
        ("6.12", "CONFIG_RISCV=y", "this architecture: x86-64 and arm64 only"),
    ],
)
def test_refused_by_one_line(version: str, arch: str, says: str) -> None:
    done = build(version, arch)
    assert done.returncode
    (line,) = done.stderr.splitlines()
    assert f"bulkmm does not support {says}" in line


def test_at_the_builders_own_risk() -> None:
    done = build("99.0", X86_64, "BMM_ANY_KERNEL=1")
    assert done.returncode == 0, done.stderr


def test_cleaning_asks_nothing() -> None:
    done = build("5.10", X86_64, "CONFIG_MODULES=")
    assert done.returncode == 0, done.stderr
