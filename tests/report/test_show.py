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

from bulkmm import cli
from bulkmm.control.format import format_duration
from bulkmm.results import published_figures, result_tables, size_grid, table
from bulkmm.results.model import Document

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
def test_it_fits_and_no_word_is_cut(
    make: Callable[[], Document], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = screen(make(), width=width)
    assert max(map(len, text.splitlines())) <= width
    tables = result_tables.make_tables([make()])
    cells = {cell for it in tables for row in it.rows for cell in row}
    assert {word for cell in cells for word in cell.split()} <= {*text.split()}


def test_what_is_too_wide_is_printed_in_parts() -> None:
    names, out = [f"bulkmm-variant{i}" for i in range(14)], io.StringIO()
    table.Table(names, [names], names[1:]).print(Console(file=out, width=100))
    words = out.getvalue().split()
    assert [words.count(name) for name in names] == [6, *([1] * 13)]


def test_each_part_tells_its_rows_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a scenario's variants each has its ratio beside its name."""
    monkeypatch.setenv("COLUMNS", "44")
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
