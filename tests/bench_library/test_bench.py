# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: short runs of the program, its names, and its errors."""

import dataclasses
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from corelib import NATIVE, ROOT
from eventlib import Event, broken, events, process, steady
from programs import run_program

from bench import measure, program, subjects
from bench.subjects import Amount, Request
from bulkmm import cli
from bulkmm.results import conditions, host
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.size import MIB

PROGRAM = NATIVE / "bmm-bench"
X86 = platform.machine() == "x86_64"
SUBJECTS = subjects.SUBJECTS
TWICE = {"rounds": 1, "processes": 2}
LITTLE = Amount(8 * MIB, (2 * MIB, 8 * MIB))
SMALL = [
    Request(subjects.CLEAR, LITTLE, **TWICE),
    Request(subjects.COPY, Amount(32 * MIB, (2 * MIB, 32 * MIB)), **TWICE),
    Request(subjects.FIRST_USE, Amount(8 * MIB, (8 * MIB,)), **TWICE),
]
CLEAR_BASE = "rep-stosb" if X86 else "glibc"
PEERS = {
    "clear": {"glibc", "plain", f"{CLEAR_BASE}-again"}
    | ({"rep-stosb", "rep-stosb-4k"} if X86 else set()),
    "copy": {"glibc", "glibc-again", "plain"} | ({"rep-movsb"} if X86 else set()),
}
THEN = ("-then-read", "-then-write", "-then-random")
SCENARIOS = [
    *(f"clear-{n}m{use}" for n in (2, 8) for use in ("", "-again", *THEN)),
    *(f"copy-2m{use}" for use in ("", "-again", "-misaligned", "-misaligned-again")),
    *(f"copy-32m{use}" for use in ("", "-misaligned")),
    *(
        f"first-use-{op}-8m"
        for op in ("stamp", "copy", "copy-streaming", "clear", "clear-streaming")
    ),
]


def variants(document: Document, scenario: str) -> set[str]:
    return {r.variant for r in document.results if r.scenario == scenario}


@pytest.fixture(scope="module")
def small() -> Document:
    """Measure a little of everything."""
    return measure.run_bench(SMALL)


