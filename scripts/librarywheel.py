# SPDX-License-Identifier: GPL-2.0-only
"""Builds the wheel of the library's Python package, with the library in it.

For glibc: its tag, found by auditwheel, names the oldest that will do. With --musl,
for Alpine and others, built by musl-gcc.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "lib" / "python"
BIN = Path(sys.executable).parent
MUSL_TAG = "musllinux_1_2"  # the oldest that Python's tags know besides 1_1
PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")


def run_command(*words: object) -> None:
    """Run a command; its output is shown if it fails."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        [str(word) for word in words],
        env={**os.environ, "PATH": path},
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    if result.returncode:
        sys.exit(f"librarywheel: {words[0]} failed:\n{result.stdout}{result.stderr}")


def build_library(*, musl: bool) -> Path:
    """Return the shared library, built for one C library or the other."""
    folder = ROOT / "build" / ("wheel-musl" if musl else "wheel-native")
    options = []
    if musl:
        # musl-gcc leaves out where <linux/…> is on Debian
        places = ("/usr/include", f"/usr/include/{platform.machine()}-linux-gnu")
        words = " ".join(f"-idirafter{place}" for place in places)
        options = [f"-Dc_args={words}"]
        os.environ["CC"] = "musl-gcc"
    if not (folder / "build.ninja").exists():
        run_command("meson", "setup", *options, folder)
    run_command("meson", "compile", "-C", folder, "bulkmm:shared_library")
    return folder / "lib" / "libbulkmm.so.0"


def build_wheel(out: Path, *, musl: bool) -> None:
    """Put the wheel into a directory, in place of one that is there."""
    library = build_library(musl=musl)
    with tempfile.TemporaryDirectory() as scratch:
        source, raw = Path(scratch) / "source", Path(scratch) / "raw"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        run_command("strip", "-o", source / "libbulkmm" / library.name, library)
        tag = f"--build-option=--plat-name={MUSL_TAG}_{platform.machine()}"
        options = ["--config-settings", tag] if musl else []
        run_command(*PIP, "wheel", "--no-deps", *options, "--wheel-dir", raw, source)
        (wheel,) = raw.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        if musl:
            shutil.copy(wheel, out)
        else:
            run_command("auditwheel", "repair", "--plat", "auto", "-w", out, wheel)


def main() -> None:
    """Build what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheel")
    parser.add_argument("--musl", action="store_true", help="for musl, not glibc")
    arguments = parser.parse_args()
    build_wheel(arguments.out, musl=arguments.musl)


if __name__ == "__main__":
    main()
