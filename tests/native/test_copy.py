# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench copy`` and ``bench all``: results, names, errors, the loop."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from bulkmm import cli
from bulkmm.bench import clear, copy, everything, memmap, sweep
from bulkmm.errors import BulkmmError
from bulkmm.results import Document

if TYPE_CHECKING:
    from conftest import Bench, FailedWith, Fake

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build" / "native" / "bmm-bench"
SCHEMA = json.loads((ROOT / "docs" / "result.schema.json").read_text())
X86 = platform.machine() == "x86_64"
PEERS = {"glibc", "plain", *(["rep-movsb"] if X86 else [])}
SMALL = sweep.Request(
    copy.SUBJECT, sweep.Amount(32 << 20, (32 << 20, 1 << 20)), rounds=2
)
ONE = sweep.Request(copy.SUBJECT, sweep.Amount(32 << 20, (32 << 20,)), rounds=1)
LITTLE = sweep.Amount(8 << 20, (2 << 20, 8 << 20))
SCENARIOS = ["copy-1m", "copy-1m-again", "copy-32m"]

each_subject = pytest.mark.parametrize(
    "subject", [clear.SUBJECT, copy.SUBJECT], ids=["clear", "copy"]
)


def arms(document: Document) -> set[str]:
    optional = {"libpmem2"} if document.run["libpmem2"] else set()
    return PEERS | optional | {"glibc-again", "bulkmm"}


def test_result_follows_the_schema(small: Document) -> None:
    jsonschema.validate(json.loads(small.to_json()), SCHEMA)


def test_names_and_their_order(small: Document) -> None:
    """Hot copies as far as a cache could hold both, and more of them."""
    nbytes = {"copy-1m": 32 << 20, "copy-1m-again": 128 << 20, "copy-32m": 32 << 20}
    assert list(dict.fromkeys(r.scenario for r in small.results)) == SCENARIOS
    for scenario in SCENARIOS:
        found = [r for r in small.results if r.scenario == scenario]
        assert {r.variant for r in found} == arms(small)
        assert {len(r.samples) for r in found} == {2}
        assert {r.bytes for r in found} == {nbytes[scenario]}
    assert small.run["backend"] == "fastest"
    assert {name: list(ops) for name, ops in small.run["served"].items()} == {
        scenario: ["copy"] for scenario in SCENARIOS
    }
    assert small.run["bytes"] == 2 * SMALL.amount.size


def test_ratios_of_every_scenario(small: Document) -> None:
    medians = {(r.scenario, r.variant): r.median for r in small.results}
    for scenario in SCENARIOS:
        found = {(r.base, r.variant) for r in small.ratios if r.scenario == scenario}
        pairs = {("glibc", name) for name in arms(small) - {"glibc"}}
        peers = arms(small) - {"glibc-again", "bulkmm"}
        best = min(peers, key=lambda name: medians[scenario, name])
        assert found == pairs | {(best, "bulkmm")}


def test_every_method_was_verified(small: Document) -> None:
    assert {check.name for check in small.checks} == {
        f"output of {scenario} {name}" for scenario in SCENARIOS for name in arms(small)
    }
    assert all(check.ok for check in small.checks)


def test_libpmem2_where_its_header_is(small: Document) -> None:
    assert small.run["libpmem2"] == Path("/usr/include/libpmem2.h").exists()


@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")
@pytest.mark.parametrize("name", ["plain_copy", "plain_clear"])
def test_the_plain_loop_is_a_loop(name: str) -> None:
    """A compiler that sees what it is makes a call of it."""
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
    )
    code = re.findall(r"^ +[0-9a-f]+:\t(\S+)", done.stdout, re.MULTILINE)
    assert 4 <= len(code) <= 30
    assert not [word for word in code if word.startswith(("call", "rep", "bl"))]
    assert not re.search(r"mem(cpy|move|set)", done.stdout)


@pytest.mark.parametrize("name", ["generic", *(["movnti"] if X86 else [])])
def test_forced_backend(name: str) -> None:
    document = sweep.run_bench(dataclasses.replace(SMALL, backend=name))
    assert document.run["backend"] == name
    assert document.run["served"]["copy-1m"] == {"copy": name}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--backend=clzero", "there are generic"),  # which copies nothing
        ("--backend=", "there are generic"),
        ("--rounds=0", "give 1 to 10000"),
    ],
)
def test_bad_input_is_one_line_and_code_2(word: str, said: str, bench: Bench) -> None:
    done = bench("copy", word)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


@pytest.mark.parametrize("what", ["copy", "all"])
def test_not_built(what: str, tmp_path: Path, bench: Bench) -> None:
    done = bench(what, "--quick", BULKMM_BENCH=str(tmp_path / "none"))
    assert done.returncode == 3
    assert "bench program is not there" in done.stderr


@pytest.mark.parametrize("what", ["copy", "all"])
def test_result_file_cannot_be_written(what: str, tmp_path: Path, bench: Bench) -> None:
    done = bench(what, "--quick", "--json", str(tmp_path / "none" / "result.json"))
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


