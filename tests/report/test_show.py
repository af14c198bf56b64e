# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm show``: what is measured is printed, and fits."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import made
import pytest
from rich.console import Console

from bench.kernel import run
from bulkmm import cli
from bulkmm.control.format import format_duration
from bulkmm.results import published_figures, result_tables, size_grid, table
from bulkmm.results.conditions import DASH
from bulkmm.results.model import Document
from bulkmm.results.result_tables import TIMES

RESULT_FILE = Path(__file__).parents[2] / "results/AuthenticAMD-25-17-1/kernel-7.3.json"
DOCUMENTS = {"guest": made.guest, "bench": made.bench, "kernel": made.kernel}


def screen(*documents: Document, width: int = 100) -> str:
    out = io.StringIO()
    result_tables.print_documents([*documents], Console(file=out, width=width))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@pytest.mark.parametrize("words", [(), ("--markdown",)])
@pytest.mark.parametrize("make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_show_prints_every_scenario(
    make: Callable[[], Document],
    words: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make().write(tmp_path / "a.json")
    assert cli.main(["show", str(tmp_path / "a.json"), *words]) == 0
    output = capsys.readouterr().out
    for result in make().printed().results:
        assert result.scenario in output
        if result.variant in ("rebuild", "stock", "on", "bulkmm"):
            assert result_tables.format_value(result.median, result.unit) in output


def test_json_is_what_the_files_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, make in zip(paths, (made.bench, made.guest), strict=True):
        make().write(path)
    assert cli.main(["show", "--json", *map(str, paths)]) == 0
    texts = [path.read_text() for path in paths]
    assert capsys.readouterr().out == "".join(texts)


def test_what_was_published_stands_below_what_was_measured() -> None:
    output = " ".join(screen(made.bench()).split())
    assert all(
        line in output for line in published_figures.list_figures("memmap-stamp")
    )


def test_ours_stands_beside_the_fastest_peer_and_the_limit() -> None:
    (sizes,) = size_grid.make_size_grids(made.bench())
    assert sizes.rows[0] == ["4k", "20.6; rep-stosb 11.9 ~; limit 21.9"]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_it_fits_and_no_word_is_cut(make: Callable[[], Document], width: int) -> None:
    text = screen(make(), width=width)
    assert max(map(len, text.splitlines())) <= width
    tables = result_tables.make_tables([make()])
    printed = (it if it.fits(width) else it.brief or it for it in tables)
    cells = {cell for it in printed for row in it.rows for cell in row}
    assert {word for cell in cells for word in cell.split()} <= {*text.split()}


def test_a_row_of_a_quick_run_has_one_line_of_80_columns() -> None:
    """A long name of a backend apart; the cells of a wider terminal need two lines."""
    document = Document.read(RESULT_FILE)
    document.results = [r for r in document.results if r.scenario in run.QUICK]
    scenarios = document.scenarios
    document.ratios = [r for r in document.ratios if r.scenario in scenarios]
    whole, brief = (screen(document, width=width) for width in (100, 80))
    spread = f"(0.97{DASH}1.05)"
    gains = f"1.00{TIMES} {spread} ~ !; 0.34", f"1.00{TIMES}~! {spread}  0.34"
    for text, cells in ((whole, "18.9 ms → 18.8 ms"), (brief, "18.9→18.8 ms")):
        name = r"^thp-2m +bulkmm \(rep-b/clzero\) +"
        assert re.search(
            f"{name}{cells} +{re.escape(gains[text is brief])}$", text, re.MULTILINE
        )
    (table,) = result_tables.make_tables([document])
    rows = brief.split("─\n")[1].split("\n\n")[0].splitlines()
    room = len("bulkmm (rep-b/clzero)")
    assert len(rows) == len(table.rows) + sum(len(row[1]) > room for row in table.rows)


def test_columns_without_any_figure_are_left_out() -> None:
    """As GB/s and ratios of emulated times."""
    document = made.guest()
    document.results = [r for r in document.results if r.unit == "ns"]
    (table,) = result_tables.make_tables([document])
    assert table.headings == ["variant", "median [range]", "n", "where"]
    assert {len(row) for row in table.rows} == {1, 4}


def test_what_the_line_of_a_control_has_is_told() -> None:
    """Of one process, none: there is no median of several."""
    document = made.kernel()
    notes = result_tables.list_notes([document, document])
    assert [note.startswith("A/A control") for note in notes].count(True) == 1
    assert notes.count(result_tables.CONTROLS) == 1
    assert "medians" in result_tables.CONTROLS
    del document.run["processes"]
    assert result_tables.CONTROLS not in result_tables.list_notes([document])
    document = made.kernel()
    for result in document.results:
        result.control = ""
    assert result_tables.CONTROLS not in result_tables.list_notes([document])


def test_where_the_other_ratios_are_is_told() -> None:
    document = Document.read(RESULT_FILE)
    rows = result_tables.make_tables([document])[0].rows
    command = "bulkmm show --full --all-rows RESULT.json"
    many = len(document.ratios)
    line = f"Of {many} ratios the table has {len(rows)}: {command} has all "
    line += "(bench keeps one with -o RESULT.json)."
    assert line in result_tables.list_notes([document])
    everything = result_tables.Show(full=True, all_rows=True)
    assert line not in result_tables.list_notes([document], everything)
    (table,) = result_tables.make_tables([document], everything)
    printed = sum(row[4].count(" against ") for row in table.rows if row[1:])
    assert printed == many


def test_what_is_too_wide_is_printed_in_parts() -> None:
    names, out = [f"bulkmm-variant{i}" for i in range(14)], io.StringIO()
    table.Table(names, [names], names[1:]).print(Console(file=out, width=100))
    words = out.getvalue().split()
    assert [words.count(name) for name in names] == [6, *([1] * 13)]


def test_each_part_tells_its_rows_apart() -> None:
    """Of a scenario's variants each has its ratio beside its name."""
    text = screen(made.kernel(), width=44)
    assert text.count("scenario") == text.count("variant ") == 2
    (whole,) = result_tables.make_tables([made.kernel()])
    for scenario, variant, *_ in whole.rows:
        name = rf"^{scenario} +{re.escape(variant.split()[0])} "
        assert len(re.findall(name, text, re.MULTILINE)) == 2, (name, text)


def test_a_word_that_is_longer_than_a_line_stays_whole() -> None:
    path, out = "/" + "x" * 120, io.StringIO()
    table.print_lines([f"warning: {path} is there", ""], Console(file=out, width=80))
    assert out.getvalue() == f"warning:\n{path}\nis there\n\n"


def test_emulated_times_have_no_ratio() -> None:
    uncounted = made.guest()
    uncounted.results = [r for r in uncounted.results if r.unit == "ns"]
    for document in (uncounted, made.guest()):
        assert any(ratio.unit == "ns" for ratio in document.ratios)
        for text in (screen(document), result_tables.format_markdown(document)):
            assert result_tables.TIMES not in text
            assert "published" not in text


def test_times_and_work_share_no_table() -> None:
    text = screen(made.bench(), made.guest())
    assert text.index("GB/s") < text.index("bulkmm") < text.index("fewer instructions")
    assert f"1.50{result_tables.TIMES}" in text
    assert "33.3 %" in text


def test_a_document_without_ratios_or_results() -> None:
    assert "rebuild" in screen(Document(machine={}, results=made.bench().results))
    assert screen(Document(machine={}))


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        *((0, "0 ns"), (49, "49 ns"), (8412, "8.41 \N{MICRO SIGN}s")),
        *((99_960, "100 \N{MICRO SIGN}s"), (1_234_000, "1.23 ms")),
        *((123_400_000, "123 ms"), (9_994_000_000, "9.99 s")),
    ],
)
def test_times_of_every_size(ns: float, expected: str) -> None:
    assert format_duration(ns) == result_tables.format_value(ns, "ns") == expected


def test_the_schema_of_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.validate(json.loads(made.guest().to_json()), schema)


def test_two_kernels_are_both_named() -> None:
    arms = [made.arm("thp-2m", name, 10) for name in ("against", "kernel")]
    two = made.document(arms, [("against", "kernel")])
    two.machine["kernel"] = "6.12.107+deb13-cloud-amd64"
    two.run["against"] = "7.3.4"
    headings = result_tables.make_kernel_table([two]).headings
    assert "7.3.4 → 6.12.107+deb13-cloud-amd64" in headings
