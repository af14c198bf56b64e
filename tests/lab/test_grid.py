# SPDX-License-Identifier: GPL-2.0-only
"""The matrix's table: what later runs replace in it, and what stays."""

from dataclasses import replace
from pathlib import Path

import pytest

from bulkmm import cli
from bulkmm.results.conditions import DASH
from bulkmm.results.model import Check, Document
from lab import run
from lab.commands import matrix, page
from lab.commands.grid import Grid
from lab.machine import cached

OLD = """\
| path | scenario | 7.3-debug.6c0026-amd64 x86_64 | 7.3.4-patched.0f2f51-amd64 x86_64 |
|---|---|---|---|
| memmap | `hook-faults` | passed 2 of 2 |  |
| suites | `kunit` |  | passed 3 of 3 |
| suites | `hook-patched` |  | passed 4 of 4 |
"""
NEW = "7.3.5+deb13-patched.60d39a-amd64 x86_64"


def test_what_was_read_is_written() -> None:
    assert "\n".join(Grid(OLD).markdown()) == OLD


def test_other_tables_of_a_page_are_not_read() -> None:
    foreign_table = "| a | b | c |\n|---|---|---|\n| x | y | z |\n"
    assert not Grid(foreign_table).table().rows
    page_text = f"{foreign_table}\n{OLD}\n| a | b |\n|---|---|\n| x | y |\n"
    assert "\n".join(Grid(page_text).markdown()) == OLD


def test_a_verdict_replaces_that_on_another_release_of_the_same_kernel() -> None:
    grid = Grid(OLD)
    grid.add("suites", "kunit", NEW, "FAILED: a|b")
    grid.add("suites", "kunit", "patched-6.12 x86_64", "passed")
    grid.add("clear", "hugetlb-2m", NEW, "passed")
    table = grid.table()
    assert [*table.headings[2:]] == [
        *("patched-6.12 x86_64", "7.3-debug.6c0026-amd64 x86_64"),
        *("7.3.4-patched.0f2f51-amd64 x86_64", NEW),
    ]
    assert [*table.rows] == [
        ("memmap", "hook-faults", "", "passed 2 of 2", "", ""),
        ("clear", "hugetlb-2m", "", "", "", "passed"),
        ("suites", "kunit", "passed", "", "", "FAILED: a/b"),
        ("suites", "hook-patched", "", "", "passed 4 of 4", ""),
    ]
    grid.add("suites", "hook-patched", NEW, "passed 5 of 5")
    assert "0f2f51" not in "".join(grid.table().headings)


@pytest.mark.parametrize(
    ("old", "new", "alike"),
    [
        ("6.12.107+deb13-cloud-amd64", "6.12.118+deb13-cloud-amd64", True),
        ("6.1.0-56-amd64", "6.1.0-57-amd64", True),
        ("6.12", "6.12.118+deb13-cloud-amd64", True),
        ("debug", "7.3.4+deb13-debug.6c0026-amd64", True),
        ("6.12.118+deb13-amd64", "6.12.118+deb13-cloud-amd64", False),
        ("6.12.118+deb13-amd64", "7.2.12+deb13-amd64", False),
        ("base", "base-6.12", False),
    ],
)
def test_kernels_are_told_apart(old: str, new: str, alike: bool) -> None:  # noqa: FBT001
    grid = Grid()
    for name in (old, new):
        grid.add("clear", "`thp-2m`", f"{name} x86_64", "passed")
    assert (len(grid.table().headings) == 3) is alike


def test_a_run_that_fails_joins_the_column_of_its_kernel() -> None:
    """Whose release a run without a result does not tell."""
    grid = Grid()
    names = [f"6.1.0-{n}-cloud-amd64 x86_64" for n in (55, 56)]
    for name, scenario in zip(names, ("mthp", "thp-2m"), strict=True):
        grid.add("clear", scenario, name, "passed")
    cell = matrix.Cell("clear", "x86_64", "6.1", "clear-cases")
    for failed in (cell, replace(cell, kernel="6.12")):
        matrix.add_line(grid, matrix.make_failure(failed, "why"))
    assert [*grid.table().headings[2:]] == [*names, "6.12 x86_64"]
    assert ("clear", "clear-cases", "", *["FAILED: why"] * 2) in grid.table().rows


def make_document(request: run.Request) -> Document:
    """Return what a run that passed returns."""
    document = Document(machine={"accelerator": "TCG"})
    document.checks = [Check("a", ok=True, detail="")]
    document.run["kernel"] = request.kernel.name
    return document


def test_quick_runs_of_some_join_those_of_their_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "need_root", lambda: None)
    monkeypatch.setattr(run, "run_scenario", make_document)
    file = tmp_path / "page.md"
    full = "<!-- generated: begin -->\nfull\n<!-- generated: end -->\n"
    marks = ("<!-- generated quick: begin -->\n", "<!-- generated quick: end -->\n")
    file.write_text(full + "old".join(marks))
    words = ["lab", "matrix", "--quick", "--arch", "x86_64", "-o", str(file)]
    names = ["6.12.118+deb13-amd64", "7.3.4+deb13-amd64"]
    for name in names:
        assert not cli.main([*words, "--kernel", name, "--only", "hugetlb-2m|vmap"])
    assert file.read_text().startswith(full + marks[0])
    table = Grid(page.read_part(file, " quick")).table()
    assert [*table.headings[2:]] == [f"{name} x86_64" for name in names]
    assert [row[2:] for row in table.rows] == [("passed 1 of 1",) * 2] * 2
    assert not cli.main(words)
    assert names[0] not in file.read_text()


def test_two_matrices_that_write_a_page_at_once_keep_each_others_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "page.md"
    file.write_text(OLD)

    def booted(request: run.Request) -> Document:
        grid = Grid(page.read_part(file))
        grid.add("suites", "stress", "6.12-a x86_64", "passed 9 of 9")
        page.write_page(file, grid.markdown())
        return make_document(request)

    monkeypatch.setattr(cached, "need_root", lambda: None)
    monkeypatch.setattr(run, "run_scenario", booted)
    words = ["lab", "matrix", "--quick", "--arch", "x86_64", "-o", str(file)]
    assert not cli.main([*words, "--only", "hugetlb-2m-6.12"])
    text = file.read_text()
    assert "passed 9 of 9" in text
    assert "passed 1 of 1" in text
    assert "passed 3 of 3" in text


def test_a_paragraph_keeps_the_width_in_bytes_too() -> None:
    text = " ".join([f"took 1.0 s{DASH}2.0 s"] * 40)
    lines = page.wrap_text(text)
    assert " ".join(lines) == text
    assert max(len(line.encode()) for line in lines) <= page.WIDTH
    assert len(lines[0].encode()) > page.WIDTH - 10
