# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm compare``: what counts as proven, what is refused, what it says."""

import json
import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from bulkmm import cli
from bulkmm.report import compare
from bulkmm.report.compare import FASTER, SLOWER, UNPROVEN
from bulkmm.results import stats
from bulkmm.results.model import ALPHA, Check, Document, Result
from bulkmm.shell.errors import UsageError

Run = Callable[..., tuple[int, str, str]]

MACHINE = {
    "accelerator": "native",
    "kernel": "6.18",
    "cpu": {"model": "A CPU", "cores": 2, "caches": {"L2": "512K"}},
    "thp": "madvise",
}
RUN = {"scenario": "clear", "huge_bytes": 64 << 20, "bytes": 64 << 20}


def times(middle: float, n: int = 6, spread: float = 0.002, seed: int = 1) -> Any:
    chance = random.Random(seed)  # noqa: S311
    return [middle * (1 + spread * chance.uniform(-1, 1)) for _ in range(n)]


def arm(scenario: str, variant: str, samples: list[float], size: int = 64) -> Result:
    return stats.summarise_arm(scenario, variant, "ns", size, samples)


def build(n: int = 4, seed: int = 1, **middles: float) -> list[Document]:
    """Return so many runs of one build; each run has its own luck."""
    chance = random.Random(f"{seed} {middles}")  # noqa: S311
    documents = [Document(machine=deepcopy(MACHINE), run=dict(RUN)) for _ in range(n)]
    for i, document in enumerate(documents):
        for name, middle in middles.items():
            samples = times(middle * chance.uniform(0.998, 1.002), seed=i)
            document.results.append(arm(name, "bulkmm", samples))
    return documents


