# SPDX-License-Identifier: GPL-2.0-only
"""The limit, picks, goals and controls, from events that were made up."""

from pathlib import Path
from typing import Any

import pytest
from eventlib import Times, document, steady

from bench import goals, populate, stage, subjects
from bench.kernel import measure
from bulkmm import cli
from bulkmm.results.model import Document

LIMIT_CHECK = "nothing of clear is faster than its limit"


def arms(**times: Any) -> Times:
    """Return steady times, or those given; "__" in a name is a colon, "_" a hyphen."""
    return {
        name.replace("__", ":").replace("_", "-"): steady(ns)
        if isinstance(ns, int)
        else ns
        for name, ns in times.items()
    }


def cleared(scenario: str = "clear-2m", **times: Any) -> Document:
    usual = {"rep_stosb": 1000, "rep_stosb_again": 1001, "libpmem2": 450}
    picks = [(scenario, "bulkmm-streaming", "clzero")]
    scenarios = {scenario: arms(**usual | times)}
    result: Document = document((subjects.CLEAR, scenarios), picks=picks)
    return result


LIMITS = {"limit__rep": 600, "limit__clzero": 400}


def ratio(result: Document, base: str, variant: str) -> Any:
    (match,) = (r for r in result.ratios if (r.base, r.variant) == (base, variant))
    return match


def test_the_limit_is_the_fastest_kind() -> None:
    result = cleared(bulkmm_streaming=420, **LIMITS)
    arms_by_variant = {r.variant: r for r in result.results}
    assert arms_by_variant["limit"].samples == arms_by_variant["limit:clzero"].samples
    order = ["rep-stosb", "rep-stosb-again", "libpmem2", "bulkmm-streaming"]
    assert [*arms_by_variant] == [*order, "limit", "limit:clzero", "limit:rep"]
    picks = {"bulkmm-streaming": "clzero", "limit": "clzero"}
    assert result.run["picks"] == {"clear-2m": picks}
    assert ratio(result, "limit", "bulkmm-streaming").ratio == pytest.approx(0.95, 0.02)


@pytest.mark.parametrize("scenario", ["clear-2m-again", "clear-2m-then-read"])
def test_only_cold_and_unused_memory_has_a_limit(scenario: str) -> None:
    result = cleared(scenario, bulkmm_streaming=100, **LIMITS)
    assert "limit" not in {r.variant for r in result.results}
    assert LIMIT_CHECK not in {c.name for c in result.checks}


@pytest.mark.parametrize(
    ("fast", "ok"),
    [
        ({"bulkmm_streaming": 300}, False),
        ({"bulkmm_streaming__clzero": 300}, False),
        ({"glibc": 300}, False),
        ({"bulkmm_streaming": 396}, True),  # within two percent
        ({"bulkmm_cached": 300, "bulkmm_cached__plain": 300}, True),  # stays in a cache
        ({"bulkmm_streaming_2t": 200, "limit_2t": 200}, True),
        # one process in which it is not faster
        ({"glibc": [[390], [300], [300], [300], [405]]}, True),
        # a control that moves by more
        ({"glibc": 300, "rep_stosb_again": 1500}, True),
    ],
)
def test_what_beats_the_limit_is_found(fast: dict[str, Any], *, ok: bool) -> None:
    verdicts = {one.name: one.ok for one in cleared(**fast, **LIMITS).checks}
    assert verdicts[LIMIT_CHECK] is ok


@pytest.mark.parametrize(
    ("subject", "scenario", "variant", "ok"),
    [
        ("memmap", "pmem-fsdax-100g", "bulkmm", False),
        ("vmap", "vmap-100m-order8", "pte", False),
        ("vmap", "vmap-100m-order8-adjacent", "block", False),
        ("clear", "thp-2m", "bulkmm-streaming", False),
        ("clear", "thp-2m", "bulkmm-cached", True),  # stays in a large cache
    ],
)
def test_what_beats_the_limit_of_a_kernel_is_found(
    subject: str, scenario: str, variant: str, *, ok: bool
) -> None:
    times = {variant: steady(300), **arms(stock=1000, stock_again=1001, limit__a=400)}
    result = document((measure.SUBJECTS[subject], {scenario: times}))
    verdicts = {one.name: one.ok for one in result.checks}
    assert verdicts[f"nothing of {subject} is faster than its limit"] is ok


def test_beating_the_limit_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = cleared(bulkmm_streaming=300, **LIMITS)
    monkeypatch.setattr("bench.measure.run_bench", lambda *_: result)
    assert cli.main(["bench", "clear"]) == 1
    assert f"{LIMIT_CHECK}: clear-2m bulkmm-streaming" in capsys.readouterr().err


def test_the_subjects_of_a_run_are_judged_together() -> None:
    """What is uneven is as often as even chance, beside something more even."""

    def slowed(by: list[int]) -> Times:
        return {"glibc": [[1000 + ns] for ns in by], "bulkmm-cached": [[1000]] * 6}

    uneven = subjects.CLEAR, {"clear-2m": slowed([9, 9, 9, 9, 9, 99])}
    even = subjects.COPY, {"copy-2m": slowed([9, 9, 9, 9, 9, 9])}
    alone = [document(uneven), document(even)]
    assert [r.significant for one in alone for r in one.ratios] == [True, True]
    together = document(uneven, even)
    assert [r.significant for r in together.ratios] == [False, True]
    assert together.ratios[1:] == alone[1].ratios


def test_a_pick_stands_against_the_best_backend() -> None:
    result = cleared(
        bulkmm_streaming=500, bulkmm_streaming__movnti=480, bulkmm_streaming__clzero=400
    )
    comparison = ratio(result, "bulkmm-streaming:clzero", "bulkmm-streaming")
    assert comparison.ratio == pytest.approx(0.8, 0.02)
    (line,) = goals.list_missed(goals.judge_goals(result), selections=True)
    assert line.startswith("not met: selection of streaming clear: clear-2m, ")
    assert "bulkmm-streaming:clzero 0." in line


