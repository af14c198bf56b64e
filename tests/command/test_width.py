# SPDX-License-Identifier: GPL-2.0-only
"""What is printed keeps to the width of the terminal, and no word of it is lost."""

import sys

import pytest
from commandlib import Command
from fakekernel import Fake, load_module, make_pool

from bulkmm.control.format import split_columns, wrap_columns
from bulkmm.control.system_files import SystemFiles
from bulkmm.results.table import Table
from bulkmm.shell.width import WIDTH, measure_width, wrap_line
from bulkmm.worth import gain, report, uncounted

NAMES = (
    *(("memmap", "memmap_init_zone_device"), ("clear", "folio_zero_user")),
    ("vmap", "vmap_small_pages_range_noflush"),
)


@pytest.fixture(params=[80, WIDTH])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Have a terminal of a width."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def list_words(lines: list[str]) -> str:
    """Return the words of lines."""
    return " ".join(" ".join(lines).split())


def check_width(lines: list[str], columns: int) -> None:
    """Check that lines fit, and that they use the width."""
    lengths = [len(line) for line in lines]
    assert columns - 20 < max(lengths) <= columns, max(lines, key=len)


def make_worth(*, with_earlier: bool) -> report.Worth:
    """Return a result whose lines are wider than any terminal here."""
    figures = {"path": "vmap", "served": True, "calls": 3456, "too_small": 0}
    times = {"timed": 3456, "seconds": 0.0167, "cpu_share": 0.49}
    rows = [
        report.Row(
            **{**figures, **times, "path": path, "function": function},  # type: ignore[arg-type]
            ratio=(1.49, 1.64),
            saved_seconds=(0.000587, 0.000916),
        )
        for path, function in NAMES
    ]
    comparisons = [
        report.Comparison(path, name, (1.41, 21.83), 505_000.0, 34_800.0, 14.53, on)
        for (path, name), on in zip(NAMES, (True, True, False), strict=True)
    ]
    comparisons = comparisons if with_earlier else []
    early = [gain.Early("clear", "160 MiB of free huge pages of 2M", 9, 0.016, 0.008)]
    return report.Worth(
        kernel="7.3.4+deb13-cloud-amd64",
        cpu="AuthenticAMD-25-17-1",
        module=with_earlier,
        command=["sh"],
        seconds=1.0,
        ratios_from=f"the least of 4 {gain.OTHER_CPUS}: this one has no results yet",
        functions=rows,
        not_counted=[],
        before=early,
        cost_seconds=0.1,
        compared=comparisons,
        verdict=report.state_loaded(["clear", "memmap"], comparisons)
        if with_earlier
        else report.state_verdict(rows, early, 0.01),
    )


@pytest.mark.parametrize("with_earlier", [False, True])
def test_worth(columns: int, *, with_earlier: bool) -> None:
    result = make_worth(with_earlier=with_earlier)
    whole = [result.verdict, report.describe_scope(result), *report.list_notes(result)]
    assert len(result.verdict) > WIDTH
    lines = report.format_lines(result)
    check_width(lines, columns)
    words = list_words(lines)
    assert all(list_words([line]) in words for line in whole)
    tables = [line for line in lines if line.startswith("path ")]
    assert len(tables) == (1 + with_earlier) * (1 if columns == WIDTH else 2)
    ends = {line.split()[-1] for line in tables}
    assert ends >= {"saves", *(["now"] if with_earlier else [])}


def test_worth_without_counting(kernel: Fake, columns: int) -> None:
    make_pool(kernel, {0: (10, 6, 0)})
    check_width(uncounted.list_uncounted(SystemFiles(kernel.root)), columns)


def test_doctor(kernel: Fake, bulkmm: Command, columns: int) -> None:
    """Only remedies, which users copy, may be wider."""
    del kernel
    document, lines = bulkmm("doctor", "--json").json, bulkmm("doctor").out.splitlines()
    texts = [document["verdict"], *(one["says"] for one in document["checks"])]
    assert max(map(len, texts)) > WIDTH
    assert all(list_words([line]) in list_words(lines) for line in texts)
    remedies = {f"  {line}" for line in document["remedies"]}
    check_width([line for line in lines if line not in remedies], columns)


def test_status(kernel: Fake, bulkmm: Command, columns: int) -> None:
    lines = bulkmm("status").out.splitlines()
    check_width(lines, columns)
    load_module(kernel)
    kernel.counters("memmap", **{f"fallback_{n}": 123_456 for n in ("small", "off")})
    texts = bulkmm("status", "--json").json["kernel"]["says"]
    for words in ((), ("memmap", "clear")):
        lines = bulkmm("status", *words).out.splitlines()
        check_width(lines, columns)
        assert texts in list_words(lines)


def test_a_last_column_is_wrapped_below_itself(columns: int) -> None:
    text = "word " * 40
    first, *rest = wrap_columns([("a", "bb", text.strip()), ("aaa", "b", "c")])
    assert first.startswith("a    bb  word word")
    assert all(line.startswith("         word") for line in rest[:-1])
    assert rest[-1] == "aaa  b   c"
    check_width([first, *rest], columns)
    # beside so much there is no room for a column
    long = wrap_columns([("x" * 60, text.strip())])
    if columns == 80:
        assert long[1].startswith("  word")


def test_what_fits_is_left_as_it_is(columns: int) -> None:
    line = f"  a  {'b' * (columns - 5)}"
    assert wrap_line(line) == [line]
    assert wrap_line(line + "b")[1].startswith("    b")
    path = "/" + "p" * columns
    assert wrap_line(f"{path} there") == [path, "  there"]
    rows = [("key", "b" * (columns - 5)), ("k", "b")]
    assert len(split_columns(rows, 1)) == len(rows)


def test_the_width_of_a_terminal_that_does_not_know_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert measure_width() == WIDTH


def test_what_is_piped_is_not_wrapped(
    kernel: Fake, bulkmm: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    del kernel
    document, lines = bulkmm("doctor", "--json").json, bulkmm("doctor").out.splitlines()
    texts = [document["verdict"], *(one["says"] for one in document["checks"])]
    lines += bulkmm("status").out.splitlines()
    texts.append(bulkmm("status", "--json").json["kernel"]["says"])
    words = [f"cell-{i}" for i in range(WIDTH // 4)]
    Table(words, [words]).print()
    lines += capsys.readouterr().out.splitlines()
    texts.append(" ".join(words))
    for text in texts:
        assert any(line.endswith(text) for line in lines), text
    assert len(document["verdict"]) > WIDTH
