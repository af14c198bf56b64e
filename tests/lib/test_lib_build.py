# SPDX-License-Identifier: GPL-2.0-only
"""Ways to build the library: with the system's tools alone, and in another project."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from corelib import ROOT
from installed import EXAMPLES, Installed, header_functions, run_checked
from programs import run_program

SYSTEM = {"PATH": "/usr/bin:/bin"}
# What a person has who has only cloned it.
SOURCES = ("Makefile", "meson.build", "meson_options.txt", "core", "lib", "scripts")
needs_meson = pytest.mark.skipif(
    not Path("/usr/bin/meson").exists(), reason="scripts/setup tests"
)
EXPECTED = "zeroed ahead of use: 32, at once: 4, not zero: 0\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a copy of the sources, without an environment and build directories."""
    top = tmp_path / "clone"
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        top.mkdir(exist_ok=True)
        copy(ROOT / name, top / name)
    (top / "module").mkdir()
    shutil.copytree(ROOT / "module" / "compat", top / "module" / "compat")
    return top


@needs_meson
def test_make_installs_the_same_without_an_environment(
    installed: Installed, clone: Path, tmp_path: Path
) -> None:
    where = (f"DESTDIR={tmp_path}/root", "PREFIX=/elsewhere")
    run_checked("make", "-C", clone, "install-lib", *where, **SYSTEM)
    top_dir, usual = tmp_path / "root/elsewhere", installed.root / "usr/local"
    files, wanted = (
        {p.relative_to(top) for p in top.rglob("*") if not p.is_dir()}
        for top in (top_dir, usual)
    )
    assert files == wanted
    assert "prefix=/elsewhere" in next(top_dir.rglob("bulkmm.pc")).read_text()
    assert not (clone / ".venv").exists()
    assert not [*(clone / "build").rglob("bmm-*")]
    refusal = run_program(["make", "-C", clone, "uninstall-lib"])
    assert refusal.returncode == 2
    assert "from here is not below /usr/local: run make install-lib" in refusal.stderr
    run_checked("make", "-C", clone, "uninstall-lib", *where, **SYSTEM)
    assert not [*(tmp_path / "root").rglob("*")]


@needs_meson
def test_make_says_where_pkg_config_has_to_look(clone: Path, tmp_path: Path) -> None:
    """Below a prefix that it does not search; the lines can be pasted."""
    run = ["make", "-s", "-C", clone, "install-lib", f"PREFIX={tmp_path}/own"]
    first, *lines = run_checked(*run, **SYSTEM).splitlines()
    assert first.startswith("install-lib: ")
    build = "pkg-config --cflags --libs bulkmm && printenv LD_LIBRARY_PATH"
    script = "\n".join([*lines, f"set -e; {build}"])
    flags, library = run_checked("sh", "-c", script).splitlines()
    assert f"{tmp_path}/own" in flags
    assert (Path(library) / "libbulkmm.so").exists()


@needs_meson
@pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="of Debian")
@pytest.mark.parametrize("multiarch", [True, False])
def test_the_library_is_where_debian_looks(
    clone: Path, tmp_path: Path, *, multiarch: bool
) -> None:
    """Without dpkg-dev, Meson would install into lib64."""
    (tools := tmp_path / "tools").mkdir()
    for name in ("sh", "uname", "cut", "sed", *(["dpkg-architecture"] * multiarch)):
        (tools / name).symlink_to(shutil.which(name) or "")
    words = [shutil.which("make"), "-n", "-C", clone, "install-lib"]
    run = run_program(words, env={**os.environ, "PATH": str(tools)}, check=True)
    assert ("--libdir=lib build/install" in run.stdout) is not multiarch


@pytest.mark.parametrize("goal", ["install-lib", "wheel-lib"])
def test_make_names_what_the_library_needs(
    clone: Path, tmp_path: Path, goal: str
) -> None:
    (tools := tmp_path / "tools").mkdir()
    for name in ("cc", "cut", "ninja", "objcopy", "sed", "sh", "uname"):
        (tools / name).symlink_to(shutil.which(name) or "")
    environment = {**os.environ, "PATH": str(tools)}
    words = [shutil.which("make"), "-C", clone, goal]
    result = run_program(words, env=environment)
    assert result.returncode == 2
    assert (
        f"{goal}: no meson: apt-get install gcc libc6-dev meson ninja-build\n"
        in result.stderr
    )
    assert not (clone / "build").exists()


def test_the_build_uses_nothing_newer_than_the_meson_it_asks_for(
    tmp_path: Path,
) -> None:
    meson = (sys.executable, "-m", "mesonbuild.mesonmain", "setup")
    run_checked(*meson, "--fatal-meson-warnings", tmp_path, ROOT)


MESON = """\
project('programs', 'c')
executable('pool', 'pool.c', dependencies: dependency('bulkmm', fallback: 'bulkmm'))
"""


@needs_meson
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_meson_builds_it_as_a_subproject(tmp_path: Path, kind: str) -> None:
    (tmp_path / "meson.build").write_text(MESON)
    (tmp_path / "subprojects").mkdir()
    (tmp_path / "subprojects" / "bulkmm").symlink_to(ROOT)
    shutil.copy(EXAMPLES / "pool.c", tmp_path)
    build = tmp_path / "build"
    options = ("--wrap-mode=nodownload", f"-Ddefault_library={kind}")
    run_checked("meson", "setup", *options, build, tmp_path, **SYSTEM)
    run_checked("meson", "compile", "-C", build, **SYSTEM)
    assert run_checked(build / "pool") == EXPECTED
    needed = "libbulkmm.so.0" in run_checked("readelf", "-d", build / "pool")
    assert needed == (kind == "shared")


CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project(programs C)
include(FetchContent)
FetchContent_Declare(bulkmm GIT_REPOSITORY https://bulkmm.invalid/bulkmm)
FetchContent_MakeAvailable(bulkmm)
foreach(kind bulkmm static)
  add_executable(pool-${kind} pool.c)
  target_link_libraries(pool-${kind} bulkmm::${kind})
endforeach()
"""


def test_cmake_builds_it_as_a_part(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    shutil.copy(EXAMPLES / "pool.c", tmp_path)
    build = tmp_path / "build"
    sources = f"-DFETCHCONTENT_SOURCE_DIR_BULKMM={ROOT}"
    run_checked("cmake", "-S", tmp_path, "-B", build, sources)
    run_checked("cmake", "--build", build)
    for kind in ("bulkmm", "static"):
        program = build / f"pool-{kind}"
        assert run_checked(program) == EXPECTED
        needed = "libbulkmm.so.0" in run_checked("readelf", "-d", program)
        assert needed == (kind == "bulkmm")
    for words in (["libbulkmm.a"], ["-D", "libbulkmm.so"]):
        library = build / "_deps" / "bulkmm-build" / words.pop()
        lines = run_checked("nm", "-g", "--defined-only", *words, library).splitlines()
        functions = {line.split()[2].split("@")[0] for line in lines if " T " in line}
        assert functions == {*header_functions()}, library
