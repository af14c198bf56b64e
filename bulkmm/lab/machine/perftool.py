# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's perf, for guests: fetched when a scenario needs it.

Installed in the root it would bring forty packages, including Python and Perl. A
guest needs only the program and the libraries it links, in one directory.
"""

import json
import re
import shutil
from pathlib import Path

from bulkmm.errors import BulkmmError
from bulkmm.lab.child import explained
from bulkmm.lab.machine.root import SUITES, Root
from bulkmm.lab.paths import made_whole
from bulkmm.lab.progress import Progress

# from the newest kernel: "bench mem mmap" came after 6.12
PACKAGE = f"linux-perf/{SUITES[-1]}"
DIRECTORY = "lib/perf"  # in the guest
OFFERED = 'apt-cache show "$1" | sed -n "s/^Version: //p"'
NEEDED = 'apt-get -q -s install --no-install-recommends "$1"'
FETCH = (
    'cd "$1" && shift && apt-get -q -o APT::Sandbox::User=root download "$@" && '
    "for deb in *.deb; do dpkg-deb -x $deb tree || exit 1; done"
)
LIBRARIES = (
    'cd "$1" && LD_LIBRARY_PATH=$(echo $PWD/usr/lib/*-linux-gnu) ldd usr/bin/perf'
)
COPY = 'to=$1 && shift && cp -L "$@" "$to"'


def ensure(root: Root, progress: Progress) -> Path:
    """Return a tree with perf, to overlay on the guest's."""
    made = root.var / "perf"
    if not made.is_dir():
        with (
            progress.step("fetching perf"),
            made_whole(made) as part,
            explained("perf could not be fetched"),
        ):
            _fill(root, part)
    return made


def version(tree: Path) -> str:
    """Return the version of perf's package."""
    said = json.loads((tree / "version.json").read_text(encoding="utf-8"))
    return str(said["version"])


def _fill(root: Root, part: Path) -> None:
    fetched = part / "fetched"
    fetched.mkdir()
    # by version, not suite: that would upgrade the root's libraries too
    offered = root.run(["sh", "-c", OFFERED, "sh", PACKAGE], 60).split()
    package = f"{PACKAGE.partition('/')[0]}={offered[0]}"
    needed = root.run(["sh", "-c", NEEDED, "sh", package], 60)
    found = dict(re.findall(r"^Inst (\S+) .*?\((\S+)", needed, re.MULTILINE))
    # only libraries: most other dependencies are for scripts
    names = [name for name in found if name.startswith("lib")]
    root.run(["sh", "-c", FETCH, "sh", root.inner(fetched), package, *names], 300)
    tree = fetched / "tree"
    said = root.run(["sh", "-c", LIBRARIES, "sh", root.inner(tree)])
    if missing := re.search(r"(\S+) => not found", said):
        raise BulkmmError(f"perf needs {missing[1]}, which no package brought")
    libraries = sorted(set(re.findall(r"(/\S+\.so\S*) \(0x", said)))
    (part / DIRECTORY).mkdir(parents=True)
    wanted = [root.inner(tree / "usr/bin/perf"), *libraries]
    root.run(["sh", "-c", COPY, "sh", root.inner(part / DIRECTORY), *wanted])
    held = {"version": found["linux-perf"]}
    (part / "version.json").write_text(json.dumps(held), encoding="utf-8")
    shutil.rmtree(fetched)
