# SPDX-License-Identifier: GPL-2.0-only
"""The Rust crates, built without a network, and their declarations beside C's."""

import os
import re
import shutil
from pathlib import Path

import pytest
from corelib import ROOT
from installed import HEADERS, Installed, header_functions, run_checked
from programs import run_program

CRATES = ROOT / "lib" / "rust"
STRUCTURES = (
    *("bmm_file", "bmm_image", "bmm_memory"),
    *("bmm_options", "bmm_range", "bmm_report"),
)

pytestmark = pytest.mark.skipif(
    not (shutil.which("cargo") and shutil.which("rustc")),
    reason="needs cargo and rustc: apt install cargo",
)


def run_cargo(installed: Installed, *words: str) -> str:
    result = run_program(
        ["cargo", *words],
        timeout=600,
        cwd=CRATES,
        env={
            **os.environ,
            **installed.environment,
            "CARGO_TARGET_DIR": str(ROOT / "build" / "rust"),
            "CARGO_NET_OFFLINE": "true",
            "RUSTFLAGS": "-Dwarnings",
        },
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_their_own_tests_and_examples_pass(installed: Installed) -> None:
    report = run_cargo(installed, "test", "--workspace")
    assert len(re.findall(r"ok\. [1-9]\d* passed; 0 failed", report)) == 2


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("rustfmt", ["fmt", "--all", "--check"]),
        ("cargo-clippy", ["clippy", "--workspace", "--all-targets"]),
    ],
)
def test_a_tool_finds_nothing(
    installed: Installed, tool: str, words: list[str]
) -> None:
    if not shutil.which(tool):
        pytest.skip(f"needs {tool}")
    run_cargo(installed, *words)


def test_the_declarations_are_those_of_c(installed: Installed, tmp_path: Path) -> None:
    text = (CRATES / "sys/src/lib.rs").read_text()
    declared = re.findall(r"pub fn (bmm_\w+)\(", text)
    assert sorted(declared) == header_functions()
    layout = run_cargo(
        installed, "run", "-q", "-p", "bulkmm-sys", "--example", "layout"
    )
    lines = []
    for line in layout.splitlines():
        name, _, field = line.split()[0].partition(".")
        expression = (
            f"offsetof(struct {name}, {field})" if field else f"sizeof(struct {name})"
        )
        lines.append(f'printf("{line.split()[0]} %zu\\n", {expression});')
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <bulkmm.h>\n"
        f"int main(void) {{ {' '.join(lines)} return 0; }}\n"
    )
    assert run_checked(installed.build(source, tmp_path / "layout")) == layout
    for name in STRUCTURES:
        text = "".join(header.read_text() for header in HEADERS)
        body = text.split(f"\nstruct {name} {{", 1)[1].split("};", 1)[0]
        fields = re.findall(r"(\w+)(?:\[\w+\]|\)\([^;]*\))?;", body)
        assert fields == re.findall(rf"^{name}\.(\w+) ", layout, re.MULTILINE)


def test_the_version_is_the_librarys(installed: Installed) -> None:
    match = re.search(
        r'^version = "(.*?)"', (CRATES / "Cargo.toml").read_text(), re.MULTILINE
    )
    assert match
    assert match[1] == installed.flags("--modversion")[0]
