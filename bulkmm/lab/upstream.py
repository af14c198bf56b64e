# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the kernel's own source, built as modules against stock headers.

Debian's kernels are built without most of lib/test_*.c. The one file is taken
out of the source package that the running kernel was built from, kept in the
cache, and built with what it lacks from module/selftest/upstream.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError
from bulkmm.lab import build
from bulkmm.lab.child import ChildError
from bulkmm.lab.paths import PROJECT, content_key, forget_old, made_whole, need_space

if TYPE_CHECKING:
    from pathlib import Path

    from bulkmm.lab.kernels import Kernel
    from bulkmm.lab.progress import Progress

SPACE = 500_000_000  # a source package while one file is taken out
VERSION = re.compile(r"(\d+\.\d+)\.\d+")
SHIM = "module/selftest/upstream"
# the archive is read no further than to the file
EXTRACT = (
    'cd "$1" && apt-get -q -o APT::Sandbox::User=root download "$2=$3" >&2 && '
    'dpkg-deb --fsys-tarfile ./*.deb | tar -xO "./usr/src/$2.tar.xz" | xz -dc | '
    'tar -xO --occurrence=1 "$2/$4" >"$5"'
)


def ensure(kernel: Kernel, name: str, progress: Progress) -> Path:
    """Return the module made of a kernel's lib/NAME.c."""
    file = source(kernel, f"lib/{name}.c", progress)
    shims = [path for path in (PROJECT / SHIM).iterdir() if path.is_file()]
    files = [file, *shims, *build.sources()]
    built = kernel.root.var / "upstream" / f"{kernel.release}-{content_key(files)}"
    if not built.is_dir():
        with progress.step(f"building {name} for {kernel.release}"):
            _build(kernel, file, built, name)
    return built / f"{SHIM}/{name}.ko"


def source(kernel: Kernel, path: str, progress: Progress) -> Path:
    """Return a file of the source of a kernel, fetched if need be."""
    name = path.rpartition("/")[2]
    # all architectures are built from one source
    version = kernel.release.partition("-")[0]
    kept = kernel.root.var / "source" / f"{version}-{name}"
    file = kept / name
    if file.is_file():
        return file
    need_space(SPACE, "the kernel's source package")
    package, version = _package(kernel)
    with progress.step(f"fetching {path} of {package}"), made_whole(kept) as part:
        to = kernel.root.inner(part)
        argv = [to, package, version, path, kernel.root.inner(part / file.name)]
        try:
            kernel.root.run(["sh", "-c", EXTRACT, "sh", *argv], 900)
        except ChildError as error:
            raise BulkmmError(f"no {path} of {package} {version}: {error}") from error
        for deb in part.glob("*.deb"):
            deb.unlink()
        if not (part / file.name).stat().st_size:
            raise BulkmmError(f"{package} {version} holds no {path}")
    return file


def _package(kernel: Kernel) -> tuple[str, str]:
    """Return name and version of the source package of a release."""
    found = VERSION.match(kernel.release)
    if not found:
        raise BulkmmError(f"no source package is known for {kernel.release}")
    package = f"linux-source-{found[1]}"
    said = kernel.root.run(["apt-cache", "madison", package])
    for line in said.splitlines():
        version = line.split("|")[1].strip()
        if version.startswith(f"{found[0]}-"):
            return package, version
    raise BulkmmError(f"the index has no {package} {found[0]}: it cannot be tested")


def _build(kernel: Kernel, file: Path, built: Path, name: str) -> None:
    with made_whole(built) as part:
        for ours in build.sources():
            to = part / ours.relative_to(PROJECT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ours, to)
        shutil.copy(file, part / SHIM / "upstream.c")
        where = kernel.root.inner(part / SHIM)
        make = ["make", "-j2", "-C", kernel.headers, f"M={where}"]
        try:
            kernel.root.run([*make, f"BMM_UPSTREAM={name}", "modules"], 300)
        except ChildError as error:
            raise BulkmmError(
                f"{name} does not build for {kernel.release}:\n{error.output}"
            ) from error
    forget_old(built.parent)