def test_not_enough_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source and destination count."""
    monkeypatch.setattr("bulkmm.machine.memory_kib", lambda _: 1 << 20)
    half = sweep.Amount(512 << 20, (1 << 20,))
    with pytest.raises(BulkmmError, match="not enough memory: 1088 MiB needed"):
        sweep.run_bench(dataclasses.replace(SMALL, amount=half))


@pytest.mark.parametrize(
    "edit",
    [
        "memcpy(dst, src, len); => memcpy(dst, src, len - 1);",
        "memcpy(dst, src, len); => memcpy(dst, src, len + 1);",
        "memcpy(dst, src, len); => memcpy(dst, src, len); ((char *)dst)[-1] = 0;",
        "memcpy(dst, src, len); => memcpy(dst, src, len); ((char *)dst)[len / 2]++;",
        # one that writes to its source
        "memcpy(dst, src, len); => memset(dst, 0, len); memset((void *)src, 0, len);",
        # one that shifts
        "memcpy(dst, src, len); => memcpy(dst, (char *)src + 8, len);",
    ],
)
def test_a_method_that_is_wrong_is_found(edit: str, failed_with: FailedWith) -> None:
    assert failed_with(edit, ONE) == {"output of glibc", "output of glibc-again"}


def test_without_libpmem2_the_table_says_so(bench: Bench, fake: Fake) -> None:
    named = {"event": "sample", "scenario": "copy-64k", "bytes": 64, "ns": 1000}
    lines: list[dict[str, Any]] = [{"event": "start", "libpmem2": False}]
    for variant in ("glibc", "bulkmm"):
        lines += [{**named, "variant": variant, "round": n} for n in range(3)]
    done = bench("copy", "--quick", BULKMM_BENCH=fake(lines, 0))
    assert done.returncode == 0, done.stderr
    assert "libpmem2 is left out" in done.stdout


@each_subject
@pytest.mark.parametrize(
    ("words", "planned"),
    [
        ([], {"quick": False, "rounds": 21}),
        (["--quick"], {"quick": True, "rounds": 9}),
        (
            ["--rounds=3", "--backend=generic"],
            {"quick": False, "rounds": 3, "backend": "generic"},
        ),
    ],
)
def test_the_command_measures_what_the_subject_says(
    subject: sweep.Subject,
    words: list[str],
    planned: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[sweep.Request] = []
    monkeypatch.setattr(
        sweep, "run_bench", lambda request, _: asked.append(request) or Document({})
    )
    assert cli.main(["bench", subject.name, *words]) == 0
    assert asked == [sweep.plan(subject, **planned)]


@each_subject
def test_a_plan_takes_the_amount_of_its_subject(subject: sweep.Subject) -> None:
    full = sweep.plan(subject, quick=False, rounds=5)
    quick = sweep.plan(subject, quick=True, rounds=5, backend="generic", used_max=64)
    assert full == sweep.Request(subject, subject.full, 5)
    assert quick == sweep.Request(subject, subject.quick, 5, 1, "generic", 64)
    assert quick.amount != full.amount


class Little(everything.Request):
    """All subjects, but little of each."""

    def memmap(self) -> memmap.Request:
        """Return one GiB: more than a section."""
        return memmap.Request(size=1 << 30, rounds=self.rounds)

    def clear(self) -> sweep.Request:
        """Return two extents."""
        return sweep.Request(clear.SUBJECT, LITTLE, rounds=self.rounds)

    def copy(self) -> sweep.Request:
        """Return two sizes."""
        return sweep.Request(copy.SUBJECT, LITTLE, rounds=self.rounds)


@pytest.fixture(scope="module")
def everything_little() -> Document:
    return everything.run_bench(Little(rounds=2))


def test_all_is_one_document(everything_little: Document) -> None:
    document = everything_little
    jsonschema.validate(json.loads(document.to_json()), SCHEMA)
    kinds = dict.fromkeys(r.scenario.partition("-")[0] for r in document.results)
    assert list(kinds) == ["memmap", "clear", "copy"]
    assert document.run["scenario"] == "all"
    assert document.run["clear.rounds"] == 2
    assert document.run["copy.backend"]
    assert document.run["bytes"] == (16 + 8 + 2 * 8) << 20
    assert len({check.name for check in document.checks}) == len(document.checks)


@pytest.mark.parametrize(("words", "least"), [(["--quick"], 7), ([], 11)])
def test_all_takes_enough_samples(
    words: list[str], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[everything.Request] = []
    monkeypatch.setattr(
        everything,
        "run_bench",
        lambda request, _: asked.append(request) or Document({}),
    )
    assert cli.main(["bench", "all", *words]) == 0
    for part in (asked[0].memmap(), asked[0].clear(), asked[0].copy()):
        assert part.rounds >= least
    assert asked[0].quick == bool(words)
