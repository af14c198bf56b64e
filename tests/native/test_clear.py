# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench clear``: its result, its names, and its errors."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from bulkmm import table
from bulkmm.bench import clear

if TYPE_CHECKING:
    from bulkmm.results import Document

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build" / "native" / "bmm-bench"
SCHEMA = json.loads((ROOT / "docs" / "result.schema.json").read_text())
X86 = platform.machine() == "x86_64"
OURS = {"bulkmm-cached", "bulkmm-streaming"}
PEERS = {"glibc", *(["rep-stosb", "rep-stosb-4k"] if X86 else [])}
THEN = ("", "-then-read", "-then-write", "-then-random")
SMALL = clear.Request(size=128 << 20, extents=(128 << 20, 2 << 20), rounds=2)


def bulkmm(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bulkmm.cli", "bench", "clear", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def small() -> Document:
    return clear.run_bench(SMALL)


def test_result_follows_the_schema(small: Document) -> None:
    jsonschema.validate(json.loads(small.to_json()), SCHEMA)


def test_names_and_their_order(small: Document) -> None:
    scenarios = list(dict.fromkeys(r.scenario for r in small.results))
    assert scenarios == [
        f"clear-{size}{use}" for size in ("2m", "128m") for use in THEN
    ]
    for scenario in scenarios:
        arms = [r for r in small.results if r.scenario == scenario]
        assert {r.variant for r in arms} == PEERS | OURS
        assert {len(r.samples) for r in arms} == {2}
        assert {r.bytes for r in arms} == {128 << 20}
    assert small.run["cached"]
    assert small.run["streaming"]


def test_ratios_of_every_scenario(small: Document) -> None:
    pairs = {("glibc", name) for name in OURS}
    if X86:
        others = OURS | PEERS - {"rep-stosb"}
        pairs |= {("rep-stosb", name) for name in others}
    for scenario in {r.scenario for r in small.results}:
        found = {(r.base, r.variant) for r in small.ratios if r.scenario == scenario}
        assert found == pairs


def test_every_method_was_verified_at_every_extent(small: Document) -> None:
    assert {check.name for check in small.checks} == {
        f"output of clear-{size} {name}"
        for size in ("2m", "128m")
        for name in PEERS | OURS
    }
    assert all(check.ok for check in small.checks)


def test_use_costs_time(small: Document) -> None:
    """Whatever the machine: an access to every line is not free."""
    arms = {(r.scenario, r.variant): r.median for r in small.results}
    for name in PEERS | OURS:
        assert arms["clear-128m-then-random", name] > arms["clear-128m", name]


def test_table_shows_every_cell(small: Document) -> None:
    shown = table.markdown(small)
    for result in small.results:
        assert f"| {result.scenario} | {result.variant} | " in shown


@pytest.mark.parametrize("rounds", ["0", "-1", "10001"])
def test_bad_rounds_are_one_line_and_code_2(rounds: str) -> None:
    done = bulkmm(f"--rounds={rounds}")
    assert done.returncode == 2
    assert "give 1 to 10000" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_not_built(tmp_path: Path) -> None:
    done = bulkmm("--quick", BULKMM_BENCH=str(tmp_path / "none"))
    assert done.returncode == 3
    assert "bench program is not there" in done.stderr


def test_result_file_cannot_be_written(tmp_path: Path) -> None:
    done = bulkmm("--quick", "--json", str(tmp_path / "none" / "result.json"))
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


def events(*, ok: bool) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [{"event": "start", "size": 64}]
    for scenario in ("clear-4k", "clear-1g-then-write"):
        for variant in ("rep-stosb", "glibc", "bulkmm-cached"):
            named = {"scenario": scenario, "variant": variant}
            sample = {"event": "sample", **named, "bytes": 64, "ns": 1000}
            lines += [{**sample, "round": n} for n in range(3)]
            lines.append({"event": "verified", **named, "ok": ok})
    return lines


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_wrong_output_is_code_1(tmp_path: Path, *, ok: bool, code: int) -> None:
    said = "\n".join(json.dumps(line) for line in events(ok=ok))
    program, file = tmp_path / "bench", tmp_path / "result.json"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit {code}\n")
    program.chmod(0o755)
    done = bulkmm("--quick", "--json", str(file), BULKMM_BENCH=str(program))
    assert done.returncode == code
    assert ("output of clear-4k glibc leaves bytes" in done.stderr) is not ok
    jsonschema.validate(json.loads(file.read_text()), SCHEMA)


@pytest.mark.parametrize(
    "words",
    [
        ["clear", "--extent=100"],
        ["clear", "--extent=12288"],
        ["clear", "--size=134217728", "--extent=268435456"],
        ["clear", *["--extent=4096"] * 9],
        ["clean"],
    ],
)
def test_the_program_refuses_nonsense(words: list[str]) -> None:
    done = subprocess.run([PROGRAM, *words], check=False, capture_output=True)
    assert done.returncode == 2
    assert done.stderr
    assert not done.stdout
