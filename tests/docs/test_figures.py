# SPDX-License-Identifier: GPL-2.0-only
"""Native figures: the pages are in step with results/."""

import re

import figures
import made
import pytest
import result_files
import result_notes
import whole_operations
from docpages import name_page
from msgspec.structs import replace

from bulkmm.shell.errors import BulkmmError

BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"
STALE = "is not what results/ says now: run scripts/figures.py"


def test_the_pages_are_in_step_with_the_results() -> None:
    cpus = result_files.read_results()
    for file, make in figures.PAGES.items():
        text = file.read_text()
        assert text == make(text, cpus), f"{name_page(file)} {STALE}"
    for file, format_data in figures.DATA.items():
        assert file.read_text() == format_data(cpus), f"{file.name} {STALE}"


def test_without_results_the_page_says_so() -> None:
    assert "make figures" in figures.make_page(f"{BEGIN}{END}", {})


def test_the_readme_has_the_rows_of_the_cpu_that_it_names() -> None:
    begin, end = "<!-- figures: begin one -->\n", "<!-- figures: end -->\n"
    cpus = {
        "one": {
            "kernel-6.12": made.kernel("6.12.1"),
            "kernel-7.2": made.kernel("7.2.9"),  # not pinned
            "kernel-7.3": made.kernel("7.3.4", bulkmm_ms=80),
        }
    }
    text = figures.update_readme(f"a\n{begin}9.99\n{end}b\n", cpus)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    assert "9.99" not in text
    assert "| Linux 6.12: stock → bulkmm | Linux 7.3: stock → bulkmm |" in rows[0]
    assert rows[2].startswith("| a device of 100 GiB comes up, fsdax | ")
    faster = [float(x) for x in re.findall("([\\d.]+)\N{MULTIPLICATION SIGN}", rows[2])]
    assert faster[:2] == pytest.approx([100 / 40, 100 / 80], rel=0.1)
    span = "[\\d.]+\N{EN DASH}[\\d.]+\N{MULTIPLICATION SIGN}"
    assert re.search(rf"\| {span} \(\d\) \|$", rows[2])
    assert "| 6.40 s → " in rows[1]  # 64 times 100 ms
    with pytest.raises(BulkmmError, match="names two, which is not in results"):
        figures.update_readme(text.replace("begin one", "begin two"), cpus)
    with pytest.raises(BulkmmError, match="names one, which is not in results"):
        figures.update_readme(text, {"one": {"bench": made.bench()}})


def test_the_page_says_where_only_ratios_can_be_compared() -> None:
    documents = [made.kernel("6.12.1"), made.kernel("7.2.9"), made.kernel("7.3.4")]
    assert result_notes.describe_amounts(documents) == ""
    documents[1].results = [
        replace(result, bytes=result.bytes // 2) if result.size == 2 << 20 else result
        for result in documents[1].results
    ]
    assert re.fullmatch(
        r"Not of the same .*: 1 GiB \(6\.12, 7\.3\) and 512 MiB \(7\.2\) in "
        r"thp-2m-populate\.",
        result_notes.describe_amounts(documents),
    )


def test_whole_operations_are_of_one_run() -> None:
    """Of the one with most of them; the page says how another run differs."""
    cpu = result_files.read_results()["AuthenticAMD-25-17-1"]
    all_kinds, hugetlb = cpu["populate"], cpu["populate-hugetlb"]
    ways = ("qemu-1", "qemu-2", "bulkmm-2", "touch", "fork")
    key = whole_operations.WHOLE
    assert [(key, way) in all_kinds.arms for way in ways] == [True] * 3 + [False] * 2
    rates = {way: one["gb_per_s"] for way, one in whole_operations.find_whole(cpu)}
    assert rates == {
        way: whole_operations.list_rates(hugetlb.arms[key, way]) for way in ways
    }


def test_two_runs_of_the_same_are_told_apart() -> None:
    cpu = result_files.read_results()["AuthenticAMD-25-17-1"]
    runs = [cpu["populate"], cpu["populate-hugetlb"]]
    text = whole_operations.describe_repeated(runs)
    assert "one for the rows and one for the grid: their intervals overlap." in text
    assert text in " ".join(figures.PAGE.read_text("utf-8").split())
    assert whole_operations.describe_repeated(runs[:1]) == ""
    arm = runs[0].arms[whole_operations.WHOLE, "qemu-1"]
    arm.ci95 = (1.0, 2.0)
    assert "overlap, but for qemu-1." in whole_operations.describe_repeated(runs)


def test_the_page_says_which_code_was_measured() -> None:
    document = made.bench()
    document.machine |= {"revision": "abc123+", "date": "2026-01-31"}
    arm = document.results[0]
    for backend in ("no-such", "rep-b"):
        document.results.append(replace(arm, arm="bulkmm", backend=backend))
    assert result_notes.describe_code(document) == (
        "Code: revision abc123 with changes, 2026-01-31, with backends that core/ no "
        "longer has: no-such."
    )
    assert {"avx512-t0", "avx2", "clzero"} <= result_notes.list_backends()