Fake = Callable[..., None]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Have a program that prints these lines take the place of the bench program."""

    def replaced(lines: Iterable[Event | str], code: int = 0) -> None:
        output = "\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines)
        path = tmp_path / "bench"
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit {code}\n")
        path.chmod(0o755)
        monkeypatch.setenv("BULKMM_BENCH", str(path))

    return replaced


def test_a_result_can_be_read(small: Document, tmp_path: Path) -> None:
    small.write(tmp_path / "a.json")
    assert Document.read(tmp_path / "a.json").scenarios == SCENARIOS


def test_peers_ours_backends_and_limits(small: Document) -> None:
    optional = {"libpmem2"} if small.run["clear.libpmem2"] else set()
    for scenario in SCENARIOS:
        name = scenario.partition("-")[0]
        present = variants(small, scenario)
        if name == "first":
            assert present == {"first", "settled"}
            continue
        peers = PEERS[name] | optional
        if "-misaligned" in scenario:
            peers -= {"plain"}  # over whole words only
        assert present >= peers | {*SUBJECTS[name].own_variants}
        if scenario == "clear-2m-again":
            assert {"bulkmm-fill-24", "bulkmm-fill-cached-24"} <= present
        for call in SUBJECTS[name].own_variants:
            assert any(variant.startswith(f"{call}:") for variant in present)
        cold = re.fullmatch(rf"{name}-\d+[kmg]", scenario) is not None
        assert ("limit" in present) == cold


def test_a_sample_is_a_process_and_a_raw_time_a_round(small: Document) -> None:
    for result in small.results:
        assert [len(times) for times in result.raw] == [1, 1]
        assert result.samples == [times[0] for times in result.raw]
        assert result.spread == "range"
    assert {ratio.n for ratio in small.ratios} == {2}
    assert small.run["processes"] == 2
    assert small.run["clear.rounds"] == 1


def test_ours_stand_against_bases_peers_limit_and_their_own(small: Document) -> None:
    pairs = {(r.base, r.variant) for r in small.ratios if r.scenario == "copy-32m"}
    assert {("glibc", name) for name in PEERS["copy"] - {"glibc"}} <= pairs
    assert ("limit", "bulkmm-streaming") in pairs
    for call in SUBJECTS["copy"].own_variants:
        assert any(v == call and b.startswith(f"{call}:") for b, v in pairs)
    assert not [variant for _, variant in pairs if ":" in variant]


def test_every_output_was_verified(small: Document) -> None:
    names = {check.name for check in small.checks}
    assert len(names) == len(small.checks)
    assert all(check.ok for check in small.checks)
    assert {f"output of copy-32m {name}" for name in PEERS["copy"]} <= names
    assert "output of clear-8m bulkmm-cached" in names
    assert "output of first-use-stamp-8m first" in names


def test_what_disturbs_is_recorded(small: Document) -> None:
    assert len(small.run["load"]) == 2
    assert 0 <= small.run["steal"] <= 1
    assert 0 <= small.run["other"] <= 1
    assert all(r.cv is not None for r in small.results)


def test_the_machine_is_described_without_its_name(small: Document) -> None:
    description = small.machine
    assert description["cpu"]["model"]
    assert description["cpu"]["cores"] == os.cpu_count()
    assert description["cpu"]["affinity"]
    assert description["numa_nodes"] >= 1
    assert description["kernel"] == platform.release()
    assert description["memory_bytes"] > 1 << 28
    assert description["bulkmm"] == metadata.version("bulkmm")
    text = json.dumps(description)
    assert not [home for home in (ROOT, Path.home()) if str(home) in text]
    assert platform.node() not in description.values()


def test_picks_are_named(small: Document) -> None:
    for scenario in SCENARIOS[:-5]:
        name = scenario.partition("-")[0]
        assert {*SUBJECTS[name].own_variants} <= {*small.run["picks"][scenario]}
    assert small.run["picks"]["clear-8m"]["limit"]


@pytest.mark.parametrize(
    "request_", SMALL[:2], ids=lambda request: request.subject.name
)
def test_forced_backend(request_: Request) -> None:
    once = dataclasses.replace(request_, processes=1, backend="generic")
    document = measure.run_bench([once])
    assert document.run["cached"] == "generic"


def test_processes_differ_in_seed_and_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[list[str], str]] = []

    def fake_events(arguments: list[str], padding: str) -> Iterator[dict[str, Any]]:
        calls.append((arguments, padding))
        yield from process({"clear-2m": {"glibc": steady(100, 1)}})

    monkeypatch.setattr(program, "read_events", fake_events)
    logs = list(measure.run_processes(Request(subjects.CLEAR, LITTLE, processes=4)))
    assert len(logs) == 4
    assert len({arguments[3] for arguments, _ in calls}) == 4
    assert len({len(padding) for _, padding in calls}) == 4


def test_not_enough_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source and destination count, whole extents that no cache may hold."""
    monkeypatch.setattr(host, "memory_kib", lambda _: 1 << 20)
    monkeypatch.setattr(host, "last_level_cache", lambda: 32 * MIB)
    half = Request(subjects.COPY, Amount(512 * MIB, (512 * MIB,)))
    with pytest.raises(BulkmmError, match="not enough memory: 1088 MiB needed"):
        measure.check_request(half)
    monkeypatch.setattr(host, "last_level_cache", lambda: 160 * MIB)
    with pytest.raises(BulkmmError, match="not enough memory: 2112 MiB needed"):
        measure.check_request(half)


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_wrong_output_is_code_1(
    tmp_path: Path,
    fake: Fake,
    capsys: pytest.CaptureFixture[str],
    *,
    ok: bool,
    code: int,
) -> None:
    file = tmp_path / "result.json"
    scenarios = ("clear-4k", "clear-1g-then-write")
    times = {name: steady(1000, 1) for name in ("rep-stosb", "glibc", "bulkmm-cached")}
    fake(process(dict.fromkeys(scenarios, times), ok=ok), code)
    assert cli.main(["bench", "clear", "--quick", "-o", str(file)]) == code
    stderr = capsys.readouterr().err
    assert ("output of clear-4k glibc: leaves bytes" in stderr) is not ok
    assert Document.read(file).scenarios == [*scenarios]


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        (["{}"], 9, "ended with 9"),
        (["no JSON"], 0, "printed no event: "),
        (['["sample"]'], 0, "printed no event: "),
    ],
)
def test_a_program_that_fails(
    lines: list[str], code: int, message: str, fake: Fake
) -> None:
    fake(lines, code)
    with pytest.raises(BulkmmError, match=message):
        list(program.read_events([]))


def test_a_process_that_left_something_out() -> None:
    logs = events({"copy-4k": {"glibc": steady(100, 2), "plain": steady(90, 2)}})
    logs[1] = [event for event in logs[1] if event.get("variant") != "plain"]
    with pytest.raises(BulkmmError, match="copy-4k, plain: not measured by every"):
        measure.arms_of(logs)


