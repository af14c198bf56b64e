# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench clear``: its result, its names, and its errors."""

from __future__ import annotations

import dataclasses
import json
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from bulkmm.bench import clear, sweep

if TYPE_CHECKING:
    from conftest import Bench, FailedWith, Fake

    from bulkmm.results import Document

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build" / "native" / "bmm-bench"
SCHEMA = json.loads((ROOT / "docs" / "result.schema.json").read_text())
X86 = platform.machine() == "x86_64"
OURS = {"bulkmm-cached", "bulkmm-streaming"}
BASE = "rep-stosb" if X86 else "glibc"
CACHING = {"glibc", "plain", *(["rep-stosb", "rep-stosb-4k"] if X86 else [])}
THEN = ("", "-then-read", "-then-write", "-then-random")
SMALL = sweep.Request(
    clear.SUBJECT,
    sweep.Amount(8 << 20, (8 << 20, 2 << 20)),
    rounds=2,
    used_max=2 << 20,
)
ONE = sweep.Request(clear.SUBJECT, sweep.Amount(2 << 20, (2 << 20,)), rounds=1)
SCENARIOS = [*(f"clear-2m{use}" for use in THEN), "clear-8m"]


def arms(document: Document) -> set[str]:
    """Return what is to be there: libpmem2 only where it was built in."""
    optional = {"libpmem2"} if document.run["libpmem2"] else set()
    return CACHING | OURS | optional | {f"{BASE}-again"}


def test_result_follows_the_schema(small: Document) -> None:
    jsonschema.validate(json.loads(small.to_json()), SCHEMA)


def test_names_and_their_order(small: Document) -> None:
    scenarios = list(dict.fromkeys(r.scenario for r in small.results))
    assert scenarios == SCENARIOS
    for scenario in scenarios:
        found = [r for r in small.results if r.scenario == scenario]
        assert {r.variant for r in found} == arms(small)
        assert {len(r.samples) for r in found} == {2}
        assert {r.bytes for r in found} == {8 << 20}
    assert small.run["cached"]
    assert small.run["streaming"]


def test_ratios_of_every_scenario(small: Document) -> None:
    """To the base, and of ours to glibc and to the best that does the same job."""
    medians = {(r.scenario, r.variant): r.median for r in small.results}
    for scenario in SCENARIOS:
        found = {(r.base, r.variant) for r in small.ratios if r.scenario == scenario}
        pairs = {(BASE, name) for name in arms(small) - {BASE}}
        pairs |= {("glibc", name) for name in OURS}
        for ours, others in (("cached", set()), ("streaming", {"libpmem2"})):
            peers = (CACHING | others) & arms(small)
            best = min(peers, key=lambda name: medians[scenario, name])
            pairs.add((best, f"bulkmm-{ours}"))
        assert found == pairs


def test_every_method_was_verified_at_every_extent(small: Document) -> None:
    assert {check.name for check in small.checks} == {
        f"output of clear-{size} {name}"
        for size in ("2m", "8m")
        for name in arms(small)
    }
    assert all(check.ok for check in small.checks)


def test_forced_backend() -> None:
    document = sweep.run_bench(dataclasses.replace(SMALL, backend="generic"))
    assert document.run["cached"] == document.run["streaming"] == "generic"


@pytest.mark.skipif(not X86, reason="a backend that has one of the two")
def test_backend_of_one_call_leaves_the_other_as_it_is(small: Document) -> None:
    document = sweep.run_bench(dataclasses.replace(SMALL, backend="movnti"))
    assert document.run["streaming"] == "movnti"
    assert document.run["cached"] == small.run["cached"]


def test_unknown_backend_is_one_line_and_code_2(bench: Bench) -> None:
    done = bench("clear", "--backend=avx9")
    assert done.returncode == 2
    assert "there are generic" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("rounds", ["0", "-1", "10001"])
def test_bad_rounds_are_one_line_and_code_2(rounds: str, bench: Bench) -> None:
    done = bench("clear", f"--rounds={rounds}")
    assert done.returncode == 2
    assert "give 1 to 10000" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_not_built(tmp_path: Path, bench: Bench) -> None:
    done = bench("clear", "--quick", BULKMM_BENCH=str(tmp_path / "none"))
    assert done.returncode == 3
    assert "bench program is not there" in done.stderr


def test_result_file_cannot_be_written(tmp_path: Path, bench: Bench) -> None:
    done = bench("clear", "--quick", "--json", str(tmp_path / "none" / "result.json"))
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
def test_wrong_output_is_code_1(
    tmp_path: Path, fake: Fake, bench: Bench, *, ok: bool, code: int
) -> None:
    file = tmp_path / "result.json"
    program = fake(events(ok=ok), code)
    done = bench("clear", "--quick", "--json", str(file), BULKMM_BENCH=program)
    assert done.returncode == code
    assert ("output of clear-4k glibc leaves bytes" in done.stderr) is not ok
    jsonschema.validate(json.loads(file.read_text()), SCHEMA)


@pytest.mark.parametrize(
    "edit",
    [
        "memset(dst, 0, len); => memset(dst, 0, len - 1);",
        "memset(dst, 0, len); => memset(dst, 0, len); ((char *)dst)[len] = 0;",
        "memset(dst, 0, len); => memset((char *)dst - 1, 0, len + 1);",
        "memset(dst, 0, len); => memset(dst, 0, len); ((char *)dst)[len / 2] = 1;",
    ],
)
def test_a_method_that_is_wrong_is_found(edit: str, failed_with: FailedWith) -> None:
    again = {"glibc-again"} if BASE == "glibc" else set()
    wrong = {f"output of {name}" for name in {"glibc"} | again}
    assert failed_with(edit, ONE) == wrong


@pytest.mark.parametrize(
    "words",
    [
        ["clear", "--extent=100"],
        ["clear", "--extent=12288"],
        ["clear", "--size=134217728", "--extent=268435456"],
        ["clear", *["--extent=4096"] * 17],
        ["clear", "--size=134217728"],
        ["clear", "--extent=4096", "--used-max=many"],
        ["clear", "--extent=4096", "--backend=avx9"],
        ["clear", "--extent=4096", "--backend="],
        ["clean"],
    ],
)
def test_the_program_refuses_nonsense(words: list[str]) -> None:
    done = subprocess.run([PROGRAM, *words], check=False, capture_output=True)
    assert done.returncode == 2
    assert done.stderr
    assert not done.stdout
