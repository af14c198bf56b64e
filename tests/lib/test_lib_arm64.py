# SPDX-License-Identifier: GPL-2.0-only
"""The library built for arm64 by a cross compiler, and used under QEMU."""

import re
from pathlib import Path

import pytest
import test_core_arm64
from corelib import disassemble_object
from installed import EXAMPLES, Installed, install_build

pytestmark = test_core_arm64.pytestmark


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    test_core_arm64.build_arm64()
    return install_build(test_core_arm64.CROSS, tmp_path_factory.mktemp("arm64"))


@pytest.mark.parametrize(
    ("cpu", "expected"), [("max", "0 0"), ("cortex-a57", "-95 -95")]
)
def test_persisting_fails_on_a_cpu_without_dc_cvap(
    crossed: Installed, tmp_path: Path, cpu: str, expected: str
) -> None:
    (source := tmp_path / "unsupported.c").write_text(
        "#include <bulkmm.h>\n#include <stdio.h>\nint main(void)\n{\n"
        'static char at[300];\nprintf("%d %d\\n", bmm_persist(at + 1, 299),'
        " bmm_persist(NULL, 0));\nreturn 0;\n}\n"
    )
    options = {"compiler": "aarch64-linux-gnu-gcc"}
    program = crossed.build(source, tmp_path / "unsupported", "-static", **options)
    assert test_core_arm64.run_emulated(str(program), cpu) == [expected]


def test_what_persists_is_dc_cvap_and_dsb() -> None:
    test_core_arm64.build_arm64()
    file = test_core_arm64.CROSS / "libbmmhost.a.p" / "lib_persist.c.o"
    code = disassemble_object(test_core_arm64.OBJDUMP, file, "//")["bmm_persist"]
    lines = [" ".join(line.split()) for line in code]
    (cvap,) = [n for n, line in enumerate(lines) if line.startswith("dc cvap")]
    assert cvap < lines.index("dsb sy")


def test_a_drain_orders_stores_for_devices_too() -> None:
    """As dma_wmb() does: "ish" would order them for other CPUs only."""
    drain = test_core_arm64.read_instructions("core_operations.c.o")["bmm_drain"]
    assert drain[0] == "dmb oshst"


def test_only_a_streaming_clear_drains_for_its_caller() -> None:
    """Programs built for 0.1 rely on it; no other operation may cost a drain."""
    code = test_core_arm64.read_instructions("core_operations.c.o")
    clear = code["bmm_clear_streaming"]
    (drain,) = [at for at, line in enumerate(clear) if line == "dmb oshst"]
    assert all(at > drain for at, line in enumerate(clear) if line == "ret")
    for name in ("bmm_copy_streaming", "bmm_stamp"):
        assert "dmb oshst" not in code[name]


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
    lines = []
    for name in ("backends", "descriptors", "pool"):
        source = EXAMPLES / f"{name}.c"
        program = crossed.build(source, tmp_path / name, *link, compiler=gcc)
        lines += test_core_arm64.run_emulated(str(program), "max")
    assert any(re.match(r"clear .*\[stp\]", line) for line in lines)
    assert "descriptors published: 65536, wrong: 0" in lines
    assert "zeroed ahead of use: 32, at once: 4, not zero: 0" in lines
