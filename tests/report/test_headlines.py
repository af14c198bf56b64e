# SPDX-License-Identifier: GPL-2.0-only
"""Results of a kernel's own code as what people wait for."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made
import pytest

from bench import measure, subjects
from bench.kernel import measure as kernel_measure
from bench.kernel import run
from bench.subjects import Amount, Request
from bulkmm.report import conclusion, headlines, page
from bulkmm.results import row_names, size_grid, stats
from bulkmm.results.conditions import DASH
from bulkmm.results.model import Document, Result
from bulkmm.results.result_tables import TIMES
from bulkmm.shell import progress
from bulkmm.worth import gain

RESULT_FILE = Path(__file__).parents[2] / "results/AuthenticAMD-25-17-1/kernel-7.3.json"


def make_result(scenario: str) -> Result:
    """Return a result of a scenario, with its fields."""
    return stats.summarise_arm(scenario, "stock", "ns", made.GIB, [1.0, 2.0])


def test_each_sentence_has_its_scenario_in_the_kept_figures() -> None:
    for line in headlines.HEADLINES:
        scenario = gain.SCENARIOS[line.kind][line.place].format(device="100g")
        assert headlines.match_headline(make_result(scenario)) is line


def test_a_quick_run_has_every_sentence() -> None:
    lines = [headlines.match_headline(make_result(name)) for name in run.QUICK]
    assert [*filter(None, lines)] == [
        *(headlines.HEADLINES[i] for i in (2, 3, 0, 1, 4, 5))
    ]
    assert all(row_names.read_scenario(name)["operation"] for name in run.QUICK)


def test_a_kernel_has_columns_of_its_own() -> None:
    (table,) = headlines.make_tables([made.kernel()])
    cpu, *headings = table.headings
    assert cpu == "A & B (family 25, model 1), Linux 7.3"
    assert headings == ["stock", "bulkmm", "faster", "CPUs"]
    populated, device = table.rows
    assert populated[:2] == [headlines.HEADLINES[0].title, "6.40 s"]
    assert populated[2].endswith(" s")
    assert 2.2 < float(populated[3].rstrip(TIMES)) < 2.8
    assert device[0] == "a device of 100 GiB comes up, fsdax"
    least, most, cpus = map(float, re.findall(r"[\d.]+", device[4]))
    ratios = [
        by_series["7.3"]["memmap"]["ratios"][1]
        for by_series in json.loads(gain.RATIOS_FILE.read_text()).values()
    ]
    assert (least, most, cpus) == (min(ratios), max(ratios), len(ratios))


def test_of_a_series_without_results_nothing_is_told_of_other_cpus() -> None:
    (table,) = headlines.make_tables([made.kernel("6.18.1")])
    assert [row[4] for row in table.rows] == ["", ""]
    (table,) = headlines.make_tables([made.kernel("6.1.1")])
    assert table.rows[0][4].endswith(" (1)")


def test_each_cpu_has_a_table_of_its_own() -> None:
    newer = made.kernel()
    newer.machine["cpu"]["model_number"] = 2
    two = [*headlines.make_tables([made.kernel(), newer])]
    assert [table.headings[0] for table in two] == [
        f"A & B (family 25, model {number}), Linux 7.3" for number in (1, 2)
    ]


def test_a_table_names_how_the_kernel_returns() -> None:
    """Gains of one CPU depend on it."""
    plain, safe = made.kernel(), made.kernel()
    plain.run["returns"] = "plain returns"
    safe.run["returns"] = "srso_alias_return_thunk"
    assert [table.headings[0] for table in headlines.make_tables([plain, safe])] == [
        f"A & B (family 25, model 1), {returns}, Linux 7.3"
        for returns in ("plain returns", "Safe RET")
    ]


def test_what_is_slower_is_named() -> None:
    slow = made.kernel(bulkmm_ms=125)
    *_, losses = headlines.list_notes([slow, made.kernel("6.12.1", bulkmm_ms=140)])
    name, least, most = re.findall(
        rf"(populating pages of 2 MiB) (0\.\d\d){DASH}(0\.\d\d){TIMES}", losses
    )[0]
    assert name == "populating pages of 2 MiB"
    assert "thp-" not in losses
    assert 0.65 < float(least) < float(most) < 0.85
    assert "(6.12)" not in losses
    *_, losses = headlines.list_notes([slow, made.kernel("6.12.1")])
    assert "populating pages of 2 MiB 0." in losses
    assert losses.count("(7.3)") == len(slow.scenarios)
    *_, losses = headlines.list_notes([made.kernel()])
    assert losses == "Proven to be slower, of what ran: none."


def test_what_is_slower_beside_an_unstable_control_is_named() -> None:
    """Above the legend, on the page, and in its conclusion."""
    document = made.kernel(bulkmm_ms=125)
    whole = headlines.describe_losses([document])
    assert "unstable" not in whole
    for ratio in document.ratios:
        ratio.unstable = ratio.scenario == "thp-2m-populate"
    proven, unstable = headlines.describe_losses([document]).split(
        " Slower, unstable: "
    )
    assert "populating" not in proven
    assert re.fullmatch(rf"populating pages of 2 MiB 0\.\d\d{TIMES}\.", unstable)
    assert f" Slower, unstable: {unstable}" in page.render_html([document], ["a"], "t")
    text = conclusion.draw_conclusion(document)
    assert re.search(
        rf"1 slower \(0.[78]\d{TIMES}\), 1 slower, unstable \(0.[78]", text
    ), text


def test_other_results_have_no_sentences() -> None:
    two_kernels = made.kernel()
    two_kernels.run[size_grid.AGAINST] = "6.12.1"
    for document in (two_kernels, made.bench(), made.document([], [])):
        assert [*headlines.make_tables([document])] == []


def test_the_page_begins_with_the_sentences() -> None:
    html = page.render_html([made.kernel()], ["a"], "t")
    title = headlines.HEADLINES[0].title
    assert 0 < html.index(title) < html.index("thp-2m-populate")
    assert headlines.describe_scope([made.kernel()]) in html.replace("&#39;", "'")


def test_how_much_was_measured_is_told() -> None:
    """And no more of the legend than the rows have."""
    document = Document.read(RESULT_FILE)
    whole = headlines.describe_scope([document])
    assert f"¹ Calculated from 256 MiB{DASH}512 MiB {headlines.NO_POOL}." in whole
    assert whole.endswith(
        "The last column has the least and the most median of the kernels in this "
        "table, for devices of 100 GiB (1.00: a CPU where no gain was proven), and on "
        "how many CPUs. Your run may be outside the span. Devices and mappings gain "
        "more with Safe RET than with plain returns: each return of a function called "
        "for a page is mispredicted there."
    )
    document.results = [r for r in document.results if r.operation == "memmap"]
    assert "¹" not in headlines.describe_scope([document])
    document = made.kernel("6.18.1")
    document.results = [r for r in document.results if r.operation == "clear"]
    scope = headlines.describe_scope([document])
    assert scope == f"{headlines.SCOPE} ¹ Calculated from 1 GiB {headlines.NO_POOL}."


def test_a_quick_run_has_as_much_to_clear_and_copy() -> None:
    """Ratios depend on it; a device's size is in its sentence."""
    for name in ("clear", "copy", "vmap"):
        subject = kernel_measure.SUBJECTS[name]
        assert subject.quick == subject.full


