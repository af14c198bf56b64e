# SPDX-License-Identifier: GPL-2.0-only
"""Every figure that a person wrote into a page has a source in sources.txt."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import result_files
from docpages import BOOK, ROOT, name_page
from letters import LETTERS, drop_results

from bulkmm.report import headlines
from bulkmm.results import size_grid
from bulkmm.results.model import Document

PAGES = [ROOT / "README.md", *BOOK, *LETTERS]
# blocks, code and what a command writes have no figures of ours
MARKUP = re.compile(
    r"<!-- (?:generated|figures): begin.*?end -->|^```.*?^```$|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
NUMBER = r"\d[\d,]*(?:\.\d+)?"
JOIN = " (?:to|and|or|of|against) |, |\u2013|(?: [m\u00b5n]?s)? \u2192 "
UNIT = r"(?:\u00d7|x(?!\w)|[mu\u00b5n]?s\b|[GM]B/s|%|times\b)"
# a series of Linux before "and" is no figure
FIGURE = re.compile(rf"(?<![\w.-])(?<! on )({NUMBER}(?:(?:{JOIN}){NUMBER})*) ?{UNIT}")
NANOSECONDS = {"s": 1e9, "ms": 1e6, "\u00b5s": 1e3, "us": 1e3, "ns": 1}


def list_figures(text: str) -> list[str]:
    """Return the numbers of a page that have a unit, or are in a row with one."""
    text = " ".join(MARKUP.sub(" ", text).split())
    rows = [match[1] for match in FIGURE.finditer(text)]
    numbers = (number for row in rows for number in re.findall(NUMBER, row))
    return [number.rstrip(",").replace(",", "") for number in numbers]


def read_sources(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return what each page's figures are from: the source, and its figures."""
    sources: dict[str, list[tuple[str, str]]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            lines = sources.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            source, _, entries = line.partition(": ")
            lines.append((source, entries))
    return sources


SOURCES = read_sources(Path(__file__).with_name("sources.txt").read_text("utf-8"))


def list_numbers(source: str, entries: str) -> list[str]:
    """Return the figures of a source: of results, those behind what they are of."""
    if is_of_results(source):
        return [entry.split()[1] for entry in entries.split(", ")]
    return entries.split()


def is_of_results(source: str) -> bool:
    return (result_files.RESULTS / f"{source.partition(' ')[0]}.json").is_file()


def compute_figures(source: str, entries: str) -> Iterator[tuple[str, float]]:
    """Yield each figure of "FILE SCENARIO", and what the results say."""
    file, scenario = source.split()
    document = json.loads((result_files.RESULTS / f"{file}.json").read_text("utf-8"))
    results = [r for r in document["results"] if r["scenario"] == scenario]
    medians = {r["variant"]: r["median"] for r in results}
    ratios = {}
    for r in document["ratios"]:
        if r["scenario"] == scenario:
            ratios[f"{r['base']}/{r['variant']}"] = r["ratio"]
            ratios[f"{r['variant']}/{r['base']}"] = 1 / r["ratio"]
    for entry in entries.split(", "):
        arm, number, *unit = entry.split()
        if unit:
            yield number, medians[arm] / NANOSECONDS[unit[0]]
        elif arm in ratios:
            yield number, ratios[arm]
        else:
            base, _, variant = arm.partition("/")
            yield number, medians[base] / medians[variant]


def round_as(number: str, value: float) -> str:
    """Return a value with as many digits as a number has."""
    return f"{value:.{len(number.partition('.')[2])}f}"


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_every_figure_has_a_source_and_every_source_its_figure(page: Path) -> None:
    sources = SOURCES.get(name_page(page), [])
    sourced = {n for line in sources for n in list_numbers(*line)}
    text = page.read_text("utf-8")
    assert {*list_figures(drop_results(text) if page in LETTERS else text)} == sourced


@pytest.mark.parametrize("page", SOURCES)
def test_figures_are_those_of_their_sources(page: str) -> None:
    text = " ".join((ROOT / page).read_text("utf-8").split())
    for source, entries in SOURCES[page]:
        kind, _, where = source.partition(" ")
        if is_of_results(source):
            for number, value in compute_figures(source, entries):
                assert number == round_as(number, value), f"{page}: {source}"
        elif kind == "file":
            numbers = {*re.findall(r"\d+(?:\.\d+)?", (ROOT / where).read_text("utf-8"))}
            assert {*entries.split()} <= numbers, source
        elif kind == "run":
            assert where in text, f"{page} does not name its command: {where}"
        else:
            assert source in ("others", "chosen"), source


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It takes 36.0 \u2192 17.6 ms, 2.12\u00d7.", ["36.0", "17.6", "2.12"]),
        ("2.2 to 3.1 times, on 7.3 and 3.59\u00d7", ["2.2", "3.1", "3.59"]),
        ("1,234 ns, 4\u20138 %, 10 GB/s", ["1234", "4", "8", "10"]),
        ("`2.21\u00d7` in 6.12.107 on 64 GiB of 2 MiB", []),
        ("<!-- figures: begin x -->\n9 ms\n<!-- figures: end -->", []),
    ],
)
def test_figures_are_told_from_other_numbers(text: str, numbers: list[str]) -> None:
    assert list_figures(text) == numbers


def list_losses() -> Iterator[str]:
    """Yield the sources of what is proven to be slower in any result."""
    for file in sorted(result_files.RESULTS.glob("*/kernel-*.json")):
        document = Document.read(file)
        for ratio in document.ratios:
            of_module = (
                ratio.base == size_grid.STOCK and ratio.variant in headlines.ARMS
            )
            if of_module and ratio.significant and ratio.ratio < headlines.LOSS:
                yield f"{file.parent.name}/{file.stem} {ratio.scenario}"


@pytest.mark.parametrize("source", [*list_losses()])
def test_what_is_slower_is_on_the_page_of_its_path(source: str) -> None:
    """On each CPU and kernel, not just on those that it was written for."""
    operation = source.split()[1].partition("-")[0]
    page = {"thp": "docs/clear.md", "copy": "docs/copy.md"}.get(
        operation, "docs/vmap.md"
    )
    assert source in {name for name, _ in SOURCES[page]}


def test_a_result_that_says_otherwise_is_seen() -> None:
    source = "AuthenticAMD-25-17-1/kernel-7.3 copy-2m"
    entries = "stock/bulkmm 2.12, stock 37.5 ms, bulkmm 17.0 ms"
    wrong = [
        n for n, value in compute_figures(source, entries) if n != round_as(n, value)
    ]
    assert wrong == ["17.0"]
