# SPDX-License-Identifier: GPL-2.0-only
"""Programs of others that suites add to a guest, in a tree laid over its own.

The kernel's mm selftests are built unchanged and statically from the running
kernel's source package, against that kernel's UAPI headers. Stable updates break some
of them: what does not build is skipped in every state of the module, by name.
"""

import shutil
from pathlib import Path, PurePath

from bulkmm.shell.child import ChildError
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import kernel_build, kernel_kinds, upstream, userland
from lab.machine.arch import X86_64
from lab.machine.kernels import Kernel
from lab.paths import PROJECT, content_key, ensure_directory

MM, STRESS, COEXIST = "mm", "stress", "coexist"  # suites
FORK = "hugetlb_fork"  # a program that a patch in upstream/ adds to MM
QEMU = "qemu"  # the root's own, as a user of huge pages
COMMAND = "command"  # this one, with a Python
PLACE = "suite"  # in the guest
SELFTESTS = "tools/testing/selftests"
SOURCE = ("tools", "include", "mm/gup_test.h", "lib/test_hmm_uapi.h")
# what the tests link with; kernel headers are from the kernel's version
SYSROOT = ("libc6-dev", "libcap-dev", "libnuma-dev", "liburing-dev")
BASH = "bash-static"  # the test runner is a bash script
STRESS_NG = "stress-ng"
PYTHON = "python3.13"
STANDARD = f"usr/lib/{PYTHON}"
LEFT_OUT = ("test", "idlelib", "ensurepip", "tkinter", "pydoc_data", "lib2to3")
ELSEWHERE = "sitecustomize.py"  # a link to /etc
# whatever times of change files have in a guest
COMPILE = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
# the compiler's name must be one word for the tests' own probes
COMPILER = '#!/bin/sh\nexec {} --sysroot="{}" -static -s "$@"\n'
# the tests have no time limit of their own; some exit by themselves if stopped, and
# the runner waits for their children
WRAPPER = """#!/bin/sh
read -r begun _ </proc/uptime
setsid timeout -k 5 "$MM_LIMIT" "$0.test" "$@" &
wait $!
code=$?
pkill -9 -s $!
read -r ended _ </proc/uptime
[ $((${ended%.*} - ${begun%.*})) -lt "$MM_LIMIT" ] || code=124
exit $code
"""
# a script finds this program by name
BARE = ("write_to_hugetlbfs",)
# stands in for a program that does not build: the runner takes 4 for skipped
STAND_IN = "#!/bin/sh\nexit 4\n"
UNBUILT = "unbuilt"  # file with the names of these programs
# the programs that "all" makes, one a word
LIST_RULE = "bmm-listed: ; @echo $(TEST_GEN_FILES)"


def ensure_tree(kernel: Kernel, name: str, progress: Progress) -> Path:
    """Return the tree of a suite, made if this kernel has none."""
    makers = {
        MM: _mm,
        FORK: _fork,
        STRESS: _stress,
        COEXIST: _coexist,
        QEMU: _qemu,
        COMMAND: _command,
    }
    version = kernel.release
    if name in (MM, FORK):
        version = upstream.source_package(kernel)[1]
    recipe = [Path(__file__), Path(userland.__file__)]
    recipe += _list_patches(kernel) if name == FORK else []
    key = content_key(
        [*(_command_files() if name == COMMAND else ()), *recipe], version
    )
    place = kernel.root.var / "suites" / f"{name}-{kernel.release}-{key}"
    return ensure_directory(
        place,
        f"making the suite {name} for {kernel.release}",
        progress,
        lambda part: makers[name](kernel, part, progress),
    )


def _mm(kernel: Kernel, part: Path, progress: Progress) -> None:
    sysroot = _unpack_sysroot(kernel, progress)
    shell = userland.unpack_packages(kernel.root, kernel.arch, (BASH,), progress)
    source, to = part / "source", part / PLACE / MM
    source.mkdir()
    to.mkdir(parents=True)
    upstream.extract_source(kernel, source, ("--strip-components=1",), SOURCE)
    _build_mm(kernel, source, sysroot, to)
    shutil.rmtree(source)
    (part / "bin").mkdir()
    shutil.copy(shell / "usr/bin" / BASH, part / "bin/bash")


def _unpack_sysroot(kernel: Kernel, progress: Progress) -> Path:
    version = upstream.source_package(kernel)[1]
    packages = (*SYSROOT, f"linux-libc-dev={version}")
    return userland.unpack_packages(kernel.root, kernel.arch, packages, progress)


def _list_patches(kernel: Kernel) -> list[Path]:
    """Return the patches in upstream/ to the tests of a kernel that the lab builds."""
    kind = kernel_kinds.of_release(kernel.release)
    return kind.test_patches if kind else []