def test_the_least_memory_in_huge_pages_is_said() -> None:
    logs = events({"copy-4k": {"glibc": steady(100, 2)}})
    logs[1][0]["huge_bytes"] = 0
    document = measure.make_document([(logs, Request(subjects.COPY, LITTLE))])
    assert document.run["huge_bytes"] == 0


def test_huge_pages_beside_what_is_measured_do_not_count() -> None:
    logs = events({"copy-4k": {"glibc": steady(100, 2)}})
    for log in logs:
        log[0]["huge_bytes"] = 3 * log[0]["bytes"]
    document = measure.make_document([(logs, Request(subjects.COPY, LITTLE))])
    assert document.run["huge_bytes"] == document.run["bytes"] > 0
    assert conditions.list_facts(document)["memory in huge pages"] == "at most 100 %"


def test_without_libpmem2_the_table_says_so(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = process({"copy-64k": {"glibc": steady(100, 1), "plain": steady(90, 1)}})
    lines[0]["libpmem2"] = False
    fake(lines)
    assert cli.main(["bench", "copy", "--quick"]) == 0
    assert "libpmem2 is left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "quick", "rounds", "processes"),
    [([], False, 5, 6), (["--quick"], True, 2, 6), (["--rounds=2"], False, 2, 6),
     (["--quick", "--processes=8"], True, 2, 8)],
)  # fmt: skip
def test_the_command_measures_what_the_subjects_say(
    words: list[str],
    quick: bool,  # noqa: FBT001
    rounds: int,
    processes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[Request] = []
    monkeypatch.setattr(
        measure, "run_bench", lambda batch, _: requests.extend(batch) or Document({})
    )
    assert cli.main(["bench", "all", *words]) == 0
    assert [request.subject.name for request in requests] == [*SUBJECTS]
    for request in requests:
        amount = request.subject.quick if quick else request.subject.full
        assert (request.rounds, request.processes, request.amount) == (
            rounds,
            processes,
            amount,
        )


@pytest.mark.parametrize(
    "words",
    [
        ["clear", "--extent=100"],
        ["clear", "--extent=12288"],
        ["clear", "--size=134217728", "--extent=268435456"],
        ["clear", *["--extent=4096"] * 17],
        ["clear", "--size=134217728"],
        ["clear", "--extent=4096", "--backend=avx9"],
        ["clear", "--extent=4096", "--backend="],
        ["clean"],
    ],
)
def test_the_program_refuses_nonsense(words: list[str]) -> None:
    result = subprocess.run([PROGRAM, *words], check=False, capture_output=True)
    assert result.returncode == 2


RIGHT = {"clear": "memset(dst, 0, len);", "copy": "memcpy(dst, src, len);"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("clear", "memset(dst, 0, len - 1);"),
        ("clear", "memset(dst, 0, len); ((char *)dst)[len] = 0;"),
        ("clear", "memset((char *)dst - 1, 0, len + 1);"),
        ("clear", "memset(dst, 0, len); ((char *)dst)[len / 2] = 1;"),
        ("copy", "memcpy(dst, src, len - 1);"),
        ("copy", "memcpy(dst, src, len + 1);"),
        ("copy", "memcpy(dst, src, len); ((char *)dst)[-1] = 0;"),
        ("copy", "memcpy(dst, src, len); ((char *)dst)[len / 2]++;"),
        # one that writes to its source
        ("copy", "memset(dst, 0, len); memset((void *)src, 0, len);"),
        # one that shifts
        ("copy", "memcpy(dst, (char *)src + 8, len);"),
    ],
)
def test_a_method_that_is_wrong_is_found(
    name: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = broken(tmp_path, f"{name}.c", RIGHT[name], wrong)
    monkeypatch.setenv("BULKMM_BENCH", str(executable))
    once = Request(SUBJECTS[name], Amount(2 * MIB, (2 * MIB,)), 1, 1)
    failed = {one.name.split()[-1] for one in measure.run_bench([once]).failed}
    again = name == "copy" or not X86
    assert failed == {"glibc", *(["glibc-again"] if again else [])}


@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")
@pytest.mark.parametrize("name", ["plain_copy", "plain_clear"])
def test_the_plain_loop_is_a_loop(name: str) -> None:
    """A compiler that sees what it is makes a call of it."""
    result = run_program(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", PROGRAM],
        check=True,
    )
    code = re.findall(r"^ +[0-9a-f]+:\t(\S+)", result.stdout, re.MULTILINE)
    assert 4 <= len(code) <= 30
    assert not [word for word in code if word.startswith(("call", "rep", "bl"))]
    assert not re.search(r"mem(cpy|move|set)", result.stdout)
