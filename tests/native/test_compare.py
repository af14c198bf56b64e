# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm compare``: what counts as proven, what is refused, what it says."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from bulkmm import cli, compare, stats, verdict
from bulkmm.errors import UsageError
from bulkmm.results import Check, Document, Result
from bulkmm.verdict import FASTER, SLOWER, UNPROVEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MACHINE = {
    "accelerator": "native",
    "kernel": "6.18",
    "cpu": {"model": "A CPU", "cores": 2, "caches": {"L2": "512K"}},
    "thp": "madvise",
}
RUN = {"scenario": "clear", "huge_bytes": 64 << 20, "bytes": 64 << 20}


def times(middle: float, n: int = 11, spread: float = 0.002, seed: int = 1) -> Any:
    chance = random.Random(seed)  # noqa: S311
    return [middle * (1 + spread * chance.uniform(-1, 1)) for _ in range(n)]


def arm(scenario: str, variant: str, samples: list[float], size: int = 64) -> Result:
    return stats.summarise(scenario, variant, "ns", size, samples)


def document(**arms: list[float]) -> Document:
    results = [arm(name, "bulkmm", samples) for name, samples in arms.items()]
    return Document(machine=deepcopy(MACHINE), results=results, run=dict(RUN))


def judged(before: list[float], after: list[float], threshold: float = 0.05) -> str:
    pair = arm("s", "v", before), arm("s", "v", after)
    return verdict.judge([pair], threshold)[0].verdict


