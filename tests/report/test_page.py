# SPDX-License-Identifier: GPL-2.0-only
"""The page says what the results say, to every kind of reader."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import made
import pytest

from bulkmm import cli, grid, published, table
from bulkmm.errors import Exit
from bulkmm.report import command, page

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Written

    from bulkmm.results import Document, Ratio, Result

Table = dict[str, ET.Element]


@pytest.fixture(scope="module")
def root(written: Written) -> ET.Element:
    """Return the page: it is well-formed XML as well."""
    return ET.fromstring(written.file.read_text())  # noqa: S314 - our own


def text(element: ET.Element) -> str:
    return " ".join(" ".join(element.itertext()).split())


def named(root: ET.Element, tag: str, **attributes: str) -> list[ET.Element]:
    found = (e for e in root.iter() if e.tag.rpartition("}")[2] == tag)
    return [e for e in found if all(e.get(k) == v for k, v in attributes.items())]


def section(root: ET.Element, name: str) -> ET.Element:
    """Return the section of a result."""
    (found,) = (
        s for s in named(root, "section") if text(named(s, "h2")[0]).startswith(name)
    )
    return found


def rows(element: ET.Element, caption: str) -> Table:
    """Return the rows of the table that a caption begins with, by heading."""
    (found,) = (
        t
        for t in named(element, "table")
        if text(named(t, "caption")[0]).startswith(caption)
    )
    body = named(found, "tbody")[0]
    return {text(named(row, "th")[0]): row for row in named(body, "tr")}


def values(element: ET.Element) -> list[float]:
    return [float(str(e.get("value"))) for e in named(element, "data")]


def test_every_number_is_that_of_the_result(root: ET.Element, written: Written) -> None:
    seen = 0
    for name, document in written.documents.items():
        part = section(root, name)
        rated, unit = (
            ("fewer", "instructions") if document.counted else ("faster", "ms")
        )
        for scenario in {r.scenario for r in document.results}:
            held = rows(part, f"{scenario}: {rated}")
            samples = rows(part, f"Samples of {scenario}, {unit}")
            for result in leading(document, scenario):
                assert values(held[result.variant]) == expected(document, result)
                assert values(samples[result.variant]) == result.samples
                seen += 1
    assert seen == 4 + 9 + 24


def leading(document: Document, scenario: str) -> list[Result]:
    """Return the results of a scenario that have a row."""
    unit = "instructions" if document.counted else "ns"
    every = (r for r in document.results if r.unit == unit)
    return [r for r in every if r.scenario == scenario]


def expected(document: Document, result: Result) -> list[float]:
    """Return what the row of an arm must have."""
    numbers = [result.median, *result.ci95]
    if table.where(document) == "native":
        numbers.append(result.bytes / result.median)
    if document.counted:
        numbers.append(table.stores_of(document, result).median)
    every = (r for r in document.ratios if r.unit == result.unit)
    bases = [r for r in every if r.scenario == result.scenario]
    first = table.main_base(bases)
    for ratio in bases:
        if (ratio.base, ratio.variant) == (first, result.variant):
            numbers += said_of(ratio)
    return numbers


def said_of(ratio: Ratio) -> list[float]:
    """Return the numbers that are printed of a ratio: of work, what is gone."""
    held = [ratio.ratio, *ratio.ci95]
    return held if ratio.unit == "ns" else [table.removed(one) for one in held]


def test_what_is_printed_is_the_number_beside_it(root: ET.Element) -> None:
    for element in named(root, "data"):
        value, said = float(str(element.get("value"))), text(element)
        forms = (table.ms(value), table.count(value), f"{value:.2f}", f"{value:.1f}")
        assert said in forms


def test_published_figures_stand_beside_ours(
    root: ET.Element, written: Written
) -> None:
    heads = rows(root, "Median time, or work")
    ours = written.documents["guest"]
    for scenario in ("pmem-fsdax-100g", "pmem-devdax-100g"):
        row = heads[f"{scenario} guest"]
        (ratio,) = (
            r
            for r in ours.ratios
            if (r.scenario, r.variant, r.unit) == (scenario, "on", "instructions")
        )
        arms = {r.variant: r for r in leading(ours, scenario)}
        old = [p.ratio for p in published.for_scenario(scenario)]
        assert len(old) == 3
        assert values(row) == [
            *(arms["off"].median, *arms["off"].ci95),
            *(arms["on"].median, *arms["on"].ci95),
            *said_of(ratio),
            *old,
        ]
        for figure in published.for_scenario(scenario):
            said = f"{figure.before_ms} → {figure.after_ms} ms"
            assert said in text(row)
    assert "RK3588: 8.3x, once" in text(heads[f"{made.HOSTILE} guest"])


def test_what_has_nothing_published_stands_below() -> None:
    document = made.document(
        [
            made.arm(scenario, variant, 1)
            for scenario in ("other", "memmap-stamp")
            for variant in ("off", "on")
        ],
        [("off", "on")],
    )
    root = ET.fromstring(command.html([document], ["x"]))  # noqa: S314 - our own
    heads = rows(root, "Median time, or work")
    assert list(heads) == ["memmap-stamp x", "other x"]
    assert "nothing published" in text(heads["other x"])


def test_grids_are_those_of_the_table(root: ET.Element, written: Written) -> None:
    document = written.documents["sweep"]
    held = grid.grids(document, table.factor)
    assert len(held) == 2
    for one in held:
        shown = rows(section(root, "sweep"), one.headings[0])
        cells = [
            [text(e) for e in row if e.tag in ("th", "td")] for row in shown.values()
        ]
        assert cells == one.rows


def test_figures_say_in_words_what_they_show(
    root: ET.Element, written: Written
) -> None:
    part = section(root, "guest")
    captions = [
        text(named(figure, "figcaption")[0]) for figure in named(part, "figure")
    ]
    assert captions == [  # and no ratios
        f"{scenario}: emulation (TCG): every sample"
        for scenario in ("pmem-fsdax-100g", "pmem-devdax-100g", made.HOSTILE)
    ]
    said = text(named(named(part, "figure")[0], "desc")[0])
    assert "off: median 3 million instructions" in said
    native = section(root, "native")
    said = text(named(named(native, "figure")[0], "desc")[0])
    for ratio in written.documents["native"].ratios:
        low, high = ratio.ci95
        assert f"{ratio.ratio:.2f}, 95 % from {low:.2f} to {high:.2f}" in said
    sweeps = [text(f) for f in named(section(root, "sweep"), "figcaption")]
    assert "clear: throughput by size, GB/s" in sweeps
    assert "sweep: clear against the best peer" in sweeps


def test_every_sample_is_a_point(root: ET.Element, written: Written) -> None:
    figure = named(section(root, "native"), "figure")[1]
    (drawn,) = written.documents["native"].results[:1]
    (dots,) = (e for e in named(figure, "g") if str(e.get("id")).endswith("strip-arm0"))
    marks = list(named(dots, "use"))
    assert len(marks) == len(drawn.samples)
    places = [float(str(e.get("x"))) for e in marks]
    order = sorted(range(len(places)), key=places.__getitem__)
    assert order == sorted(range(len(places)), key=drawn.samples.__getitem__)


def test_no_ratio_of_emulated_times(root: ET.Element, written: Written) -> None:
    guest = written.documents["guest"]
    assert any(ratio.unit == "ns" for ratio in guest.ratios)
    assert table.TIMES not in text(section(root, "guest"))
    for row in (r for r in rows(root, "Median time, or").values() if "TCG" in text(r)):
        cells = {e.get("data-title"): text(e) for e in row}
        assert table.TIMES not in cells["Fewer:"]
        assert "%" in cells["Fewer:"]


@pytest.mark.parametrize(("name", "where"), [("native", "native"), ("guest", "TCG")])
def test_labels_cannot_be_missed(root: ET.Element, name: str, where: str) -> None:
    part = section(root, name)
    assert where in text(named(part, "h2")[0])
    assert page.BADGES[where] in text(part)
    assert page.BADGES[where] in text(named(root, "header")[0])
    for heading in named(part, "h3")[:-1]:
        assert where in text(heading)
    for row in (r for r in rows(root, "Median").values() if name in text(r)):
        assert where in text(row)
        assert ("emulated" in text(row)) == (where == "TCG")


def test_failed_checks_stand_above_the_figures(root: ET.Element) -> None:
    said = text(section(root, "guest"))
    assert "1 of 2 checks failed; do not use these figures: taint" in said
    assert said.index("checks failed") < said.index("every sample")
    assert "checks failed" not in text(section(root, "native"))


def test_machine_kernel_and_method(root: ET.Element) -> None:
    said = text(section(root, "guest"))
    for fact in ("A & B 25 1", "7.3.4+deb13-cloud-amd64", "0123abc", "seed 7", "TCG"):
        assert fact in said
    for word in (
        "order statistics",
        "bootstrapped",
        "Mann-Whitney",
        "never to be quoted",
    ):
        assert word in text(section(root, "Method"))


def test_a_screen_reader_finds_its_way(root: ET.Element) -> None:
    assert root.get("lang") == "en"
    for shown in named(root, "table"):
        assert len(named(shown, "caption")) == 1
        assert all(e.get("scope") in ("row", "col") for e in named(shown, "th"))
    levels = [int(e.tag[1]) for e in root.iter() if re.fullmatch(r"h[1-6]", str(e.tag))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    for element in root.iter():
        for name in str(element.get("aria-labelledby", "")).split():
            assert name in ids
    for svg in named(root, "svg"):
        assert svg.get("role") == "img"
        assert text(named(svg, "title")[0])
        assert text(named(svg, "desc")[0])
    for link in named(root, "a"):
        assert str(link.get("href")).removeprefix("#") in ids


def test_nothing_is_fetched(root: ET.Element, written: Written) -> None:
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.rpartition("}")[2] in ("src", "href", "action", "data", "poster"):
                assert value.startswith(("#", "data:,"))
    style = text(named(root, "style")[0])
    assert "@import" not in style
    assert "url(" not in style
    assert named(root, "script") == []
    clips = re.findall(r"url\(([^)]*)\)", written.file.read_text())
    assert all(clip.startswith("#f") for clip in clips)


def test_figures_have_the_colours_of_the_page(written: Written) -> None:
    """Else a dark screen shows black on black."""
    drawn = "".join(re.findall(r"<svg.*?</svg>", written.file.read_text(), re.DOTALL))
    assert re.findall(r"(?:fill|stroke): ?(#\w+)", drawn) == []
    used = set(re.findall(r"var\((--\w+)\)", drawn))
    style = written.file.read_text().partition("<style>")[2].partition("</style>")[0]
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    for name in used:
        assert f"{name}:" in light
        assert f"{name}:" in dark.partition("}")[0]


def test_the_same_results_make_the_same_page(written: Written) -> None:
    documents = list(written.documents.values())
    again = command.html(documents, list(written.documents))
    assert again == written.file.read_text()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["{good}", "-o", "{home}/no/report.html"], 3, "no such directory"),
        (["{good}", "-o", "{home}"], 3, "cannot be written"),
        (["{home}/none.json", "-o", "{home}/r.html"], 3, "No such file"),
        (["{good}", "{good}", "-o", "{home}/r.html"], 2, "given twice"),
        (["{good}"], 2, "-o/--output"),
    ],
)
def test_bad_input(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    says: str,
) -> None:
    good = tmp_path / "good.json"
    made.native().write(good)
    filled = [word.format(good=good, home=tmp_path) for word in words]
    assert cli.main(["report", *filled]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.json"]


def test_results_without_ratios_or_figures(tmp_path: Path) -> None:
    lone = made.document([made.arm("alone", "only", 1, 1)], [])
    nothing = made.document([], [])
    for document in (lone, nothing):
        said = command.html([document], ["x"])
        ET.fromstring(said)  # noqa: S314
        assert 'id="headline"' not in said
    assert tmp_path.is_dir()


def test_without_its_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good.json"
    made.native().write(good)
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    words = ["report", str(good), "-o", str(tmp_path / "r.html")]
    assert cli.main(words) == Exit.ENVIRONMENT
    assert "pip install 'bulkmm[report]'" in capsys.readouterr().err


def test_time_grows_with_the_results_and_not_faster() -> None:
    """Ten times the scenarios: a wide margin, since other work is on the machine."""
    import time

    def spent(scenarios: int) -> float:
        document = made.many(scenarios)
        start = time.process_time()
        command.html([document], ["x"])
        return time.process_time() - start

    spent(1)  # imports
    assert spent(50) < 40 * spent(5)
