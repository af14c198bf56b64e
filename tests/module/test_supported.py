# SPDX-License-Identifier: GPL-2.0-only
"""Which kernels the module builds for: one line for any other."""

import subprocess

import pytest
from programs import completed

from bulkmm.control import needs
from bulkmm.lab.paths import PROJECT

RULES = PROJECT / "module/compat/supported.mk"
X86_64, ARM64 = "CONFIG_X86_64=y", "CONFIG_ARM64=y"
DIRECT = "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y"
CLANG = ("CONFIG_CC_IS_CLANG=y", "CC=clang")
OLDEST, NEWEST = needs.kernels("range-x86_64")
OLDEST_ARM64, _ = needs.kernels("range-arm64")


def build(version: str, *settings: str) -> subprocess.CompletedProcess[str]:
    """Read the rules as the kernel's build of a version would."""
    number, _, patchlevel = version.partition(".")
    settings = (f"VERSION={number}", f"PATCHLEVEL={patchlevel}", *settings)
    rules = f"include {RULES}\nall:\n"
    return completed(
        ["make", "-sf", "-", "CONFIG_MODULES=y", DIRECT, "CC=gcc", *settings],
        input=rules,
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


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ((DIRECT[:-1],), "lacks CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"),
        (("CONFIG_CFI_CLANG=y", *CLANG), "has not been proven on kernels that check"),
        (CLANG[:1], "Clang built this kernel, but CC is GCC: give make LLVM=1"),
        (CLANG[1:], "GCC built this kernel, but CC is Clang: give make CC=gcc"),
    ],
)
def test_a_kernel_to_which_it_does_not_fit(
    version: str, settings: tuple[str, ...], says: str
) -> None:
    done = build(version, X86_64, *settings)
    assert done.returncode
    (line,) = done.stderr.splitlines()
    assert says in line


@pytest.mark.parametrize(
    ("version", "settings"),
    [("99.0", ()), (NEWEST, ("CONFIG_CFI_CLANG=y", *CLANG))],
)
def test_at_the_builders_own_risk(version: str, settings: tuple[str, ...]) -> None:
    done = build(version, X86_64, "BMM_ANY_KERNEL=1", *settings)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("settings", [(), ("CONFIG_CFI=y",)])
def test_a_kernel_built_by_clang(settings: tuple[str, ...]) -> None:
    done = build(NEWEST, X86_64, *CLANG, *settings)
    assert done.returncode == 0, done.stderr


def test_static_calls_of_arm64_are_by_pointer() -> None:
    done = build(NEWEST, ARM64, *CLANG, "CONFIG_CFI=y")
    assert "CONFIG_CFI on arm64" in done.stderr


def test_cleaning_asks_nothing() -> None:
    done = build("5.10", X86_64, "CONFIG_MODULES=")
    assert done.returncode == 0, done.stderr
