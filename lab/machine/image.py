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
from lab.machine import userland
from lab.machine.arch import Arch
from lab.machine.kernels import Kernel, module_name, with_dependencies
from lab.machine.root import DebianRoot
from lab.paths import GUEST, PROJECT, content_key, copy_sources, ensure_directory

EARLY = ("virtio_pci", "virtio_console")  # for the ports to the host
PROGRAMS = {".c", ".h", ".def"}  # what they are compiled from
RECIPE = (Path(__file__), Path(userland.__file__))
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
    for module in with_dependencies(kernel, (*EARLY, *modules)):
        _add_module(kernel, module, tree / "lib/modules")
    early = [f"{module_name(path)}\n" for path in with_dependencies(kernel, EARLY)]
    (tree / "lib/early").write_text("".join(early), encoding="ascii")


def modules_to_load(kernel: Kernel, names: tuple[str, ...]) -> list[str]:
    """Return the modules that a guest's job loads for these, in load order."""
    early = with_dependencies(kernel, EARLY)
    wanted = with_dependencies(kernel, names)
    return [module_name(path) for path in wanted if path not in early]


def _add_module(kernel: Kernel, module: str, to: Path) -> None:
    """Unpack one of the kernel's modules under its plain name."""
    inner = kernel.root.inner(kernel.modules / module)
    out = kernel.root.inner(to / f"{module_name(module)}.ko")
    tool = "xz -dc" if module.endswith(".xz") else "cat"
    kernel.root.run(["sh", "-c", f'{tool} "$1" >"$2"', "sh", inner, out])


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
