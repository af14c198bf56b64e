# SPDX-License-Identifier: GPL-2.0-only
"""The project's Debian packages, built in their own Debian root.

That root has lintian and what debian/control requires; the lab's root stays
small. The sources are staged, so that a build leaves nothing in the checkout and
another version can be built from them.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from bulkmm.shell.child import explain_failure
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import root as roots
from lab.machine.root import SUITES, DebianRoot
from lab.paths import PROJECT, content_key, copy_sources, ensure_directory

CONTROL = PROJECT / "debian" / "control"
CHANGELOG = PROJECT / "debian" / "changelog"
TOOLS = ("build-essential", "lintian")
INSTALLED = ("dkms", "dracut-core", "initramfs-tools")  # with these: tests/packages
# all sources of the packages and their build
PARTS = (
    "LICENSE", "LICENSES", "README.md", "bulkmm", "core", "debian",
    "docs/abi.md", "docs/command.md", "docs/install.md", "docs/limits.md",
    "lib", "meson.build", "meson_options.txt", "module", "pyproject.toml", "scripts",
)  # fmt: skip
CRATE = PROJECT / "lib" / "rust"  # no package has it, and Cargo builds in it
BUILD_OUTPUT = shutil.ignore_patterns(
    "*.o", "*.ko", "*.mod", "*.mod.c", "*.cmd", "*.pyc", "__pycache__",
    "Module.symvers", "modules.order",
)  # fmt: skip
# files that name the version
VERSIONS = ("debian/changelog", "pyproject.toml")
HEADER = "core/bulkmm.h"  # in three lines; Meson and the module have it from there
# the project has no mail address that lintian accepts
BUILD = (
    'cd "$1/bulkmm" && dpkg-buildpackage -b -us -uc && cd .. && '
    "lintian --fail-on error,warning --allow-root "
    "--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog *.changes"
)
LIMIT = 600


def read_field(name: str) -> list[str]:
    """Return all packages that a field of debian/control names."""
    text = CONTROL.read_text(encoding="utf-8")
    values = re.findall(rf"^{name}:((?:.*\n)(?:[ \t].*\n)*)", text, re.MULTILINE)
    words = [word.strip() for part in values for word in part.split(",")]
    plain = [re.sub(r" *[(|].*", "", word) for word in words]
    return [word for word in plain if word and not word.startswith("$")]


def read_version() -> str:
    """Return the version that would be built."""
    text = CHANGELOG.read_text(encoding="utf-8")
    match = re.match(r"bulkmm \((.+?)\)", text)
    if not match:
        raise BulkmmError(f"{CHANGELOG}: the first line names no version")
    return match[1]


def ensure_packages(cache: Path, progress: Progress, wanted: str = "") -> Path:
    """Return a directory with the packages, of this or another version."""
    wanted = wanted or read_version()
    builder = ensure_builder(cache, progress)

    def make(part: Path) -> None:
        _stage(part / "bulkmm", wanted)
        with explain_failure("the packages do not build", whole=True):
            output = builder.run(["sh", "-ec", BUILD, "sh", builder.inner(part)], LIMIT)
        (part / "output").write_text(output, encoding="utf-8")
        shutil.rmtree(part / "bulkmm")

    place = (
        builder.path / "srv" / f"{wanted}-{content_key([*_sources(), Path(__file__)])}"
    )
    return ensure_directory(place, f"building the packages {wanted}", progress, make)


def list_packages(folder: Path) -> list[Path]:
    """Return the packages in a directory, except debugging symbols."""
    return sorted(deb for deb in folder.glob("*.deb") if "-dbgsym_" not in deb.name)


def ensure_builder(cache: Path, progress: Progress) -> DebianRoot:
    """Return the Debian root that builds packages, and has what they work with."""
    names = [*read_field("Build-Depends"), *TOOLS, *INSTALLED]
    # a virtual package with a version, which apt cannot install by this name
    names = ["debhelper" if n == "debhelper-compat" else n for n in names]
    builder = DebianRoot(cache / f"packaging-{content_key([], *SUITES, *names)}")
    return roots.install_root(builder, names, "the root that builds packages", progress)


def _sources() -> list[Path]:
    files = []
    for name in PARTS:
        top = PROJECT / name
        files += [p for p in top.rglob("*") if p.is_file()] if top.is_dir() else [top]
    left_out = BUILD_OUTPUT("", [file.name for file in files])
    return [
        file
        for file in files
        if file.name not in left_out
        and "__pycache__" not in file.parts
        and CRATE not in file.parents
    ]


def _stage(to: Path, wanted: str) -> None:
    """Copy the sources, changed to the wanted version."""
    copy_sources(_sources(), to)
    for name in VERSIONS:
        text = (to / name).read_text(encoding="utf-8")
        # the first match in each file is the project's own
        text = text.replace(read_version(), wanted, 1)
        (to / name).write_text(text, encoding="utf-8")
    text = (to / HEADER).read_text(encoding="utf-8")
    for part, number in zip(
        ("MAJOR", "MINOR", "PATCH"), wanted.split("."), strict=True
    ):
        text = re.sub(rf"(_VERSION_{part}) \d+", rf"\1 {number}", text)
    (to / HEADER).write_text(text, encoding="utf-8")
    script = str(PROJECT / "scripts" / "commandpages.py")
    options = ["--installed", "--version", wanted, "--out", str(to / "share")]
    subprocess.run([sys.executable, script, *options], check=True)