@pytest.fixture
def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return what compares two documents by the command."""

    def compared(a: Document, b: Document, *words: str) -> tuple[int, str, str]:
        files = tmp_path / "A.json", tmp_path / "B.json"
        for file, held in zip(files, (a, b), strict=True):
            held.write(file)
        code = cli.main(["compare", *map(str, files), *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return compared


@pytest.mark.parametrize(
    ("text", "value"),
    [("5%", 0.05), ("0.05", 0.05), ("5 %", 0.05), (".5", 0.5), ("2.5%", 0.025),
     ("0", 0), ("0%", 0), ("100%", 1)],
)  # fmt: skip
def test_thresholds(text: str, value: float) -> None:
    assert compare.parse_threshold(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["5", "1", "101%", "", "%", "5%%", "-5%", "nan", "inf", "1e-2", "five"]
)
def test_other_thresholds_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"as in 5% or 0\.05"):
        compare.parse_threshold(text)


@pytest.mark.parametrize(
    ("factor", "threshold", "expected"),
    [(1.2, 0.05, SLOWER), (1.04, 0.05, UNPROVEN), (1.04, 0.01, SLOWER),
     (1, 0.05, UNPROVEN), (1, 0, UNPROVEN), (1 / 1.04, 0.05, UNPROVEN),
     (1 / 1.2, 0.05, FASTER), (1.06, 0.05, SLOWER), (1.9, 1, UNPROVEN)],
)  # fmt: skip
def test_proven_is_beyond_the_threshold_not_beyond_one(
    factor: float, threshold: float, expected: str
) -> None:
    after = times(100 * factor, seed=2)
    assert judged(times(100), after, threshold) == expected


def test_the_whole_interval_must_be_beyond() -> None:
    # Most samples are slower by more than the threshold, so the test rejects,
    # but the median may well be one of the others.
    before, after = times(100, 25), times(104, 9) + times(110, 16)
    assert verdict.p_longer(after, before, 0.05) < verdict.ALPHA
    ratio = stats.ratio(arm("s", "v", before), arm("s", "v", after))
    assert ratio.significant
    assert ratio.ratio < 1 / 1.05 < ratio.ci95[1] < 1
    assert judged(before, after) == UNPROVEN
    assert judged(before, after, 0.01) == SLOWER
    assert judged(after, before) == UNPROVEN
    assert judged(after, before, 0.01) == FASTER


def test_the_test_is_against_the_threshold() -> None:
    before, after = times(100), times(104, seed=2)
    assert verdict.p_longer(after, before, 0.03) < 0.001
    assert verdict.p_longer(after, before, 0.05) > 0.999


def test_equal_samples_prove_nothing() -> None:
    assert judged([100.0] * 11, [100.0] * 11, 0) == UNPROVEN


def test_holm_has_the_values_of_the_method() -> None:
    # 4 * 0.005, 3 * 0.01, 2 * 0.03, and never below the one before
    corrected = stats.holm([0.01, 0.04, 0.03, 0.005])
    assert corrected == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.6, 0.7]) == [1, 1]
    assert stats.holm([]) == []


def test_many_cells_without_a_change_raise_few_alarms() -> None:
    single = together = 0
    for seed in range(100):
        chance = random.Random(seed)  # noqa: S311
        found = []
        for _ in range(20):
            both = [[chance.gauss(100, 1) for _ in range(9)] for _ in range(2)]
            found.append(verdict.p_longer(both[0], both[1], 0))
        single += min(found) <= verdict.ALPHA
        together += min(stats.holm(found)) <= verdict.ALPHA
    assert single > 40  # what is corrected is there
    assert together <= 11  # 5 expected; 12 or more have a chance below 0.5 %


def test_one_cell_among_many_needs_more_samples() -> None:
    slow = arm("s", "v", times(100, 5)), arm("s", "v", times(150, 5, seed=2))
    same = [
        (arm("s", f"{i}", times(100, 5, seed=i)),
         arm("s", f"{i}", times(100, 5, seed=99 - i)))
        for i in range(19)
    ]  # fmt: skip
    alone = verdict.judge([slow], 0.05)[0]
    assert (alone.verdict, alone.enough) == (SLOWER, True)
    among = verdict.judge([*same, slow], 0.05)[0]
    assert among.before.variant == "v"  # still the first
    assert (among.verdict, among.enough) == (UNPROVEN, False)


def test_samples_needed() -> None:
    # one way of 20, of 70, of 252, of 924, of 3432 has all of one arm on top
    assert [verdict.samples_needed(n) for n in (1, 2, 12, 46, 100)] == [3, 4, 5, 6, 7]


def test_cells_that_cannot_be_tested_cost_the_others_nothing() -> None:
    slow = arm("s", "v", times(100, 4)), arm("s", "v", times(150, 4, seed=2))
    once = [(arm("s", f"{i}", [100]), arm("s", f"{i}", [900])) for i in range(50)]
    found = {cell.before.variant: cell for cell in verdict.judge([*once, slow], 0.05)}
    assert found["v"].verdict == SLOWER
    assert {found[f"{i}"].verdict for i in range(50)} == {UNPROVEN}
    assert not any(found[f"{i}"].enough for i in range(50))


def test_exit_codes_and_order(run: Callable[..., tuple[int, str, str]]) -> None:
    before = document(a=times(100), b=times(100), c=times(100), d=times(100))
    after = document(a=times(90), b=times(101), c=times(120), d=times(140))
    code, out, err = run(before, after)
    assert code == 1
    assert err == "bulkmm: 2 of 4 slower by more than 5 %\n"
    rows = [line.split() for line in out.splitlines() if " bulkmm " in line]
    assert [row[0] for row in rows] == ["d", "c", "b", "a"]
    assert [row[-1] for row in rows] == ["slower", "slower", "~", "faster"]
    code, out, err = run(before, before)
    assert (code, err) == (0, "")
    assert "warning" not in out
    assert run(before, after, "--threshold", "50%")[0] == 0
    code, _, err = run(before, after, "--threshold", "5")
    assert (code, err.count("\n")) == (2, 1)


def test_json(run: Callable[..., tuple[int, str, str]]) -> None:
    before, after = document(a=times(100), b=times(1)), document(a=times(120), c=[1.0])
    code, out, _ = run(before, after, "--json")
    said = json.loads(out)
    assert code == 1
    (cell,) = said["cells"]
    assert (cell["scenario"], cell["variant"]) == ("a", "bulkmm")
    assert (cell["verdict"], cell["n_before"], cell["n_after"]) == (SLOWER, 11, 11)
    medians = cell["median_before"], cell["median_after"]
    assert cell["ratio"] == medians[0] / medians[1]
    assert cell["ci95"][1] < 1 / 1.05
    assert cell["p_slower"] < 0.05 < cell["p_faster"]
    assert said["only_in_before"] == [{"scenario": "b", "variant": "bulkmm"}]
    assert said["only_in_after"] == [{"scenario": "c", "variant": "bulkmm"}]
    assert said["correction"] == "holm"


def test_what_is_not_in_both_is_listed(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    before = document(a=times(100), gone=times(100))
    after = document(a=times(100), new=times(100))
    after.results.append(arm("new", "other", times(1)))
    code, out, _ = run(before, after)
    assert code == 0
    assert "only in A: gone: bulkmm" in out
    assert "only in B: new: bulkmm, other" in out
    code, _, err = run(document(a=times(1)), document(b=times(1)))
    assert code == 2
    assert "no scenario and variant in common" in err


def test_other_sizes_do_not_compare(run: Callable[..., tuple[int, str, str]]) -> None:
    before, after = document(a=times(100)), document(a=times(100))
    before.results.append(arm("b", "v", times(1), 128 << 20))
    after.results.append(arm("b", "v", times(9), 1 << 30))
    code, out, _ = run(before, after)
    assert code == 0
    assert "not compared: b, v: 128 MiB in A, 1 GiB in B" in out
    del before.results[0]
    code, _, err = run(before, after)
    assert (code, "128 MiB in A" in err) == (2, True)


def test_a_sample_of_no_time_has_no_ratio(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    zero = document(a=[0.0, *times(100)])
    code, _, err = run(document(a=times(100)), zero)
    assert (code, "took no time" in err) == (2, True)


def test_too_few_samples_are_said(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run(document(a=[100.0] * 2), document(a=[900.0] * 2))
    assert code == 0
    assert "few: 1 of 1 cells have too few samples" in out
    assert "n = 3 in each" in " ".join(out.split())
    assert "few:" not in run(document(a=times(1)), document(a=times(1)))[1]


def test_differing_machines_are_warned_of(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    other = document(a=times(100))
    other.machine["cpu"] = {"model": "B CPU", "cores": 4, "caches": {"L2": "1M"}}
    other.machine.update(kernel="7.3", accelerator="KVM", thp="always")
    other.machine["guest"] = {"kernel": "6.12"}
    other.run.update(huge_bytes=16 << 20, backend="plain")
    other.checks.append(Check("output of glibc", ok=False, detail=""))
    out = " ".join(run(document(a=times(100)), other)[1].split())
    for said in (
        "different CPU: A CPU in A, B CPU in B",
        "different number of CPUs: 2 in A, 4 in B",
        "different cache L2: 512K in A, 1M in B",
        "different kernel: 6.18 in A, 7.3 in B",
        "different guest kernel: unknown in A, 6.12 in B",
        "different accelerator: native in A, KVM in B",
        "different transparent huge page setting: madvise in A, always in B",
        "different share of huge pages: 100 % in A, 25 % in B",
        "different run: backend: unknown in A, plain in B",
        "B.json: checks failed: output of glibc",
    ):
        assert f"warning: {said}" in out or said in out
    assert out.count("warning: ") == 10


def test_emulated_time_compares_only_with_its_like(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    native, emulated = document(a=times(100)), document(a=times(100))
    emulated.machine["accelerator"] = "TCG"
    for pair in ((native, emulated), (emulated, native)):
        code, out, err = run(*pair)
        assert (code, out) == (2, "")
        assert "emulated time does not compare with real time" in err
    code, out, err = run(emulated, emulated)
    assert (code, out) == (2, "")
    assert "emulated times do not compare, and no work was counted" in err


def test_emulated_work_compares_as_work(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    less, more = (document(a=times(100)) for _ in range(2))
    for held, instructions in ((less, 4_000_000), (more, 5_000_000)):
        held.machine["accelerator"] = "TCG"
        held.results += [
            stats.summarise(
                "a", "bulkmm", unit, 1, [instructions + i for i in range(9)]
            )
            for unit in ("instructions", "stores")
        ]
    code, out, _ = run(less, more)
    assert code == 1
    row = next(line for line in out.splitlines() if "bulkmm" in line and " M " in line)
    assert row.split()[2:6] == ["4.000", "M", "5.000", "M"]
    assert "-25.0 % (-25.0" in out
    assert "\N{MULTIPLICATION SIGN}" not in out
    assert run(less, less)[0] == 0
    assert run(more, less)[0] == 0


def broken(**change: Any) -> str:
    held = json.loads(document(a=times(100)).to_json())
    held["results"][0].update(change)
    return json.dumps(held)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no JSON", "not a bulkmm result"),
        ("[]", "not a bulkmm result"),
        ("{}", "'schema_version' is missing"),
        ('{"schema_version": 1}', "'machine' is missing"),
        ('{"schema_version": 2}', "schema version 2 is not known"),
        (broken(samples=[]), "a, bulkmm: no samples"),
        (broken(samples=["1"]), "a sample is no number"),
        (broken(samples=[float("nan")]), "a sample is no number"),
        (broken(samples=[-1]), "a sample is no number"),
        (broken(ci95=[1]), "ci95 is no pair"),
        (broken(median=None), "a sample is no number"),
        (broken(unit="s"), "unit is none of ns, instructions, stores"),
        (broken(scenario=1), "a name is no text"),
        (broken(more=1), "more"),
        (broken().replace('"native"', '"magic"'), "accelerator 'magic' is not known"),
        (broken().replace('"cpu": {', '"cpu": 1, "x": {'), "cpu is no object"),
        (broken().replace('"results": [{', '"results": [1, {'), "not a bulkmm result"),
    ],
)
def test_a_bad_file_is_named_and_said_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    document(a=times(100)).write(good)
    bad.write_text(text)
    for pair in ((good, bad), (bad, good)):
        assert cli.main(["compare", *map(str, pair)]) == 3
        err = capsys.readouterr().err
        assert err.startswith(f"bulkmm: {bad}: ")
        assert said in err
        assert err.count("\n") == 1


def test_an_arm_that_is_there_twice(run: Callable[..., tuple[int, str, str]]) -> None:
    twice = document(a=times(100))
    twice.results *= 2
    code, _, err = run(document(a=times(100)), twice)
    assert (code, "a, bulkmm is there twice" in err) == (3, True)


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "none.json")
    assert cli.main(["compare", file, file]) == 3
    assert capsys.readouterr().err == f"bulkmm: {file}: No such file or directory\n"


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; from bulkmm import cli; cli.parser().format_help(); "
        "slow = ('matplotlib', 'numpy', 'rich', 'scipy'); "
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
