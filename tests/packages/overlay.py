# SPDX-License-Identifier: GPL-2.0-only
"""A script in a Debian whose roots lie below it: what it writes is forgotten."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lablib import lock_kernel

from bulkmm.shell import child
from bulkmm.shell.progress import Progress
from lab import paths
from lab.machine import debs, disk, vm

FOLDER = Path(__file__).parent

# ROOTS PLACE SCRIPT WORDS...: the first root is the uppermost
ENTER = """
roots=$1 place=$2
shift 2
mkdir "$place/over"
mount -t tmpfs tmpfs "$place/over"
cd "$place/over"
mkdir new work root
mount -t overlay -o "lowerdir=$roots,upperdir=new,workdir=work" overlay root
mount -t proc proc root/proc
mount -t tmpfs tmpfs root/tmp
mount --rbind /dev root/dev
mkdir root/out
cp "$place"/in/* root
chroot root sh "$@"
mv root/out/* "$place"
"""


def run_script(
    roots: Sequence[Path],
    place: Path,
    script: str,
    *words: str,
    files: Mapping[str, Path],
) -> None:
    """Run a script of this folder, with files in /; what is in /out comes to PLACE."""
    (place / "in").mkdir()
    for name, file in {**files, script: FOLDER / script}.items():
        shutil.copy(file, place / "in" / name)
    lower = ":".join(map(str, roots))
    argv = ["sh", "-ec", ENTER, "sh", lower, str(place), f"/{script}", *words]
    child.run_child([*child.ALONE, *argv], 300)


def find_package(name: str) -> Path:
    """Return a package, built if need be; the cache is locked."""
    folder = debs.ensure_packages(paths.cache_dir(), Progress())
    return next(folder.glob(f"{name}_*.deb"))


@contextmanager
def run_with_package(
    series: str, package: str, script: str, *words: str, **files: Path
) -> Iterator[Path]:
    """Run a script in the Debian of a kernel, with a package; give what it has left."""
    with ExitStack() as stack:
        with lock_kernel(series) as kernel:
            tree = disk.ensure_tree(kernel, Progress())
            files[f"{package}.deb"] = find_package(package)
            place = stack.enter_context(vm.run_directory(kernel.root))
            run_script([tree.path], place, script, *words, files=files)
        yield place
