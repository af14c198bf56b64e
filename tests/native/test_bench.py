# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench memmap``: its result, its names, and its errors."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from bulkmm import machine
from bulkmm.bench import memmap
from bulkmm.errors import BulkmmError

if TYPE_CHECKING:
    from conftest import Bench, Fake

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "result.schema.json").read_text())
PEERS = {"rebuild", "rebuild-again", "template-copy", "limit"}
X86_PEERS = {"rebuild-saferet", "template-movnti", "template-norefresh"}
OURS = {"bulkmm", "bulkmm:generic"}
X86_OURS = {"bulkmm:plain", "bulkmm:movnti8", "bulkmm:movnti"}
X86 = platform.machine() == "x86_64"


@pytest.fixture(scope="module")
def quick(
    tmp_path_factory: pytest.TempPathFactory, bench: Bench
) -> tuple[dict[str, Any], str]:
    file = tmp_path_factory.mktemp("bench") / "result.json"
    done = bench("memmap", "--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text()), done.stdout


def test_result_follows_the_schema(quick: tuple[dict[str, Any], str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(quick[0], SCHEMA)


def test_names(quick: tuple[dict[str, Any], str]) -> None:
    document, _ = quick
    assert {r["scenario"] for r in document["results"]} == {"memmap-stamp"}
    wanted = PEERS | OURS | (X86_PEERS | X86_OURS if X86 else set())
    assert {r["variant"] for r in document["results"]} == wanted
    assert {len(r["samples"]) for r in document["results"]} == {9}
    pairs = {(r["base"], r["variant"]) for r in document["ratios"]}
    ours = {v for v in wanted if v.startswith("bulkmm")}
    bases = ("rebuild", "template-movnti") if X86 else ("rebuild",)
    assert {(base, name) for base in bases for name in ours} <= pairs
    assert {("limit", "bulkmm"), ("rebuild", "rebuild-again")} <= pairs
    assert document["machine"]["accelerator"] == "native"


def test_every_output_was_verified(quick: tuple[dict[str, Any], str]) -> None:
    document, _ = quick
    assert len(document["checks"]) == len(document["results"])
    assert all(check["ok"] for check in document["checks"])


def test_table_shows_every_variant(quick: tuple[dict[str, Any], str]) -> None:
    document, table = quick
    for result in document["results"]:
        assert f"\n{result['variant']} " in table
    assert "published (Ice Lake VM)" in table


@pytest.mark.skipif(not X86, reason="streaming stores are there on x86-64 only")
def test_no_collapse(quick: tuple[dict[str, Any], str]) -> None:
    """A wide margin: whoever shares the machine may not fail this."""
    ratios = {(r["base"], r["variant"]): r["ratio"] for r in quick[0]["ratios"]}
    assert ratios["rebuild", "bulkmm"] > 0.8  # 1.6 where nothing disturbs
    assert ratios["limit", "bulkmm"] > 0.4  # 1.0


@pytest.mark.parametrize("name", ["generic", *(["plain"] if X86 else [])])
def test_forced_backend(name: str) -> None:
    request = memmap.Request(size=1 << 30, rounds=2, backend=name)
    document = memmap.run_bench(request)
    assert document.run["backend"] == name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "avx9"], "there are generic"),
        (["--backend", ""], "there are generic"),
        (["--size", "127M"], "below a section"),
        (["--size", "0G"], "below a section"),
        (["--size", "100"], "bad size"),
        (["--size", "many"], "bad size"),
        (["--size", "-5G"], "bad size"),
        (["--size", "65T"], "above the 64T"),
        (["--rounds", "0"], "rounds"),
        (["--rounds", "-1"], "rounds"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    words: list[str], said: str, bench: Bench
) -> None:
    done = bench("memmap", *[f"{words[0]}={words[1]}"])
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_not_enough_memory(bench: Bench) -> None:
    have = machine.memory_kib("MemAvailable")
    assert have
    size = f"{have // (1 << 20) * 64 + 1024}G"  # a struct page is a 64th
    done = bench("memmap", "--size", size)
    assert done.returncode == 3
    assert "not enough memory" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_not_built(tmp_path: Path, bench: Bench) -> None:
    done = bench("memmap", "--quick", BULKMM_BENCH=str(tmp_path / "none"))
    assert done.returncode == 3
    assert "bench program is not there" in done.stderr


def test_result_file_cannot_be_written(tmp_path: Path, bench: Bench) -> None:
    done = bench("memmap", "--quick", "--json", str(tmp_path / "none" / "result.json"))
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


def events(*, ok: bool) -> list[dict[str, Any]]:
    start = {"event": "start", "bytes": 64, "backend": "generic"}
    lines: list[dict[str, Any]] = [start]
    for variant in ("rebuild", "bulkmm", "bulkmm:generic"):
        named = {"scenario": "memmap-stamp", "variant": variant}
        sample = {"event": "sample", **named, "bytes": 64, "ns": 1000}
        lines += [{**sample, "round": n} for n in range(3)]
        lines.append({"event": "verified", **named, "ok": ok})
    return lines


def test_wrong_output_is_code_1(fake: Fake, bench: Bench) -> None:
    program = fake(events(ok=False), 1)
    done = bench("memmap", "--quick", BULKMM_BENCH=program)
    assert done.returncode == 1
    assert "output of bulkmm differs" in done.stderr


def test_crash_of_the_program(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(events(ok=True), 9)
    monkeypatch.setenv("BULKMM_BENCH", program)
    with pytest.raises(BulkmmError, match="ended with 9"):
        memmap.run_bench(memmap.Request(size=1 << 30))


@pytest.mark.parametrize(
    ("text", "size"), [("100G", 100 << 30), ("128M", 128 << 20), ("1TiB", 1 << 40)]
)
def test_sizes(text: str, size: int) -> None:
    assert memmap.parse_size(text) == size


def test_help_is_quick_because_it_imports_no_statistics() -> None:
    code = (
        "import sys, bulkmm.bench.command, bulkmm.stats, bulkmm.table, bulkmm.machine\n"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'scipy', 'rich')))"
    )
    assert not subprocess.run([sys.executable, "-c", code], check=False).returncode
