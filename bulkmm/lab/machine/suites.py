# SPDX-License-Identifier: GPL-2.0-only
"""Programs of others that suites add to a guest, in a tree laid over its own.

The kernel's mm selftests are built unchanged and statically from the running
kernel's source package, against that kernel's UAPI headers.
"""

import shutil
from pathlib import Path

from bulkmm.lab.child import explained
from bulkmm.lab.machine import upstream, userland
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.paths import content_key, forget_old, made_whole
from bulkmm.lab.progress import Progress

MM, STRESS, COEXIST = "mm", "stress", "coexist"  # suites
PLACE = "suite"  # in the guest
SELFTESTS = "tools/testing/selftests"
SOURCE = ("tools", "include", "mm/gup_test.h", "lib/test_hmm_uapi.h")
# what the tests link with; kernel headers are from the kernel's version
SYSROOT = ("libc6-dev", "libcap-dev", "libnuma-dev", "liburing-dev")
BASH = "bash-static"  # the test runner is a bash script
STRESS_NG = "stress-ng"
# the compiler's name must be one word for the tests' own probes
COMPILER = '#!/bin/sh\nexec gcc-14 --sysroot="{}" -static -s "$@"\n'
# the tests have no time limit of their own; some exit by themselves if stopped
WRAPPER = """#!/bin/sh
read -r begun _ </proc/uptime
timeout -k 5 "$MM_LIMIT" "$0.test" "$@"
code=$?
read -r ended _ </proc/uptime
[ $((${ended%.*} - ${begun%.*})) -lt "$MM_LIMIT" ] || code=124
exit $code
"""
# a script finds this program by name
BARE = ("write_to_hugetlbfs",)


def tree(kernel: Kernel, name: str, progress: Progress) -> Path:
    """Return the tree of a suite, made if this kernel has none."""
    makers = {MM: _mm, STRESS: _stress, COEXIST: _coexist}
    version = upstream.source_package(kernel)[1] if name == MM else kernel.release
    key = content_key([], *SOURCE, *SYSROOT, COMPILER, WRAPPER, version)
    place = kernel.root.var / "suites" / f"{name}-{kernel.release}-{key}"
    if not place.is_dir():
        with made_whole(place) as part:
            makers[name](kernel, part, progress)
        forget_old(place.parent)
    return place


def _mm(kernel: Kernel, part: Path, progress: Progress) -> None:
    version = upstream.source_package(kernel)[1]
    packages = (*SYSROOT, f"linux-libc-dev={version}")
    sysroot = userland.unpacked(kernel.root, kernel.arch, packages, progress)
    shell = userland.unpacked(kernel.root, kernel.arch, (BASH,), progress)
    source, to = part / "source", part / PLACE / MM
    source.mkdir()
    to.mkdir(parents=True)
    with progress.step(f"building the tests of mm for {kernel.release}"):
        upstream.extract(kernel, source, ("--strip-components=1",), SOURCE)
        _build_mm(kernel, source, sysroot, to)
    shutil.rmtree(source)
    (part / "bin").mkdir()
    shutil.copy(shell / "usr/bin" / BASH, part / "bin/bash")


def _build_mm(kernel: Kernel, source: Path, sysroot: Path, to: Path) -> None:
    """Build the programs and wrap each in a time limit."""
    root, tests = kernel.root, source / SELFTESTS / "mm"
    inner = root.inner(sysroot)
    compiler = source / "compiler"
    compiler.write_text(COMPILER.format(inner), encoding="ascii")
    compiler.chmod(0o755)
    argv = ["make", "-s", "-j2", "-C", root.inner(tests), "ARCH=x86_64", "all"]
    argv += [f"CC={root.inner(compiler)}", f"OUTPUT={root.inner(to)}"]
    argv += [f"KHDR_INCLUDES=-isystem {inner}/usr/include", "EXTRA_CFLAGS=-w"]
    with explained(f"the tests of mm do not build for {kernel.release}", whole=True):
        root.run(argv, 900)
    for program in list(to.iterdir()):
        if program.name not in BARE:
            program.rename(program.with_name(f"{program.name}.test"))
            program.write_text(WRAPPER, encoding="ascii")
            program.chmod(0o755)
    for script in tests.glob("*.sh"):
        shutil.copy(script, to)


def _stress(kernel: Kernel, part: Path, progress: Progress) -> None:
    """Copy stress-ng."""
    root, arch = kernel.root, kernel.arch
    programs = userland.unpacked(root, arch, (STRESS_NG,), progress)
    userland.copy_tools(root, arch, programs, (f"usr/bin/{STRESS_NG}",), part)


def _coexist(kernel: Kernel, part: Path, _progress: Progress) -> None:
    """Copy the kernel that kexec starts."""
    (part / PLACE).mkdir()
    shutil.copy(kernel.image, part / PLACE / "vmlinuz")
