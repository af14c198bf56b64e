# SPDX-License-Identifier: GPL-2.0-only
"""A disk with a Debian system, for guests that install packages.

It has the dependencies of the project's packages, headers of both kernels and a
few of their modules, but nothing that the packages install. Guests write to a
snapshot.
"""

import shutil
from pathlib import Path

from bulkmm.lab.machine import debs, kernels
from bulkmm.lab.machine import root as roots
from bulkmm.lab.machine.arch import X86_64
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.machine.root import SUITES, Root
from bulkmm.lab.paths import content_key, forget_old, made_whole
from bulkmm.lab.progress import Progress
from bulkmm.lab.scenario import find

# the packages of kernel headers depend on gcc and pahole; DKMS makes its signing
# key with openssl; programs find the library with pkgconf
BESIDES = (
    "dkms", "gcc-14", "gcc", "libc6-dev", "openssl", "pahole", "pkgconf", "python3",
)  # fmt: skip
OURS = {"bulkmm", "bulkmm-dkms", "libbulkmm0", "libbulkmm-dev"}
# of the kernel's own: DKMS takes a kernel without any for a removed one
MODULES = find("packages").modules
ROOM = 600 << 20  # bytes for what a guest installs and builds
LISTS = ("modules.order", "modules.builtin", "modules.builtin.modinfo")


def ensure(root: Root, progress: Progress) -> Path:
    """Return the disk image, below the lab's root, where QEMU can see it."""
    both = [kernels.ensure(root, name, progress) for name in X86_64.series]
    names = sorted({*BESIDES, *debs.field("Depends")} - OURS)
    releases = [kernel.release for kernel in both]
    made = root.var / "disk" / content_key([], *SUITES, *names, *MODULES, *releases)
    if not made.is_dir():
        tree = Root(root.var / "disk-tree")
        shutil.rmtree(tree.path, ignore_errors=True)
        try:
            roots.make(tree, names, "the Debian of guests", progress)
            for kernel in both:
                _add_headers(kernel, tree.path)
            with progress.step("making the guest's disk"), made_whole(made) as part:
                _image(root, tree.path, part / "disk")
        finally:
            shutil.rmtree(tree.path, ignore_errors=True)
        forget_old(made.parent, 2)  # a guest may be about to start from the older one
    return made / "disk"


def _add_headers(kernel: Kernel, tree: Path) -> None:
    """Add a kernel's headers from the lab's root."""
    lab = kernel.root.path
    version = kernel.release.removesuffix(f"-cloud-{kernel.arch.debian}")
    wanted = [
        f"usr/src/linux-headers-{kernel.release}",
        f"usr/src/linux-headers-{version}-common",
        f"usr/lib/linux-kbuild-{version}",
        f"usr/src/linux-kbuild-{version}",
        f"usr/lib/modules/{kernel.release}/build",
        f"usr/lib/modules/{kernel.release}/source",
        f"boot/config-{kernel.release}",
    ]
    own = kernels.with_dependencies(kernel, MODULES)
    wanted += [f"usr/lib/modules/{kernel.release}/{name}" for name in (*LISTS, *own)]
    for name in wanted:
        if (lab / name).is_symlink() or (lab / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(lab / name, tree / name, follow_symlinks=False)
        elif (lab / name).is_dir():
            shutil.copytree(lab / name, tree / name, symlinks=True)


def _image(root: Root, tree: Path, disk: Path) -> None:
    """Make a file system from a tree."""
    for dull in ("usr/share/doc", "usr/share/locale", "var/lib/apt/lists"):
        shutil.rmtree(tree / dull)
    used = int(root.run(["du", "-sB1", root.inner(tree)]).split()[0])
    size = f"{(used * 5 // 4 + ROOM) >> 20}M"
    argv = ["mke2fs", "-q", "-t", "ext4", "-d", root.inner(tree)]
    root.run([*argv, root.inner(disk), size])
