# SPDX-License-Identifier: GPL-2.0-only
"""Programs outside the tree, built by pkg-config against the installed library."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from corelib import ROOT
from installed import EXAMPLES, output

if TYPE_CHECKING:
    from pathlib import Path

    from installed import Installed

HERE = ROOT / "tests" / "lib"
SAYS = {
    "backends": "clear-streaming ",
    "descriptors": "descriptors published: 65536, wrong: 0\n",
    "populate": "all 268435456 bytes are there\n",
    "pool": "zeroed ahead of use: 32, at once: 4, not zero: 0\n",
}


def test_every_example_is_run() -> None:
    assert sorted(p.stem for p in EXAMPLES.glob("*.c")) == sorted(SAYS)


@pytest.mark.parametrize("link", [[], ["-static"]], ids=["shared", "static"])
@pytest.mark.parametrize("example", SAYS)
def test_an_example_works(
    installed: Installed, tmp_path: Path, example: str, link: list[str]
) -> None:
    source = EXAMPLES / f"{example}.c"
    program = installed.build(source, tmp_path / example, *link)
    dynamic = output("readelf", "-d", program)
    assert ("libbulkmm.so.0" in dynamic) != bool(link)
    assert SAYS[example] in installed.run(program)


def test_the_makefile_of_the_examples_builds_them(
    installed: Installed, tmp_path: Path
) -> None:
    shutil.copytree(
        EXAMPLES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*SAYS)
    )
    output("make", "-C", tmp_path, **installed.environment)
    for example, says in SAYS.items():
        assert says in installed.run(tmp_path / example)


@pytest.mark.parametrize(
    ("compiler", "dialect"),
    [("gcc", "c99"), ("gcc", "c11"), ("gcc", "c2x"), ("clang", "c99")],
)
def test_the_header_needs_nothing_else(
    installed: Installed, tmp_path: Path, compiler: str, dialect: str
) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}: scripts/setup tests")
    strict = [f"-std={dialect}", "-pedantic"]
    program = tmp_path / "header"
    installed.build(HERE / "header.c", program, *strict, compiler=compiler)
    installed.run(program)


@pytest.mark.parametrize("link", [[], ["-static"]], ids=["shared", "static"])
def test_cpp_can_use_it(installed: Installed, tmp_path: Path, link: list[str]) -> None:
    strict = ["-std=c++17", "-pedantic", *link]
    program = tmp_path / "use"
    installed.build(HERE / "use.cpp", program, *strict, compiler="g++")
    assert installed.run(program) == "1111\n"


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_cpp_header_can_be_used(
    installed: Installed, tmp_path: Path, compiler: str
) -> None:
    strict = ["-std=c++20", "-pedantic"]
    program = tmp_path / "spans"
    installed.build(HERE / "spans.cpp", program, *strict, compiler=compiler)
    assert installed.run(program) == "1111\n"


def test_threads_use_it_while_another_one_selects(
    installed: Installed, tmp_path: Path
) -> None:
    source = ROOT / "tests" / "core" / "concurrent.c"
    program = installed.build(source, tmp_path / "concurrent")
    assert installed.run(program) == "0 wrong\n"
