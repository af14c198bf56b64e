# SPDX-License-Identifier: GPL-2.0-only
"""A script in a Debian whose roots lie below it: what it writes is forgotten."""

from collections.abc import Sequence
from pathlib import Path

from bulkmm.shell import child

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


def run_script(roots: Sequence[Path], place: Path, script: str, *words: str) -> None:
    """Run a script of PLACE/in, whose files are in / there; /out comes to PLACE."""
    lower = ":".join(map(str, roots))
    argv = ["sh", "-ec", ENTER, "sh", lower, str(place), f"/{script}", *words]
    child.run_child([*child.ALONE, *argv], 300)