@pytest.mark.parametrize(
    ("elapsed", "complete", "words"),
    [
        (9, 0, ""),
        (10, 1, ", about 50 s left"),
        (29, 1, ", about 2 min left"),
        (60, 5, ", about 12 s left"),
        (90, 6, ", about 0 s left"),
    ],
)
def test_the_time_left(elapsed: float, complete: int, words: str) -> None:
    assert progress.estimate_left(elapsed, complete, 6) == words


def test_what_a_terminal_shows_of_the_native_bench(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process is told of as it begins; its events come when it is over."""
    details, clock = [], iter(range(0, 1000, 10))
    monkeypatch.setattr(
        progress.Progress, "detail", lambda _, text: details.append(text)
    )
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    arm = {"event": "sample", "scenario": "thp-2m", "variant": "stock", "ns": 9}
    start: list[dict[str, object]] = [{**arm, "bytes": 1}, {"event": "start"}]
    request = Request(subjects.COPY, Amount(1), processes=3)
    with progress.Progress().follow_events("first", "bench kernel", 3) as observer:
        assert len([*measure.run_processes(request, observer, lambda *_: start)]) == 3
    assert details == [
        "bench kernel: process 1 of 3",
        "bench kernel: process 1 of 3: thp-2m stock",
        "bench kernel: process 2 of 3, about 20 s left",
        "bench kernel: process 2 of 3, about 20 s left: thp-2m stock",
        "bench kernel: process 3 of 3, about 10 s left",
        "bench kernel: process 3 of 3, about 10 s left: thp-2m stock",
    ]


def test_time_left_is_told_after_a_turn_of_all_subjects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the first subject alone it would be wrong."""
    details, clock = [], 100.0
    monkeypatch.setattr(
        progress.Progress, "detail", lambda _, text: details.append(text)
    )
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock)

    def run(seconds: float) -> Iterator[list[dict[str, Any]]]:
        nonlocal clock
        for _ in range(3):
            observer({"event": "process"})
            clock += seconds
            yield []

    with progress.Progress().follow_events("first", "b", 6, 2) as observer:
        assert measure.take_turns([run(8), run(2)]) == [[[], [], []], [[], [], []]]
    endings = [text.rpartition(", ")[2] for text in details]
    assert endings == [
        *("b: process 1 of 6", "b: process 2 of 6"),
        *("about 20 s left", "about 12 s left", "about 10 s left", "about 2 s left"),
    ]