@pytest.mark.parametrize(("plain", "ratios"), [(60, []), (40, [0.894])])
def test_a_pick_is_judged_by_all_uses(plain: int, ratios: list[float]) -> None:
    """What loses more cold than it wins hot is not missed."""
    cold, hot = {"rep": 100, "plain": 200}, {"rep": 100, "plain": plain}
    times = {
        f"copy-64k{use}": arms(
            bulkmm_cached=each["rep"],
            **{f"bulkmm_cached__{name}": ns for name, ns in each.items()},
        )
        for use, each in (("", cold), ("-again", hot))
    }
    result = document((subjects.COPY, times))
    (outcome,) = (o for o in goals.judge_goals(result) if o.goal.is_selection)
    assert [r.ratio for r in outcome.missed] == pytest.approx(ratios, 0.02)
    assert [r.scenario for r in outcome.ratios] == ["copy-64k"]


@pytest.mark.parametrize(("clzero", "lines"), [(490, 0), (400, 1)])
def test_processes_agree_unless_backends_are_alike(clzero: int, lines: int) -> None:
    result = cleared(
        bulkmm_streaming=500,
        bulkmm_streaming__movnti=500,
        bulkmm_streaming__clzero=clzero,
    )
    result.run["picks"] = {"clear-2m": {"bulkmm-streaming": "clzero/movnti"}}
    messages = goals.list_disagreements(result)
    assert len(messages) == lines
    assert all("clear-2m, bulkmm-streaming: clzero/movnti" in line for line in messages)


def test_a_goal_is_against_the_fastest_of_its_bases() -> None:
    times = {
        "copy-64k": arms(glibc=1000, libpmem2=600, bulkmm_streaming=500),
        "copy-1g": arms(glibc=500, libpmem2=600, bulkmm_streaming=550),
        "copy-64k-again": arms(glibc=100, bulkmm_streaming=500, bulkmm_cached=90),
    }
    result = document((subjects.COPY, times))
    outcomes = {one.goal.title: one for one in goals.judge_goals(result)}
    outcome = outcomes["cold streaming copy against glibc, libpmem2"]
    assert [(r.scenario, r.base) for r in outcome.ratios] == [
        ("copy-1g", "glibc"),
        ("copy-64k", "libpmem2"),
    ]
    assert outcome.verdict == "not met: 1 of 2"
    assert [r.scenario for r in outcome.missed] == ["copy-1g"]
    assert outcomes["hot cached copy against glibc"].verdict == "met: 1 of 1"


@pytest.mark.parametrize(("first", "verdict"), [(1040, "met"), (1120, "not met")])
def test_first_use_may_cost_ten_percent(first: int, verdict: str) -> None:
    times = {"first-use-copy-64k": {"first": [[first]] * 5, "settled": [[1000]] * 5}}
    result = document((subjects.FIRST_USE, times))
    outcomes = {one.goal.title: one for one in goals.judge_goals(result)}
    assert outcomes["first use against settled"].verdict.startswith(verdict)


def test_goals_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.json"
    cleared(bulkmm_streaming=500, **LIMITS).write(file)
    assert cli.main(["bench", "goals", str(file)]) == 1
    output = capsys.readouterr().out
    assert "streaming clear against the limit" in output
    assert "not met: 0 of 1" in output
    assert "not met: streaming clear against libpmem2: clear-2m, libpmem2 0.9" in output


def test_goals_that_are_met(tmp_path: Path) -> None:
    cleared(bulkmm_streaming=400).write(tmp_path / "a.json")
    assert cli.main(["bench", "goals", str(tmp_path / "a.json")]) == 0


def test_every_goal_can_be_met_or_missed() -> None:
    """A pattern that fits no scenario would be a goal that nobody notices."""
    documents = [document(
        (measure.SUBJECTS["memmap"], {"pmem-fsdax-100g": arms(
            stock=9, bulkmm=5, bulkmm__movnti=5, limit__rep=5)}),
        (subjects.CLEAR, {f"clear-64k{use}": arms(
            glibc=9, libpmem2=6, limit__rep=5, bulkmm_cached=7, bulkmm_cached__plain=7,
            bulkmm_streaming=5, bulkmm_streaming__clzero=5,
            bulkmm_fill_24=5, bulkmm_fill_64=5)
            for use in ("", "-again", "-then-read")}),
        (subjects.COPY, {f"copy-64k{use}": arms(
            glibc=9, libpmem2=6, bulkmm_cached=7, bulkmm_cached__plain=7,
            bulkmm_streaming=5, bulkmm_streaming__movnti=5, bulkmm_cached_aligned=5)
            for use in ("", "-again", "-misaligned", "-misaligned-again")}),
        (subjects.FIRST_USE, {"first-use-stamp-64k": arms(first=5, settled=5)}),
        (populate.WAYS, {"populate-1g-4k": arms(madvise=9, bulkmm_1=8, python_1=8)}),
        (stage.WAYS, {f"stage-4g-hugetlb{use}": arms(
            bulkmm=5, fio=5, mmap_copy=9, dd=6, populate_streaming=5)
            for use in ("", "-again")}),
    )]  # fmt: skip
    results = Path(__file__).parents[2] / "results"
    for name in ("bench.json", "kernel-*.json", "populate.json"):
        documents += map(Document.read, results.glob(f"*/{name}"))
    evaluated_goals = {
        one.goal for result in documents for one in goals.judge_goals(result)
    }
    assert evaluated_goals == {*goals.GOALS}
