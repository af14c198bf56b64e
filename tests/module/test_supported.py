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
NEEDED = (DIRECT, "CONFIG_HUGETLB_PAGE=y", "CONFIG_ZONE_DEVICE=y")
CLANG = ("CONFIG_CC_IS_CLANG=y", "CC=clang")
OLDEST, NEWEST = needs.kernels("range-x86_64")
OLDEST_ARM64, _ = needs.kernels("range-arm64")


def build(version: str, *settings: str) -> subprocess.CompletedProcess[str]:
    """Read the rules as the kernel's build of a version would."""
    number, _, patchlevel = version.partition(".")
    settings = (f"VERSION={number}", f"PATCHLEVEL={patchlevel}", *settings)
    settings = ("CONFIG_MODULES=y", *NEEDED, "CC=gcc", *settings)
    return completed(["make", "-sf", str(RULES), "--eval", "all:", *settings])


RISK = "BMM_ANY_KERNEL=1"
CFI = ("CONFIG_CFI_CLANG=y", *CLANG)
MISFITS = (
    *(((X86_64, had[:-1]), f"it lacks {had[:-2]}") for had in NEEDED),
    ((X86_64, *CFI), "has not been proven on kernels that check"),
    ((X86_64, CLANG[0]), "Clang built this kernel, but CC is GCC: give make LLVM=1"),
    ((X86_64, CLANG[1]), "GCC built this kernel, but CC is Clang: give make CC=gcc"),
)
RANGE = f"{OLDEST} to {NEWEST} only"


@pytest.mark.parametrize(
    ("version", "settings", "says"),
    [
        *((version, (X86_64,), "") for version in (OLDEST, "7.0", NEWEST)),
        (NEWEST, (ARM64,), ""),
        ("5.10", (X86_64,), f"does not support Linux 5.10 here: {RANGE}"),
        ("6.0", (X86_64,), f"does not support Linux 6.0 here: {RANGE}"),
        ("99.0", (X86_64,), f"does not support Linux 99.0 here: {RANGE}"),
        ("6.12", (ARM64,), f"Linux 6.12 here: {OLDEST_ARM64} to {NEWEST} only"),
        ("6.12", ("CONFIG_RISCV=y",), "this architecture: x86-64 and arm64 only"),
        *((NEWEST, *row) for row in MISFITS),
        # at the builder's own risk
        ("99.0", (X86_64, RISK), ""),
        (NEWEST, (X86_64, RISK, *CFI), ""),
        (NEWEST, (X86_64, *CLANG), ""),
        (NEWEST, (X86_64, *CLANG, "CONFIG_CFI=y"), ""),
        # static calls of arm64 are by pointer
        (NEWEST, (ARM64, *CLANG, "CONFIG_CFI=y"), "CONFIG_CFI on arm64"),
        ("5.10", ("CONFIG_MODULES=",), ""),  # cleaning asks nothing
    ],
)
def test_what_it_builds_for(version: str, settings: tuple[str, ...], says: str) -> None:
    done = build(version, *settings)
    assert (done.returncode == 0) is (not says), done.stderr
    if says:
        (line,) = done.stderr.splitlines()
        assert says in line


def test_dkms_skips_kernels_that_lack_an_option() -> None:
    conf = (PROJECT / "debian/bulkmm-dkms.dkms").read_text()
    assert [had for had in NEEDED if had[:-2] not in conf] == []
