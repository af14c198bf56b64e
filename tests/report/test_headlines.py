# SPDX-License-Identifier: GPL-2.0-only
"""Results of a kernel's own code as what people wait for."""

import json
import re

import made
import pytest

from bench.kernel import run
from bulkmm.report import headlines, page
from bulkmm.results import row_names, size_grid, stats
from bulkmm.results.conditions import DASH
from bulkmm.results.model import Result
from bulkmm.results.result_tables import TIMES
from bulkmm.shell import progress
from bulkmm.worth import gain


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
    table = headlines.make_table([made.kernel()])
    cpus = len(json.loads(gain.RATIOS_FILE.read_text()))
    assert list(table.headings) == [
        *("on this CPU, Linux 7.3", "stock", "bulkmm", "faster", f"on {cpus} CPUs")
    ]
    populated, device = table.rows
    assert populated[:2] == [headlines.HEADLINES[0].title, "6.40 s"]
    assert populated[2].endswith(" s")
    assert 2.2 < float(populated[3].rstrip(TIMES)) < 2.8
    assert device[0] == "a device of 100 GiB comes up, fsdax"
    least, most = map(float, re.findall(r"[\d.]+", device[4]))
    ratios = [
        by_series["7.3"]["memmap"]["ratios"][1]
        for by_series in json.loads(gain.RATIOS_FILE.read_text()).values()
    ]
    assert (least, most) == (min(ratios), max(ratios))


def test_what_is_slower_is_named() -> None:
    slow = made.kernel(bulkmm_ms=125)
    _, losses = headlines.list_notes([slow, made.kernel("6.12.1", bulkmm_ms=140)])
    name, least, most = re.findall(
        rf"(thp-2m-populate) (0\.\d\d){DASH}(0\.\d\d){TIMES}", losses
    )[0]
    assert name == "thp-2m-populate"
    assert 0.65 < float(least) < float(most) < 0.85
    assert len([*headlines.list_notes([made.kernel()])]) == 1


def test_other_results_have_no_sentences() -> None:
    two_kernels = made.kernel()
    two_kernels.run[size_grid.AGAINST] = "6.12.1"
    for document in (two_kernels, made.bench(), made.document([], [])):
        assert headlines.make_table([document]).rows == []


def test_the_page_begins_with_the_sentences() -> None:
    html = page.render_html([made.kernel()], ["a"], "t")
    title = headlines.HEADLINES[0].title
    assert 0 < html.index(title) < html.index("thp-2m-populate")
    assert headlines.SCOPE in html.replace("&#39;", "'")


def test_the_page_of_a_fast_kernel_names_no_loss() -> None:
    html = page.render_html([made.kernel()], ["a"], "t")
    assert "Slower with bulkmm" not in html


@pytest.mark.parametrize(
    ("elapsed", "number", "words"),
    [
        (9, 0, ""),
        (9, 1, ""),
        (10, 2, ", about 50 s left"),
        (29, 2, ", about 2 min left"),
        (59, 6, ", about 12 s left"),
        (90, 7, ", about 0 s left"),
    ],
)
def test_the_time_left(elapsed: float, number: int, words: str) -> None:
    assert progress.estimate_left(elapsed, number, 6) == words