def test_what_the_whole_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Seconds of a process on this CPU, the share of a bind in any case, or neither."""
    document = made.kernel()
    whole = json.loads(headlines.WHOLE_FILE.read_text()) | {"share_of_bind": []}
    file = tmp_path / "whole.json"
    monkeypatch.setattr(headlines, "WHOLE_FILE", file)

    def describe() -> list[str]:
        file.write_text(json.dumps(whole))
        return [*headlines.describe_whole([document])]

    (text,) = describe()
    assert text.startswith(
        "Of the whole nothing was measured on this CPU: bulkmm bench"
    )
    whole |= {"share_of_bind": [0.957, 0.98], "series_of_bind": "7.3"}
    assert f"is 95.7%{DASH}98.0% of the instructions" in describe()[1]
    document = Document.read(RESULT_FILE)
    for way, nbytes in (("qemu-1", 64), ("touch", 64), ("fork", 8)):
        rates = {"gb_per_s": [0.8, 1.0, 0.5], "function": 0.9}
        series = {"series": "6.18", "series_of_function": "6.12"}
        whole["cpus"]["AuthenticAMD-25-17-1"] = {way: rates | series}
        times = [float(text) for text in re.findall(r"([\d.]+) s", describe()[0])]
        expected = [nbytes * made.GIB / rate / 1e9 for rate in (0.8, 1, 0.5, 0.9)]
        assert times == pytest.approx(expected, rel=5e-3)
    rates = {"gb_per_s": [1.6, 2.0, 1.0]}  # by several threads: no function beside it
    whole["cpus"]["AuthenticAMD-25-17-1"] = {"bulkmm-2": rates | series}
    times = [float(text) for text in re.findall(r"([\d.]+) s\b", describe()[0])]
    expected = [64 * made.GIB / rate / 1e9 for rate in (1.6, 2, 1)]
    assert times == pytest.approx(expected, rel=5e-3)
    assert "libbulkmm with two threads" in describe()[0]


def test_nothing_is_told_of_a_whole_without_a_sentence() -> None:
    document = Document.read(RESULT_FILE)
    document.results = [r for r in document.results if r.operation == "vmap"]
    (text,) = headlines.describe_whole([document])
    assert text.startswith("What a driver does around its mapping")


@pytest.mark.parametrize(
    ("run", "share"),
    [
        ({"load": (9.5, 10.6), "other": 0.62}, "other work had 62% of the time"),
        ({"load": (9.5, 10.6), "other": 0.4}, ""),
        # of older results
        ({"load": (9.5, 10.6)}, f"load 9.5{DASH}10.6"),
        ({"load": (3.2, 1)}, ""),
        ({"load": (1, 2)}, ""),
    ],
)
def test_that_the_cpu_was_busy_is_told_first(run: dict[str, Any], share: str) -> None:
    """In the load after a run is its own; before it a download may have been."""
    document = Document.read(RESULT_FILE)
    document.run |= run
    first = headlines.list_notes([document])[0]
    warning = f"The CPU was busy ({share} on 2 CPUs): times and ratios are not"
    assert first.startswith(warning if share else headlines.SCOPE)
    assert (warning in conclusion.draw_conclusion(document)) == bool(share)
    assert ("Proven" in headlines.describe_losses([document])) != bool(share)
