# SPDX-License-Identifier: GPL-2.0-only
"""Which kernels the module builds for: one line for any other."""

import shutil
import subprocess
from pathlib import Path

import pytest
from lablib import lock_kernel
from programs import run_program

from bulkmm.control import requirements
from bulkmm.shell.errors import Exit
from lab.paths import PROJECT

RULES = PROJECT / "module/compat/supported.mk"
X86_64, ARM64 = "CONFIG_X86_64=y", "CONFIG_ARM64=y"
DIRECT = "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y"
NEEDED = (DIRECT, "CONFIG_HUGETLB_PAGE=y", "CONFIG_ZONE_DEVICE=y")
CLANG = ("CONFIG_CC_IS_CLANG=y", "CC=clang")
SERIES = requirements.read_table("x86_64").tested
NEWEST = SERIES[-1]
SERIES_ARM64 = requirements.read_table("arm64").tested
# between those that were tested: Ubuntu's 6.8, 6.11 and 6.17 among them
BETWEEN = ("6.2", "6.8", "6.11", "6.13", "6.17", "6.18", "7.0", "7.1")


def read_rules(version: str, *settings: str) -> subprocess.CompletedProcess[str]:
    """Read the rules as the kernel's build of a version would."""
    number, _, patchlevel = version.partition(".")
    settings = (f"VERSION={number}", f"PATCHLEVEL={patchlevel}", *settings)
    settings = ("CONFIG_MODULES=y", *NEEDED, "CC=gcc", *settings)
    return run_program(["make", "-sf", str(RULES), "--eval", "all:", *settings])


def test_without_headers_nothing_is_advised_that_there_is_not() -> None:
    """No package has the headers of a kernel that is not Debian's."""
    result = run_program(["make", "-sC", str(PROJECT), "module", "RELEASE=6.8.0-none"])
    assert result.returncode == Exit.USAGE  # make's own
    assert f"for Debian's kernels {' '.join(SERIES)}, and Debian has" in result.stderr
    assert "apt" not in result.stderr


RISK = "BMM_ANY_KERNEL=1"
CFI = ("CONFIG_CFI_CLANG=y", *CLANG)
UNSUPPORTED = (
    *(((X86_64, had[:-1]), f"it lacks {had[:-2]}") for had in NEEDED),
    ((X86_64, *CFI), "has not been proven on kernels that check"),
    ((X86_64, "CONFIG_PREEMPT_RT=y"), "not tested on kernels with CONFIG_PREEMPT_RT"),
)
ABSENT = "but CC=no-such-clang cannot be run: install it"
MISFITS = (
    *UNSUPPORTED,
    ((X86_64, CLANG[0], "CC=no-such-clang"), f"Clang built this kernel, {ABSENT}"),
    ((X86_64, "CC=no-such-clang"), f"GCC built this kernel, {ABSENT}"),
    ((X86_64, CLANG[0]), "Clang built this kernel, but CC is GCC: give make LLVM=1"),
    ((X86_64, CLANG[1]), "GCC built this kernel, but CC is Clang: give make CC=gcc"),
)
WAS = f"here, but on {', '.join(SERIES)} (BMM_ANY_KERNEL=1"


@pytest.mark.parametrize(
    ("version", "settings", "message"),
    [
        *((version, (X86_64,), "") for version in SERIES),
        *((version, (ARM64,), "") for version in SERIES_ARM64),
        *(
            (version, (X86_64,), f"was not tested on Linux {version} {WAS}")
            for version in ("5.10", "6.0", *BETWEEN, "7.4", "99.0")
        ),
        ("6.12", (ARM64,), f"Linux 6.12 here, but on {SERIES_ARM64[0]} (BMM"),
        ("6.12", ("CONFIG_RISCV=y",), "this architecture: x86-64 and arm64 only"),
        *((NEWEST, *row) for row in MISFITS),
        # at the builder's own risk
        ("99.0", (X86_64, RISK), ""),
        (NEWEST, (X86_64, RISK, *CFI), ""),
        (NEWEST, (X86_64, RISK, "CONFIG_PREEMPT_RT=y"), ""),
        (NEWEST, (X86_64, *CLANG), ""),
        (NEWEST, (X86_64, *CLANG, "CONFIG_CFI=y"), ""),
        # static calls of arm64 are by pointer
        (NEWEST, (ARM64, *CLANG, "CONFIG_CFI=y"), "CONFIG_CFI on arm64"),
        (NEWEST, (ARM64, "CONFIG_ARM64_16K_PAGES=y"), "with CONFIG_ARM64_16K_PAGES,"),
        ("5.10", ("CONFIG_MODULES=",), ""),  # cleaning asks nothing
    ],
)
def test_what_it_builds_for(
    version: str, settings: tuple[str, ...], message: str
) -> None:
    result = read_rules(version, *settings)
    assert (result.returncode == 0) is (not message), result.stderr
    if message:
        (line,) = result.stderr.splitlines()
        assert message in line


