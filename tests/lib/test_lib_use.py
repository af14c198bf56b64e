# SPDX-License-Identifier: GPL-2.0-only
"""Programs outside the tree, built by pkg-config against the installed library."""

import os
import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from corelib import ROOT
from installed import EXAMPLES, Installed, run_checked
from programs import run_program

FOLDER = ROOT / "tests" / "lib"
SKIP = 77  # what the machine has not
CLIENT = "take"  # run by command/test_pool_clients.py, beside its server
OUTPUTS = {
    "backends": "clear-streaming ",
    "descriptors": "descriptors published: 65536, wrong: 0\n",
    "populate": "all 268435456 bytes are there\n",
    "pool": "zeroed ahead of use: 32, at once: 4, not zero: 0\n",
    "pin": "134217728 bytes are pinned, in pieces of 16777216",
    "register": "8 buffers of 16777216 bytes are registered",
}


def test_every_example_is_run() -> None:
    assert {p.stem for p in EXAMPLES.glob("*.c")} == {*OUTPUTS, CLIENT}


@pytest.mark.parametrize("example", OUTPUTS)
def test_an_example_works(installed: Installed, tmp_path: Path, example: str) -> None:
    source = EXAMPLES / f"{example}.c"
    program = installed.build(source, tmp_path / example, "-static")
    assert "libbulkmm" not in run_checked("readelf", "-d", program)
    result = run_program([program])
    if (example, result.returncode) == ("register", SKIP):
        pytest.skip(f"no io_uring here: {result.stderr.strip()}")
    assert result.returncode == 0, result.stdout + result.stderr
    assert OUTPUTS[example] in result.stdout


def test_the_makefile_of_the_examples_builds_them(
    installed: Installed, tmp_path: Path
) -> None:
    shutil.copytree(
        EXAMPLES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*OUTPUTS)
    )
    run_checked("make", "-C", tmp_path, **installed.environment)
    for example, expected in OUTPUTS.items():
        assert "libbulkmm.so.0" in run_checked("readelf", "-d", tmp_path / example)
        if example != "register":  # runs in the test above
            assert expected in installed.run(tmp_path / example)


CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project(programs C)
find_package(bulkmm ${wanted} REQUIRED)
add_executable(shared pool.c)
target_link_libraries(shared bulkmm::bulkmm)
add_executable(static pool.c)
target_link_libraries(static -static bulkmm::static)
"""


def test_cmake_finds_it(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    shutil.copy(EXAMPLES / "pool.c", tmp_path)
    root = f"-DCMAKE_PREFIX_PATH={installed.root / 'usr/local'}"
    build = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", root]
    run_checked(*build, "-Dwanted=0.1")
    run_checked("cmake", "--build", tmp_path / "build")
    for program in ("shared", "static"):
        path = tmp_path / "build" / program
        assert ("libbulkmm.so.0" in run_checked("readelf", "-d", path)) == (
            program == "shared"
        )
        assert run_checked(path) == OUTPUTS["pool"]
    for wanted in ("0.99", "1.0"):
        with pytest.raises(
            AssertionError, match=rf"version: {re.escape(metadata.version('bulkmm'))}"
        ):
            run_checked(*build, f"-Dwanted={wanted}")


@pytest.mark.parametrize(
    ("compiler", "dialect"),
    [
        *(("gcc", "c99"), ("gcc", "c11"), ("gcc", "c2x"), ("clang", "c99")),
        *(("g++", "c++11"), ("clang++", "c++17")),
    ],
)
def test_the_header_needs_nothing_else(
    installed: Installed, tmp_path: Path, compiler: str, dialect: str
) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}: scripts/setup tests")
    strict = [f"-std={dialect}", "-pedantic", *["-xc++"] * ("+" in dialect)]
    program = tmp_path / "header"
    installed.build(FOLDER / "header.c", program, *strict, compiler=compiler)
    installed.run(program)


MISUSE = {
    "bmm_stamp(at, &image, 1);": ("unused-result", ["gcc", "clang"]),
    "if (bmm_image_init(NULL, at, NULL, 64)) return 1;": (
        "nonnull",
        ["gcc", "clang"],
    ),
    "bmm_clear(NULL, 1);": ("nonnull", ["gcc"]),
    "bmm_copy(at, from, 65);": ("stringop-overread", ["gcc"]),
}


@pytest.mark.parametrize(
    ("call", "warning", "compiler"),
    [
        (call, warning, compiler)
        for call, (warning, compilers) in MISUSE.items()
        for compiler in compilers
    ],
)
def test_a_compiler_sees_misuse(
    installed: Installed, tmp_path: Path, call: str, warning: str, compiler: str
) -> None:
    (source := tmp_path / "misuse.c").write_text(
        "#include <bulkmm.h>\nint main(void)\n{\nstruct bmm_image image = { 0 };\n"
        "uint64_t at[9] = { 0 }, from[8] = { 0 };\n(void)at; (void)from; (void)image;\n"
        f"bmm_clear(NULL, 0);\nbmm_copy(NULL, NULL, 0);\n{call}\nreturn 0;\n}}\n"
    )
    with pytest.raises(AssertionError, match=rf"\[-Werror(=|,-W){warning}\]"):
        installed.build(source, tmp_path / "misuse", compiler=compiler)


def test_the_cpp_header_says_which_language_it_needs(
    installed: Installed, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"bulkmm\.hpp needs C\+\+20"):
        installed.build(
            FOLDER / "spans.cpp", tmp_path / "x", "-std=c++17", compiler="g++"
        )


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_cpp_header_can_be_used(
    installed: Installed, tmp_path: Path, compiler: str
) -> None:
    strict = ["-std=c++20", "-pedantic", "-Wshadow"]
    program = tmp_path / "spans"
    installed.build(FOLDER / "spans.cpp", program, *strict, compiler=compiler)
    assert installed.run(program) == "11111111\n"


SANITIZED = {
    "address": {
        "good": "",
        "write": "heap-buffer-overflow",
        "read": "heap-buffer-overflow",
    },
    "memory": {"good": "", "unknown": "use-of-uninitialized-value"},
    "thread": {
        "good": "",
        "race-none": "",
        **dict.fromkeys(
            (
                *("race-clear", "race-clear-streaming", "race-clear-parallel"),
                *("race-copy", "race-move", "race-fill", "race-read"),
            ),
            "data race",
        ),
    },
}


@pytest.mark.parametrize(
    ("compiler", "kind"),
    [
        *(("gcc", "address"), ("clang", "address"), ("clang", "memory")),
        *(("gcc", "thread"), ("clang", "thread")),
    ],
)
def test_a_sanitizer_sees_what_the_library_reads_and_writes(
    installed: Installed, tmp_path: Path, compiler: str, kind: str
) -> None:
    program, strict = (
        tmp_path / "sanitized",
        [f"-fsanitize={kind}", "-g", "-Wcast-qual"],
    )
    installed.build(FOLDER / "sanitized.c", program, *strict, compiler=compiler)
    for mode, diagnostic in SANITIZED[kind].items():
        result = run_program(
            ["setarch", "-R", program, mode],  # ThreadSanitizer needs that
            env={
                **os.environ,
                **installed.environment,
                "ASAN_OPTIONS": "detect_leaks=0",
            },
        )
        assert bool(result.returncode) == bool(diagnostic), mode + result.stderr
        assert diagnostic in result.stderr
