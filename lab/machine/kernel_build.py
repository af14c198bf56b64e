# SPDX-License-Identifier: GPL-2.0-only
"""Building a kernel of the lab's own configuration from Debian's source.

That takes minutes, once. An interrupted build resumes: source and objects are
kept until the kernel is installed.
"""

import os
import re
import shutil
from pathlib import Path, PurePath

from bulkmm.shell import child
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import kernels, upstream, versions
from lab.machine.arch import X86_64
from lab.machine.kernel_kinds import Kind, list_lacking
from lab.machine.kernels import Kernel
from lab.machine.root import DebianRoot
from lab.paths import lock_directory, made_whole, need_space

SPACE = 4_000_000_000  # source and objects with debug information
LIMIT = 7200  # seconds for one step
COMPLAINT = re.compile(r"error:|\*\*\*|undefined reference|FAILED", re.IGNORECASE)
INSTALLED = "config"  # the last file installed
INSTALL = (
    "apt-get", "-qy", "-o", "APT::Sandbox::User=root", "--no-install-recommends",
    "install",
)  # fmt: skip
APPLY = 'cd "$1" && busybox patch -p1 -i "$2"'
EXTMOD = "$(srctree)/scripts/package/install-extmod-build"
# programs that it builds again by the kernel's compiler, for where the kernel runs
HOST_PROGRAMS = ("scripts/basic/fixdep", "scripts/mod/modpost")


def find_built(root: DebianRoot, kind: Kind) -> Kernel | None:
    """Return the kernel of a kind if it is built."""
    stock = _find_pinned(root, kind) or kernels.find_fetched(
        root, kind.series, kind.arch
    )
    kernel = _of(root, kind, stock) if stock else None
    return kernel if kernel and (kernel.modules / INSTALLED).is_file() else None


def _find_pinned(root: DebianRoot, kind: Kind) -> Kernel | None:
    """Return the stock kernel whose source is pinned; it is not fetched itself."""
    version = versions.find_source(kind.series)
    return Kernel(root, f"{version}-cloud-{kind.arch.debian}") if version else None


def _of(root: DebianRoot, kind: Kind, stock: Kernel) -> Kernel:
    return Kernel(root, kind.release(stock.release.partition("-")[0]))


def build_kernel(root: DebianRoot, kind: Kind, progress: Progress) -> Kernel:
    """Return the kernel of a kind, built unless the root has this configuration.

    That is under a lock of its own: once all is prepared, this needs the cache used,
    but not locked.
    """
    stock = prepare_build(root, kind, progress)
    kernel = _of(root, kind, stock)
    stamp = kernel.modules / INSTALLED
    if stamp.is_file():  # the caller may have locked the cache: do not wait for others
        return kernel
    with lock_directory(root.var / "kernel", progress, "build a kernel"):
        if not stamp.is_file():
            _remove_others(kernel, kind)
            Build(kind, stock, kernel, progress).run()
    return kernel


def prepare_build(root: DebianRoot, kind: Kind, progress: Progress) -> Kernel:
    """Return the stock kernel whose source is built, and install the compiler."""
    name = kind.compiler
    if not (root.path / "usr/bin" / name).exists():
        with progress.step(f"installing {name}"):
            root.run([*INSTALL, name], LIMIT)
    pinned = _find_pinned(root, kind)
    if not pinned:
        return kernels.fetch_kernel(root, kind.series, progress, kind.arch)
    try:
        upstream.source_package(pinned)
    except BulkmmError:  # an old index lacks what is new
        kernels.update_index(root, progress)
    return pinned


def _remove_others(kernel: Kernel, kind: Kind) -> None:
    """Remove what is from other fragments, other patches or another version."""
    root, names = kernel.root, f"*-{kind.name}.*"
    for old in kernel.modules.parent.glob(names):
        if old != kernel.modules:
            _remove(Kernel(root, old.name))
    for old in (root.var / "kernel").glob(names):  # of builds that were interrupted
        if not old.name.endswith(kernel.release):
            shutil.rmtree(old)


def _remove(kernel: Kernel) -> None:
    shutil.rmtree(kernel.modules, ignore_errors=True)
    shutil.rmtree(_headers(kernel), ignore_errors=True)
    _image(kernel).unlink(missing_ok=True)


def _headers(kernel: Kernel) -> Path:
    return kernel.root.path / kernel.headers.lstrip("/")


def _image(kernel: Kernel) -> Path:
    return kernel.root.path / f"boot/vmlinuz-{kernel.release}"