def judge_samples(
    before: list[float], after: list[float], threshold: float = 0.05
) -> str:
    pair = arm("s", "v", before), arm("s", "v", after)
    return compare.judge_pairs([pair], threshold)[0].verdict


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what compares the runs of two builds by the command."""

    def run_compare(before: list[Document], after: list[Document], *words: str) -> Any:
        sides: list[list[str]] = [[], []]
        for letter, side, documents in zip("AB", sides, (before, after), strict=True):
            for i, document in enumerate(documents):
                side.append(str(tmp_path / f"{letter}{i}.json"))
                document.write(tmp_path / f"{letter}{i}.json")
        code = cli.main(["compare", *words, *sides[0], "--", *sides[1]])
        output = capsys.readouterr()
        return code, output.out, output.err

    return run_compare


@pytest.mark.parametrize(
    ("text", "value"),
    [("5%", 0.05), ("5 %", 0.05), (".5", 0.5), ("2.5%", 0.025), ("0", 0), ("100%", 1)],
)
def test_thresholds(text: str, value: float) -> None:
    assert compare.parse_threshold(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "1", "101%", "", "%", "-5%", "nan", "1e-2"])
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
    assert judge_samples(times(100), after, threshold) == expected


def test_the_whole_range_must_be_beyond() -> None:
    before, after = [100.0, 101, 102, 103], [106.0, 112, 114, 116]
    assert judge_samples(before, after, 0) == SLOWER
    assert judge_samples(before, after) == UNPROVEN  # 106 is within 5 % of 103
    assert judge_samples(after, before) == UNPROVEN
    assert judge_samples(after, before, 0) == FASTER


def test_equal_samples_prove_nothing() -> None:
    assert judge_samples([100.0] * 11, [100.0] * 11, 0) == UNPROVEN


@pytest.mark.parametrize(
    ("n", "m", "proven"),  # one way of 35, two of 70, two of 20
    [(4, 4, True), (3, 4, True), (3, 3, False), (1, 1, False)],
)
def test_how_many_files_it_takes(n: int, m: int, *, proven: bool) -> None:
    assert (compare.smallest_p(n, m) <= ALPHA) is proven
    verdict = judge_samples(times(100, n), times(150, m, seed=2))
    assert (verdict == SLOWER) is proven


def test_one_cell_among_a_hundred_takes_no_more_files() -> None:
    pairs = [
        tuple(arm("s", f"{i}", times(100, 4, seed=seed)) for seed in (i, 999 - i))
        for i in range(99)
    ]
    pairs += [(arm("s", "v", times(100, 4)), arm("s", "v", times(150, 4, seed=2)))]
    cells = compare.judge_pairs(pairs, 0)
    assert cells[0].before.variant == "v"
    assert [cell.verdict for cell in cells].count(SLOWER) == 1


def test_exit_codes_and_order(run: Run) -> None:
    before = build(a=100, b=100, c=100, d=100)
    after = build(a=90, b=101, c=120, d=140)
    code, out, err = run(before, after)
    assert code == 1
    assert err == "bulkmm: 2 of 4 slower by more than 5 %\n"
    rows = [line.split() for line in out.splitlines() if " bulkmm " in line]
    assert [row[0] for row in rows] == ["d", "c", "b", "a"]
    assert [row[-1] for row in rows] == ["slower", "slower", "~", "faster"]
    code, out, err = run(before, build(seed=2, a=100, b=100, c=100, d=100))
    assert (code, err) == (0, "")
    assert "warning" not in out
    assert run(before, after, "--threshold", "50%")[0] == 0


def test_json(run: Run) -> None:
    code, out, _ = run(build(a=100, b=1), build(a=120, c=1), "--json")
    result = json.loads(out)
    assert code == 1
    (cell,) = result["cells"]
    assert (cell["scenario"], cell["variant"]) == ("a", "bulkmm")
    assert (cell["verdict"], cell["spread"]) == (SLOWER, "range")
    assert cell["ratio"] == cell["median_before"] / cell["median_after"]
    assert cell["ci95"][1] < 1 / 1.05
    assert cell["p"] == pytest.approx(2 / 70)
    assert [len(result[side]["files"]) for side in ("before", "after")] == [4, 4]
    assert result["only_in_before"] == [{"scenario": "b", "variant": "bulkmm"}]
    assert result["only_in_after"] == [{"scenario": "c", "variant": "bulkmm"}]
    assert result["correction"] == "max-T"


def test_what_is_not_in_all_is_listed(run: Run) -> None:
    before, after = build(a=100, gone=100), build(a=100, new=100)
    for document in after:
        document.results.append(arm("new", "other", times(1)))
    for document in (before[0], *after):  # in one file of a side
        document.results.append(arm("once", "v", times(1)))
    code, out, _ = run(before, after)
    assert code == 0
    assert "only in A: gone: bulkmm\n" in out
    assert "only in B: new: bulkmm, other" in out
    assert "not compared: once: v: not in every file" in out


def test_many_that_are_not_in_all_are_counted(run: Run) -> None:
    names = {f"gone{number}": 100 for number in range(9)}
    _, out, _ = run(build(a=100, **names), build(a=101))
    assert "only in A: 9 variants of 9 scenarios (--all-rows names them)" in out
    _, out, _ = run(build(a=100, **names), build(a=101), "--all-rows")
    assert "only in A: gone0: bulkmm; gone1: bulkmm; " in out


def test_other_sizes_do_not_compare(run: Run) -> None:
    before, after = build(a=100), build(seed=2, a=100)
    for side, size in ((before, 128 << 20), (after, 1 << 30)):
        for i, document in enumerate(side):
            document.results.append(arm("b", "v", times(1, seed=i), size))
    code, out, _ = run(before, after)
    assert code == 0
    assert "not compared: b: v: 128 MiB in A, 1 GiB in B" in out


def test_what_does_not_compare(run: Run) -> None:
    usual, large, emulated = (build(2, seed=seed, a=100) for seed in range(3))
    for document in large:
        document.results[0].bytes = 1 << 30
    for document in emulated:
        document.machine["accelerator"] = "TCG"
    for sides, message in (
        ((usual, build(b=1)), "no scenario and variant in common"),
        ((usual, large), "64 B in A, 1 GiB in B"),
        ((usual, [*usual[:1], *build(1, a=0)]), "a median of no time"),
        ((usual, emulated), "emulated time does not compare with real time"),
        ((emulated, emulated), "emulated times do not compare, and no work was"),
    ):
        code, out, err = run(*sides)
        assert (code, out, message in err) == (2, "", True), err


def test_too_few_files_are_said(run: Run) -> None:
    """Of one file a side the ratio alone, without a spread."""
    code, out, _ = run(build(1, a=100), build(1, a=900))
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("a "))
    assert row.split()[-2:] == ["0.11\N{MULTIPLICATION SIGN}", "~"]
    text = " ".join(out.split())
    assert "1 and 1 files prove nothing" in text
    assert "4 times or more" in text
    code, out, _ = run(build(3, a=100), build(3, a=900))
    assert (code, "3 and 3 files prove nothing" in out) == (0, True)
    assert "prove nothing" not in run(build(a=100), build(a=101))[1]


def test_differing_machines_are_warned_of(run: Run) -> None:
    side, other_side = build(2, a=100), build(2, seed=2, a=100)
    for document in other_side:
        document.machine["cpu"] = {"model": "B CPU", "cores": 4, "caches": {"L2": "1M"}}
        document.machine.update(kernel="7.3", accelerator="KVM", thp="always")
        document.machine["guest"] = {"kernel": "6.12"}
        document.run.update(huge_bytes=16 << 20, backend="plain")
    other_side[0].checks.append(Check("output of glibc", ok=False, detail=""))
    side[1].machine["kernel"] = "6.19"  # of one file
    out = " ".join(run(side, other_side)[1].split())
    for warning in (
        "different CPU: A CPU in A, B CPU in B",
        "different number of CPUs: 2 in A, 4 in B",
        "different cache L2: 512K in A, 1M in B",
        "different kernel: 6.18, 6.19 in A, 7.3 in B",
        "different guest kernel: unknown in A, 6.12 in B",
        "different accelerator: native in A, KVM in B",
        "different transparent huge page setting: madvise in A, always in B",
        "different memory in huge pages: at most 100 % in A, at most 25 % in B",
        "different run: backend: unknown in A, plain in B",
        "B0.json: checks failed: output of glibc",
    ):
        assert f"warning: {warning}" in out or warning in out
    assert out.count("warning: ") == 10


def test_emulated_work_compares_as_work(run: Run) -> None:
    less, more = build(a=100), build(seed=2, a=100)
    for side, instructions in ((less, 4_000_000), (more, 5_000_000)):
        for number, document in enumerate(side):
            document.machine["accelerator"] = "TCG"
            document.results += [
                stats.summarise_arm("a", "bulkmm", unit, 1, [count + number])
                for unit, count in (("instructions", instructions), ("stores", 1))
            ]
    code, out, _ = run(less, more)
    assert code == 1
    row = next(line for line in out.splitlines() if "bulkmm" in line and " M " in line)
    assert row.split()[2:6] == ["4.000", "M", "5.000", "M"]
    assert "-25.0 % [-25.0" in out
    assert "\N{MULTIPLICATION SIGN}" not in out
    assert run(more, less)[0] == 0
    for document in more:
        document.results = [r for r in document.results if r.unit != "stores"]
    assert "counted in another way" in run(less, more)[2]


def test_two_files_need_no_dashes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, document in zip(files, build(2, a=100), strict=True):
        document.write(file)
    outputs = []
    for words in (files, [files[0], "--", files[1]], ["--json", *files]):
        assert cli.main(["compare", *map(str, words)]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[2])["before"]["files"] == [str(files[0])]


RATIO = {"scenario": "a", "base": "stock", "variant": "bulkmm", "ratio": 2}
RATIO |= {"ci95": [2, 2], "significant": True}
RESULT = {"scenario": "a", "variant": "v", "unit": "ns", "bytes": 1, "samples": [2]}
RESULT |= {"median": 2, "ci95": [2, 2], "operation": "a", "arm": "v"}


def document_text(**members: Any) -> str:
    document = json.loads(Document(machine=MACHINE).to_json())
    return json.dumps({**document, "results": [RESULT], **members})


def broken(**change: Any) -> str:
    return document_text(results=[RESULT | change])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no JSON", "not a bulkmm result"),
        ("{}", "no file that -o of bulkmm bench"),
        ('{"schema_version": 3}', "schema version 3 is not known"),
        (
            '{"schema_version": 1}',
            "in a source checkout, with scripts/convert_results.py",
        ),
        (broken(samples=[-1]), ">= 0 - at `$.results[0].samples[0]"),
        (broken(raw=[[1], [1], [1]]), "raw needs a list of times"),
        (document_text(ratios=[RATIO]), "a, stock: a ratio of no result"),
        (broken(more=1), "unknown field `more` - at `$.results[0]`"),
        (document_text(results=[RESULT, RESULT]), "a, v is there twice"),
    ],
)
def test_a_bad_file_is_named_and_said_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    build(1, a=100)[0].write(good)
    bad.write_text(text)
    for pair in ((good, bad), (bad, good)):
        assert cli.main(["compare", *map(str, pair)]) == 3
        err = capsys.readouterr().err
        assert err.startswith(f"bulkmm: {bad}: ")
        assert message in err
        assert err.count("\n") == 1
