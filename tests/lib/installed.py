# SPDX-License-Identifier: GPL-2.0-only
"""libbulkmm as it is installed, in a root of its own, and programs that use it."""

import os
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from corelib import ROOT
from programs import run_program

HEADERS = (ROOT / "core/bulkmm.h", ROOT / "lib/bulkmm-populate.h")
EXAMPLES = ROOT / "lib" / "examples"
STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", "-pthread")


def header_functions() -> list[str]:
    """Return what bulkmm.h declares: names before a parenthesis."""
    text = "".join(header.read_text() for header in HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return sorted(re.findall(r"\b(bmm_\w+)\(", text))


def run_checked(*command: object, **more: str) -> str:
    """Run a command that must succeed, and return what it printed."""
    result = run_program(command, timeout=300, env={**os.environ, **more})
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


@dataclass(frozen=True)
class Installed:
    """What "meson install" put into a root."""

    root: Path

    @cached_property
    def environment(self) -> dict[str, str]:
        """Return what lets pkg-config and the loader find it."""
        pc = next(self.root.rglob("bulkmm.pc"))
        return {
            "PKG_CONFIG_PATH": str(pc.parent),
            "PKG_CONFIG_SYSROOT_DIR": str(self.root),
            "LD_LIBRARY_PATH": str(pc.parents[1]),
        }

    def library(self, name: str) -> Path:
        """Return the path of a library."""
        return next(self.root.rglob(name))

    def flags(self, *options: str) -> list[str]:
        """Return what pkg-config says."""
        text = run_checked("pkg-config", *options, "bulkmm", **self.environment)
        return text.split()

    def build(
        self, source: Path, program: Path, *options: str, compiler: str = "gcc"
    ) -> Path:
        """Compile a program outside the tree, with what pkg-config says."""
        static = ["--static"] if "-static" in options else []
        cflags, libs = self.flags("--cflags"), self.flags("--libs", *static)
        run_checked(compiler, *STRICT, *options, *cflags, source, "-o", program, *libs)
        return program

    def run(self, program: Path, **more: str) -> str:
        """Run a program with this library."""
        return run_checked(program, **self.environment, **more)


def install_build(build: Path, root: Path) -> Installed:
    """Install what a build directory holds."""
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    run_checked(*meson, "install", "-C", build, "--destdir", root, "--no-rebuild")
    return Installed(root)
