# SPDX-License-Identifier: GPL-2.0-only
"""The Rust crate, built without a network, and its structures beside C's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from corelib import NATIVE, ROOT

if TYPE_CHECKING:
    from pathlib import Path

CRATE = ROOT / "rust"
TARGET = ROOT / "build" / "rust"

pytestmark = pytest.mark.skipif(
    not (shutil.which("cargo") and shutil.which("rustc")),
    reason="needs cargo and rustc: apt install cargo",
)


def cargo(*words: str) -> str:
    library = str(NATIVE / "lib")
    done = subprocess.run(
        ["cargo", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=CRATE,
        env={
            **os.environ,
            "BULKMM_LIB_DIR": library,
            "LD_LIBRARY_PATH": library,
            "CARGO_TARGET_DIR": str(TARGET),
            "CARGO_NET_OFFLINE": "true",
            "RUSTFLAGS": "-Dwarnings",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests_pass() -> None:
    said = cargo("test", "--offline", "--lib")
    assert re.search(r"test result: ok\. 7 passed; 0 failed", said)


def test_its_example_compiles() -> None:
    assert "1 passed" in cargo("test", "--offline", "--doc")


def test_it_is_formatted() -> None:
    if not shutil.which("rustfmt"):
        pytest.skip("needs rustfmt")
    cargo("fmt", "--check")


def test_its_structures_are_those_of_c(tmp_path: Path) -> None:
    said = cargo("run", "-q", "--offline", "--example", "layout")
    lines = []
    for line in said.splitlines():
        name, _, field = line.split()[0].partition(".")
        what = (
            f"offsetof(struct {name}, {field})" if field else f"sizeof(struct {name})"
        )
        lines.append(f'printf("{line.split()[0]} %zu\\n", {what});')
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <bulkmm.h>\n"
        f"int main(void) {{ {' '.join(lines)} return 0; }}\n"
    )
    program = tmp_path / "layout"
    command = ["cc", "-I", ROOT / "core", source, "-o", program]
    subprocess.run(command, check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    assert done.stdout == said
    header = (ROOT / "core" / "bulkmm.h").read_text()
    for name in ("bmm_options", "bmm_report"):
        body = header.split(f"\nstruct {name} {{", 1)[1].split("};", 1)[0]
        fields = re.findall(r"(\w+)(?:\)\([^;]*\))?;", body)
        assert fields == re.findall(rf"^{name}\.(\w+) ", said, re.MULTILINE)


def test_its_version_is_the_librarys() -> None:
    wanted = re.search(r"version: '(.*?)'", (ROOT / "meson.build").read_text())
    held = re.search(
        r'^version = "(.*?)"', (CRATE / "Cargo.toml").read_text(), re.MULTILINE
    )
    assert wanted
    assert held
    assert held[1] == wanted[1]
