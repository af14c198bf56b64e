# SPDX-License-Identifier: GPL-2.0-only
"""The library built for arm64 by a cross compiler, and used under QEMU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import test_core_arm64
from installed import EXAMPLES, Installed, header_functions, install, output

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = test_core_arm64.pytestmark


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    test_core_arm64.build()
    return install(test_core_arm64.CROSS, tmp_path_factory.mktemp("arm64"))


def test_exports_are_the_functions_of_the_header(crossed: Installed) -> None:
    library = crossed.library("libbulkmm.so.0")
    said = output("aarch64-linux-gnu-nm", "-D", "--defined-only", library)
    exported = [line.split()[2] for line in said.splitlines() if " T " in line]
    assert sorted(exported) == [f"{n}@@BULKMM_0.1" for n in header_functions()]


@pytest.mark.parametrize("link", [[], ["-static"]], ids=["shared", "static"])
def test_the_examples_work(
    crossed: Installed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    link: list[str],
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", crossed.environment["LD_LIBRARY_PATH"])
    monkeypatch.setenv("BULKMM_CLEAR", "stp")
    gcc = "aarch64-linux-gnu-gcc"
    said = []
    for name in ("backends", "descriptors", "pool"):
        source = EXAMPLES / f"{name}.c"
        program = crossed.build(source, tmp_path / name, *link, compiler=gcc)
        said += test_core_arm64.run(str(program), "max")
    assert any(re.match(r"clear .*\[stp\]", line) for line in said)
    assert "descriptors published: 65536, wrong: 0" in said
    assert "zeroed ahead of use: 32, at once: 4, not zero: 0" in said