def _fork(kernel: Kernel, part: Path, progress: Progress) -> None:
    """Build the one program, whether or not the kernel itself has the patches."""
    sysroot, source = _unpack_sysroot(kernel, progress), part / "source"
    to = part / PLACE
    source.mkdir()
    to.mkdir(parents=True)
    upstream.extract_source(kernel, source, ("--strip-components=1",), SOURCE)
    for patch in _list_patches(kernel):
        kernel_build.apply_patch(kernel.root, patch, source, kernel.release)
    argv = _prepare_make(kernel, source, sysroot, to)
    kernel.root.run([*argv, f"{kernel.root.inner(to)}/{FORK}"], 900)
    shutil.rmtree(source)


def _prepare_make(kernel: Kernel, source: Path, sysroot: Path, to: Path) -> list[str]:
    """Return the command that builds the programs of mm, without its goals."""
    root, arch, tests = kernel.root, kernel.arch, source / SELFTESTS / "mm"
    inner, out = root.inner(sysroot), root.inner(to)
    compiler = source / "compiler"
    compiler.write_text(COMPILER.format(arch.compiler, inner), encoding="ascii")
    compiler.chmod(0o755)
    argv = ["make", "-sk", "-j2", "-C", root.inner(tests), f"ARCH={arch.name}"]
    argv += [f"CC={root.inner(compiler)}", f"OUTPUT={out}"]
    return [*argv, f"KHDR_INCLUDES=-isystem {inner}/usr/include", "EXTRA_CFLAGS=-w"]


def _build_mm(kernel: Kernel, source: Path, sysroot: Path, to: Path) -> None:
    """Build the programs one by one and wrap each in a time limit."""
    root, tests, out = kernel.root, source / SELFTESTS / "mm", kernel.root.inner(to)
    argv = _prepare_make(kernel, source, sysroot, to)
    output = root.run([*argv, f"--eval={LIST_RULE}", "bmm-listed"])
    wanted = {PurePath(word).name for word in output.split() if word.startswith(out)}
    try:
        root.run([*argv, "all"], 900)
    except ChildError as error:
        binaries = {program.name for program in to.iterdir()} & wanted
        if error.timed_out or not binaries or binaries == wanted:
            problem = f"the tests of mm do not build for {kernel.release}"
            raise BulkmmError(f"{problem}:\n{error.output}") from error
    for program in list(to.iterdir()):
        if program.name not in BARE:
            program.rename(program.with_name(f"{program.name}.test"))
            _write_script(program, WRAPPER)
    unbuilt = sorted(name for name in wanted if not (to / name).exists())
    for name in unbuilt:
        _write_script(to / name, STAND_IN)
    (to / UNBUILT).write_text("".join(f"{name}\n" for name in unbuilt), "ascii")
    for script in tests.glob("*.sh"):
        shutil.copy(script, to)


def _write_script(to: Path, text: str) -> None:
    to.write_text(text, encoding="ascii")
    to.chmod(0o755)


def _stress(kernel: Kernel, part: Path, progress: Progress) -> None:
    root, arch = kernel.root, kernel.arch
    programs = userland.unpack_packages(root, arch, (STRESS_NG,), progress)
    userland.copy_tools(root, arch, programs, (f"usr/bin/{STRESS_NG}",), part)


def _qemu(kernel: Kernel, part: Path, _progress: Progress) -> None:
    root, arch = kernel.root, kernel.arch
    if arch is X86_64:  # the root's own
        userland.copy_tools(root, arch, root.path, (f"usr/bin/{arch.qemu}",), part)


def _command_files() -> list[Path]:
    """Return the command's files, with its data, as they are copied."""
    paths = (PROJECT / "bulkmm").rglob("*")
    return [f for f in paths if f.is_file() and f.suffix != ".pyc"]


def _command(kernel: Kernel, part: Path, progress: Progress) -> None:
    python = userland.unpack_packages(kernel.root, X86_64, (PYTHON,), progress)
    leave = shutil.ignore_patterns("*.pyc", "__pycache__", ELSEWHERE, *LEFT_OUT)
    libraries = "usr/lib/x86_64-linux-gnu"
    for place in ("usr/bin", libraries):
        (part / place).mkdir(parents=True)
    shutil.copytree(python / STANDARD, part / STANDARD, ignore=leave)
    shutil.copy(python / "usr/bin" / PYTHON, part / "usr/bin")
    for pattern in ("libexpat.so*", "libffi.so*", "libm.so*", "libz.so*"):
        for file in (python / libraries).glob(pattern):
            shutil.copy(file, part / libraries)
    shutil.copytree(PROJECT / "bulkmm", part / COMMAND / "bulkmm", ignore=leave)
    for sources in (STANDARD, COMMAND):  # which takes a guest ten times as long
        kernel.root.run([PYTHON, *COMPILE, kernel.root.inner(part / sources)])


def _coexist(kernel: Kernel, part: Path, _progress: Progress) -> None:
    (part / PLACE).mkdir()
    shutil.copy(kernel.image, part / PLACE / "vmlinuz")