def print_exclusion(where: Path, release: str, arch: str, headers: Path) -> str:
    """Return the kernel that dkms.conf then asks for: "" means this one."""
    conf = shutil.copy(PROJECT / "debian/bulkmm-dkms.dkms", where / "dkms.conf")
    if not (where / "module").exists():
        (where / "module").symlink_to(PROJECT / "module")
    read = f"set -e; kernelver={release} arch={arch}; kernel_source_dir={headers}; "
    read += f"dkms_tree=; . {conf}; echo $BUILD_EXCLUSIVE_KERNEL"
    return run_program(["bash", "-c", read], check=True).stdout.strip()


@pytest.mark.parametrize(
    ("version", "arch", "settings", "supported"),
    [
        *((version, "x86_64", (X86_64,), True) for version in SERIES),
        (NEWEST, "x86_64", (X86_64, CLANG[0]), True),  # whether Clang is there or not
        (NEWEST, "aarch64", (ARM64,), True),
        ("6.12", "aarch64", (ARM64,), False),
        (NEWEST, "aarch64", (ARM64, "CONFIG_CFI=y"), False),
        (NEWEST, "riscv64", ("CONFIG_RISCV=y",), False),
        *((NEWEST, "x86_64", settings, False) for settings, _ in UNSUPPORTED),
        *(
            (version, "x86_64", (X86_64,), False)
            for version in ("5.10", *BETWEEN, "7.4", "99.0")
        ),
    ],
)
def test_dkms_skips_what_the_build_refuses(
    tmp_path: Path,
    version: str,
    arch: str,
    settings: tuple[str, ...],
    *,
    supported: bool,
) -> None:
    """As dkms.conf tells by the configuration in the headers."""
    pairs = (word.partition("=") for word in ("CONFIG_MODULES=y", *NEEDED, *settings))
    options = {name: value for name, _, value in pairs}
    lines = [f"{name}={value}\n" for name, value in options.items() if value]
    (tmp_path / ".config").write_text("".join(lines))
    exclusion = print_exclusion(tmp_path, f"{version}.1-x", arch, tmp_path)
    assert exclusion == ("" if supported else "none")


@pytest.mark.vm
def test_headers_of_another_series_are_refused_by_build_and_dkms(
    tmp_path: Path,
) -> None:
    """A kernel's own, which say 6.8; "hook-faults" has a kernel that does."""
    with lock_kernel(NEWEST) as kernel:
        where = kernel.root
        module = where.var / "refused"
        shutil.copytree(PROJECT / "module", module, dirs_exist_ok=True)
        make = ["make", "-C", kernel.headers, f"M={where.inner(module)}", "modules"]
        try:
            result = run_program(where.enter([*make, "VERSION=6", "PATCHLEVEL=8"]))
        finally:
            shutil.rmtree(module)
        headers = where.path / kernel.headers.lstrip("/")
        for release, exclusion in (kernel.release, ""), ("6.8.0-45-generic", "none"):
            assert print_exclusion(tmp_path, release, "x86_64", headers) == exclusion
    assert result.returncode
    assert f"bulkmm was not tested on Linux 6.8 {WAS}" in result.stderr


def test_the_series_of_a_release(tmp_path: Path) -> None:
    """What the module compares at load with what it was built for."""
    releases = {
        "6.1.0-56-cloud-amd64": (6, 1),
        "6.12.107+deb13-amd64": (6, 12),
        "7.3.4": (7, 3),
        "7.3-rc1": (7, 3),
        "6.8.0-45-generic": (6, 8),
        "": None,
        "7": None,
        "7.": None,
        "x7.3": None,
        "6.1000": None,
    }
    source = tmp_path / "series.c"
    source.write_text(f"""#include <stdio.h>
#include "{PROJECT}/module/series.h"
int main(int argc, char **argv)
{{
	for (int i = 1; i < argc; i++)
		printf("%u\\n", bmm_series(argv[i]));
}}
""")
    program = tmp_path / "series"
    run_program(["gcc", "-Wall", "-Werror", "-o", program, source], check=True)
    output = run_program([program, *releases], check=True).stdout.split()
    expected = [(x[0] << 8 | x[1]) if x else 0 for x in releases.values()]
    assert [*map(int, output)] == expected
