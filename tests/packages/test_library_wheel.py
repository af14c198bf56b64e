# SPDX-License-Identifier: GPL-2.0-only
"""The library's wheels: installed where there is no compiler, and for musl."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from corelib import ROOT
from programs import run_program

BUILD = (sys.executable, ROOT / "scripts" / "librarywheel.py")
PROGRAM = """
import libbulkmm, numpy
array = numpy.empty(64 << 20, dtype=numpy.uint8)
print(libbulkmm.populate(array).nbytes >= array.nbytes, libbulkmm.__file__)
"""
OPENS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const char *(*version)(void);

	if (!library)
		return puts(dlerror()), 1;
	version = (const char *(*)(void))dlsym(library, "bmm_version");
	return puts(version()) < 0;
}
"""


def test_pip_install_and_one_line_populate_an_array(tmp_path: Path) -> None:
    """With no compiler and no other program to be found."""
    make = ("make", "-s", "-C", ROOT, "wheel-lib", f"WHEELS={tmp_path}")
    run_program(make, check=True, timeout=300)
    (wheel,) = tmp_path.glob("libbulkmm-*-py3-none-manylinux_2_*.whl")
    python = tmp_path / "venv/bin/python"
    venv = [sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"]
    subprocess.run(venv, check=True)
    pip = [sys.executable, "-m", "pip", "--python", python]
    install = [*pip, "-q", "--disable-pip-version-check", "install"]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "BULKMM_LIBRARY")
    } | {"PATH": "/nowhere", "PIP_ONLY_BINARY": ":all:", "PIP_NO_COMPILE": "no"}
    subprocess.run([*install, wheel, "numpy"], check=True, env=environment)
    result = run_program([python, "-c", PROGRAM], env=environment, cwd=tmp_path)
    assert result.stdout.startswith(f"True {tmp_path}"), result


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="scripts/setup tests")
def test_a_musl_program_opens_the_library_of_its_wheel(tmp_path: Path) -> None:
    run_program([*BUILD, "--musl", "--out", tmp_path], check=True, timeout=300)
    (wheel,) = tmp_path.glob("libbulkmm-*-py3-none-musllinux_1_2_*.whl")
    library = zipfile.ZipFile(wheel).extract("libbulkmm/libbulkmm.so.0", tmp_path)
    (tmp_path / "opens.c").write_text(OPENS)
    program = tmp_path / "opens"
    run_program(["musl-gcc", tmp_path / "opens.c", "-o", program], check=True)
    assert run_program([program, library], check=True).stdout.count(".") == 2