def apply_patch(root: DebianRoot, patch: Path, source: Path, version: str) -> None:
    """Apply a patch to a source below the root, or say which version it is not for."""
    copy = Path(shutil.copy(patch, source))
    names = root.inner(source), copy.name
    try:
        root.run(["sh", "-c", APPLY, "sh", *names])
    except child.ChildError as error:
        lines = error.output.splitlines()
        why = next((line for line in lines if "FAILED" in line), str(error))
        message = f"{patch.name} does not apply to {version}: {why}"
        raise BulkmmError(message) from error
    copy.unlink()


class Build:
    """The build of one kernel from a stock kernel's source."""

    def __init__(
        self, kind: Kind, stock: Kernel, kernel: Kernel, progress: Progress
    ) -> None:
        self.kind, self.stock, self.kernel = kind, stock, kernel
        self.root, self.progress = kernel.root, progress
        work = self.root.var / "kernel"
        # the release tells which patches it has
        self.source = work / f"source-{kernel.release}"
        self.objects = work / kernel.release

    def run(self) -> None:
        """Build and install, then remove the build files."""
        need_space(SPACE, f"building kernel {self.kernel.release}")
        self._unpack()
        self.objects.mkdir(exist_ok=True)
        self._configure()
        with self.progress.step(f"building kernel {self.kernel.release}, for minutes"):
            self._make(PurePath(self.kind.arch.image).name, "modules")
        with self.progress.step(f"installing kernel {self.kernel.release}"):
            _remove(self.kernel)  # from a run interrupted here
            self._install()
        shutil.rmtree(self.objects)
        shutil.rmtree(self.source)

    def _unpack(self) -> None:
        if self.source.is_dir():
            return
        package, version = upstream.source_package(self.stock)
        with (
            self.progress.step(f"fetching {package} {version}"),
            made_whole(self.source) as part,
        ):
            # documentation is a third of all files; Kconfig needs one of them
            options = ("--strip-components=1", f"--exclude={package}/Documentation/*/*")
            upstream.extract_source(self.stock, part, options)
            for patch in self.kind.patches:
                apply_patch(self.root, patch, part, f"{package} {version}")

    def _configure(self) -> None:
        """Write the configuration and check that it has the requested options."""
        config = self.objects / ".config"
        fragment = self.objects / "asked.config"
        suffix = self.kernel.release.partition("+")[2]
        text = f'{self.kind.text}CONFIG_LOCALVERSION="+{suffix}"\n'
        fragment.write_text(text, encoding="ascii")
        if not config.is_file():
            self._make(f"KCONFIG_ALLCONFIG={self.root.inner(fragment)}", "allnoconfig")
        if problems := list_lacking(text, config.read_text(encoding="ascii")):
            config.unlink()
            raise BulkmmError(
                f"kernel {self.kernel.release} cannot be what lab/kernels asks for: "
                f"{'; '.join(problems)}: add the option that each depends on"
            )

    def _make(self, *goals: str) -> None:
        argv = ["make", f"-j{os.cpu_count()}", "-C", self.root.inner(self.source)]
        argv += [f"O={self.root.inner(self.objects)}"]
        argv += [f"CC={self.kind.compiler}", f"HOSTCC={X86_64.compiler}"]
        argv += self.kind.arch.make_words
        try:
            self.root.run([*argv, *goals], LIMIT)
        except child.ChildError as error:
            raise BulkmmError(self._why(goals[-1], error)) from error

    def _why(self, goal: str, error: child.ChildError) -> str:
        step = f"kernel {self.kernel.release}: make {goal}"
        if error.timed_out:
            return (
                f"{step} took more than {LIMIT // 60} minutes: run the same command "
                "again, it goes on where this one stopped"
            )
        lines = error.output.splitlines()
        wrong = (line.strip() for line in lines if COMPLAINT.search(line))
        return f"{step} failed: {next(wrong, error)}"

    def _install(self) -> None:
        """Install headers, image and modules where a package would."""
        kernel = self.kernel
        self._make(f"KBUILD_RUN_COMMAND={EXTMOD} {kernel.headers}", "run-command")
        for name in HOST_PROGRAMS:
            shutil.copy(self.objects / name, _headers(kernel) / name)
        shutil.copy(self.objects / self.kind.arch.image, _image(kernel))
        self._make("INSTALL_MOD_STRIP=1", "modules_install")
        link = kernel.modules / "build"
        link.unlink(missing_ok=True)
        link.symlink_to(kernel.headers)
        config = self.objects / ".config"
        shutil.copy(config, _headers(kernel))
        shutil.copy(config, kernel.modules / INSTALLED)
