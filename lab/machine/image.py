# SPDX-License-Identifier: GPL-2.0-only
"""What the guest boots: a base initramfs per kernel, and a small one per run.

The kernel accepts concatenated archives, so the base (busybox, ndctl, mke2fs, the
kernel's own modules) is made once; only our modules and the job are packed for
each run. Nothing is compressed: under emulation unpacking costs more than loading.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from bulkmm.shell.child import explain_failure
from bulkmm.shell.progress import Progress
from lab.machine import kernel_modules, userland
from lab.machine.arch import Arch
from lab.machine.kernels import Kernel
from lab.machine.root import DebianRoot
from lab.paths import GUEST, PROJECT, content_key, copy_sources, ensure_directory

PROGRAMS = {".c", ".h", ".def"}  # what they are compiled from
PARTS = ("image", "kernel_modules", "userland")
RECIPE = [Path(__file__).with_name(f"{name}.py") for name in PARTS]
KEEP = 32  # of 20 MB each: eight sets of modules for each of three kernels, and spare
# sorted names make the archive's content reproducible
PACK = 'cd "$1" && find . | LC_ALL=C sort | cpio -o -H newc --quiet -F "$2"'


def ensure_base(kernel: Kernel, modules: tuple[str, ...], progress: Progress) -> Path:
    """Return the base initramfs of a kernel with these modules."""
    root = kernel.root
    helpers = _ensure_helpers(root, kernel.arch, progress)
    files = [*GUEST.glob("*.sh"), GUEST / "init", *RECIPE]
    key = content_key(files, kernel.release, helpers.parent.name, *modules)
    programs = userland.ensure_userland(root, kernel.arch, progress)

    def make(part: Path) -> None:
        tree = part / "tree"
        _fill(kernel, tree, modules)
        userland.copy_programs(root, kernel.arch, programs, tree)
        shutil.copytree(helpers, tree / "bin", dirs_exist_ok=True)
        pack_tree(root, tree, part / "base.cpio")
        shutil.rmtree(tree)

    place = root.var / "image" / f"{kernel.release}-{key}"
    base = ensure_directory(place, "packing the guest", progress, make, KEEP)
    return base / "base.cpio"


def _ensure_helpers(root: DebianRoot, arch: Arch, progress: Progress) -> Path:
    """Return the directory of the lab's own programs for guests."""
    tops = [GUEST, PROJECT / "core", PROJECT / "lib"]
    sources = [one for top in tops for one in top.rglob("*") if one.suffix in PROGRAMS]
    sources += [GUEST / "Makefile"]

    def make(part: Path) -> None:
        copy_sources(sources, part)
        (part / "bin").mkdir()
        words = [f"OUT={root.inner(part / 'bin')}", f"CC={arch.compiler}"]
        with explain_failure(f"no programs of guests for {arch.name}", whole=True):
            root.run(["make", "-sj2", "-C", root.inner(part / "lab/guest"), *words])

    place = root.var / "helpers" / f"{arch.name}-{content_key([*sources, *RECIPE])}"
    step = "compiling the guest's programs"
    return ensure_directory(place, step, progress, make) / "bin"


def _fill(kernel: Kernel, tree: Path, modules: tuple[str, ...]) -> None:
    for name in ("bin", "dev", "lib/bmm", "lib/modules", "etc"):
        (tree / name).mkdir(parents=True)
    for script in GUEST.glob("*.sh"):
        shutil.copy(script, tree / "lib/bmm")
    shutil.copy(GUEST / "init", tree / "init")
    (tree / "init").chmod(0o755)
    kernel_modules.add_modules(kernel, modules, tree / "lib")


def pack_tree(root: DebianRoot, tree: Path, archive: Path) -> None:
    """Pack a tree below the root into an archive below the root."""
    root.run(["sh", "-c", PACK, "sh", root.inner(tree), root.inner(archive)])


def pack_initramfs(
    root: DebianRoot,
    base: Path,
    run: Path,
    job: str,
    modules: list[Path],
    *,
    over: Sequence[Path] = (),
) -> Path:
    """Return the whole initramfs of a run: the base, our modules, the job.

    ``over``: trees with what only one scenario needs.
    """
    tree = run / "tree"
    for more in over:
        shutil.copytree(more, tree, dirs_exist_ok=True)
    (tree / "lib/modules").mkdir(parents=True, exist_ok=True)
    for module in modules:
        shutil.copy(module, tree / "lib/modules")
    (tree / "job").write_text(job, encoding="ascii")
    pack_tree(root, tree, run / "job.cpio")
    whole = run / "initramfs.cpio"
    with whole.open("wb") as out:
        for part in (base, run / "job.cpio"):
            out.write(part.read_bytes())
    shutil.rmtree(tree)
    return whole
