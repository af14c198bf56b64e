# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the kernel's own source, built as modules against stock headers.

Debian's kernels lack most of lib/test_*.c. A test is extracted from the running
kernel's source package, cached, and built unchanged; lab/guest/module/upstream
supplies what a stock kernel lacks.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from bulkmm.control import requirements
from bulkmm.shell.child import explain_failure
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import build, kernels
from lab.machine.kernels import Kernel
from lab.paths import PROJECT, content_key, copy_sources, ensure_directory, need_space

SPACE = 500_000_000  # a source package while a test is extracted
VERSION = re.compile(r"\d+\.\d+\.\d+(?=\+)")  # older releases name none
SHIM = "lab/guest/module/upstream"
# files of lib/ that a test consists of; the first is compiled
TESTS = {
    "test_hmm": ("test_hmm.c", "test_hmm_uapi.h"),
    "test_vmalloc": ("test_vmalloc.c",),
}
EXTRACT = (
    'cd "$1" && dpkg-deb --fsys-tarfile "$2" | tar -xO "./usr/src/$3.tar.xz" | '
    'xz -dc | { shift 3; tar -xo "$@"; }'
)
# stop reading the archive after the last of the files
FILES = ("--occurrence=1", "--strip-components=2")


def ensure_module(kernel: Kernel, name: str, progress: Progress) -> Path:
    """Return the module built from a kernel's lib/NAME.c."""
    files = fetch_source(kernel, name, progress)
    shims = [path for path in (PROJECT / SHIM).iterdir() if path.is_file()]
    build_key = content_key(
        [*shims, *build.list_sources(), Path(__file__), Path(build.__file__)]
    )
    key = content_key(files, build_key)
    place = kernel.root.var / "upstream" / f"{kernel.release}-{key}"

    def make(part: Path) -> None:
        copy_sources(build.list_sources(), part)
        test, *headers = files
        shutil.copy(test, part / SHIM / "upstream.c")
        for header in headers:
            shutil.copy(header, part / SHIM)
        build.build_modules(kernel, part / SHIM, name, f"BMM_UPSTREAM={name}")

    step = f"building {name} for {kernel.release}"
    return ensure_directory(place, step, progress, make) / f"{SHIM}/{name}.ko"


def fetch_source(kernel: Kernel, name: str, progress: Progress) -> list[Path]:
    """Return the source files of a kernel's test, fetched if necessary."""
    # all architectures are built from one source
    version = kernel.release.partition("-")[0]
    place = kernel.root.var / "source" / f"{version}-{name}.c"
    members = [f"lib/{file}" for file in TESTS[name]]
    step = f"fetching {name} of {kernel.release}"
    ensure_directory(
        place, step, progress, lambda part: extract_source(kernel, part, FILES, members)
    )
    return [place / file for file in TESTS[name]]


def extract_source(
    kernel: Kernel, to: Path, options: Sequence[str], members: Sequence[str] = ()
) -> None:
    """Unpack a kernel's source, or part of it."""
    need_space(SPACE, "the kernel's source package")
    package, version = source_package(kernel)
    wanted, root = [f"{package}/{member}" for member in members], kernel.root
    first = f"{members[0]} of " if members else ""
    with (
        explain_failure(f"no {first}{package} {version}"),
        kernels.fetch_packages(root, [f"{package}={version}"], to / "debs") as (deb,),
    ):
        argv = [root.inner(to), root.inner(deb), package, *options, *wanted]
        root.run(["sh", "-c", EXTRACT, "sh", *argv], 900)


def source_package(kernel: Kernel) -> tuple[str, str]:
    """Return name and version of a release's source package."""
    package = f"linux-source-{requirements.series_of(kernel.release)}"
    match = VERSION.match(kernel.release)
    header_versions = _versions(kernel, f"linux-headers-{kernel.release}")
    for version in _versions(kernel, package):
        if version in header_versions or (match and version.startswith(f"{match[0]}-")):
            return package, version
    raise BulkmmError(
        f"the index has no {package} of {kernel.release}: it cannot be tested"
    )


def _versions(kernel: Kernel, package: str) -> list[str]:
    """Return the versions of a package that the index has."""
    output = kernel.root.run(["apt-cache", "madison", package])
    return [line.split("|")[1].strip() for line in output.splitlines()]
