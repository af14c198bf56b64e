# SPDX-License-Identifier: GPL-2.0-only
"""The page is for every kind of reader, alone and without a network."""

import itertools
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import made
import pytest

from bulkmm import cli
from bulkmm.report import page
from bulkmm.report.conclusion import draw_conclusion, list_commands
from bulkmm.results.model import Document, Ratio
from bulkmm.results.result_tables import TIMES
from bulkmm.shell.errors import Exit

ROOT = Path(__file__).parents[2]
DOCUMENTS = {"native": made.kernel, "guest": made.guest, "bench": made.bench}


@pytest.fixture(scope="session")
def page_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the page as a user does: results in files."""
    home = tmp_path_factory.mktemp("report")
    for name, document in DOCUMENTS.items():
        document().write(home / f"{name}.json")
    files = [str(home / f"{name}.json") for name in DOCUMENTS]
    assert cli.main(["report", *files, "-o", str(home / "report.html")]) == 0
    return (home / "report.html").read_text()


@pytest.fixture(scope="session")
def root(page_text: str) -> ET.Element:
    """Return the page: it is well-formed XML, whatever names are in it."""
    return ET.fromstring(page_text)  # noqa: S314 - our own


def text(element: ET.Element) -> str:
    return " ".join(" ".join(element.itertext()).split())


def elements(root: ET.Element, tag: str) -> list[ET.Element]:
    return [e for e in root.iter() if e.tag.rpartition("}")[2] == tag]


def test_a_screen_reader_finds_its_way(root: ET.Element) -> None:
    assert root.get("lang") == "en"
    for table in elements(root, "table"):
        assert len(elements(table, "caption")) == 1
        assert all(
            e.get("scope", "")[:3] in ("row", "col") for e in elements(table, "th")
        )
    levels = [int(e.tag[1]) for e in root.iter() if re.fullmatch(r"h[1-6]", str(e.tag))]
    assert levels[0] == levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    for element in root.iter():
        for name in str(element.get("aria-labelledby", "")).split():
            assert name in ids
    pictures = [e for e in elements(root, "svg") if e.get("aria-hidden") != "true"]
    # each result's, and the sentences'
    assert len(pictures) >= len(elements(root, "figure")) == len(DOCUMENTS) + 1
    for svg in pictures:
        assert svg.get("role") == "img"
        assert text(elements(svg, "title")[0])
        assert text(elements(svg, "desc")[0])
    for link in elements(root, "a"):
        assert str(link.get("href")).removeprefix("#") in ids


def test_nothing_is_fetched_or_run(root: ET.Element, page_text: str) -> None:
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.rpartition("}")[2] in ("src", "href", "action", "data", "poster"):
                assert value.startswith(("#", "data:"))
    assert "@import" not in page_text
    assert elements(root, "script") == []
    assert all(c.startswith("#") for c in re.findall(r"url\(([^)]*)\)", page_text))


def test_every_sample_is_on_the_page(root: ET.Element) -> None:
    content = text(root)
    for result in (r for make in DOCUMENTS.values() for r in make().printed().results):
        assert ", ".join(f"{value:.10g}" for value in result.samples) in content


def test_what_failed_is_on_the_page(root: ET.Element) -> None:
    assert f"taint : {made.HOSTILE}" in map(text, elements(root, "li"))


def test_emulated_rows_have_neither_ratios_of_times_nor_published_ones(
    root: ET.Element,
) -> None:
    rows = [row for row in elements(root, "tr") if "TCG" in text(row).split()]
    assert len(rows) >= 6
    for row in rows:
        assert not re.search(f"RK3588|Ice Lake|{TIMES}", text(row))


def test_native_comes_first_then_what_has_something_published() -> None:
    arms = [
        made.arm(scenario, variant, 1)
        for scenario in ("other", "memmap-stamp")
        for variant in ("off", "on")
    ]
    native, kvm = (made.document(arms, [("off", "on")], w) for w in ("native", "KVM"))
    root = ET.fromstring(page.render_html([kvm, native], ["a", "b"], "t"))  # noqa: S314
    heads = [
        " ".join(map(text, [*elements(row, "th"), *elements(row, "td")[3:5]]))
        for row in elements(elements(root, "tbody")[0], "tr")
    ]
    stamped = "struct pages are initialised: memmap-stamp"
    assert heads == [
        *(f"{stamped} native b", "other native b"),
        *(f"{stamped} KVM a", "other KVM a"),
    ]


def test_every_cell_has_its_heading(root: ET.Element) -> None:
    """On a telephone it stands above the cell, and not above the column."""
    for table in elements(root, "table"):
        headings = [
            text(one) for one in elements(table, "th") if "col" in one.attrib["scope"]
        ]
        for row in elements(elements(table, "tbody")[0], "tr"):
            labels = [cell.get("data-label") for cell in elements(row, "td")]
            assert not labels or labels == headings[1:]


def test_words_in_charts_can_be_read_on_a_telephone(page_text: str) -> None:
    """A chart is as wide as the screen there, without margins and frame."""
    telephone = page_text.partition("@media (max-width: 40rem)")[2]
    size = re.search(r"\.panels svg {[^}]*width: 100%; font-size: (\d+)px", telephone)
    widths = re.findall(r'class="ratios" viewBox="0 0 (\d+) ', page_text)
    assert size
    assert widths
    for width in widths:
        assert int(size[1]) * (390 - 49) / int(width) > 9.5, "px"


def test_results_without_ratios_or_figures() -> None:
    lone = made.document([made.arm("alone", "only", 1, 1)], [])
    for document in (lone, made.document([], [])):
        html = page.render_html([document], ["x"], "t")
        ET.fromstring(html)  # noqa: S314 - our own
        assert 'id="headline"' not in html
        assert "<figure>" not in html


def test_the_same_results_make_the_same_page(page_text: str) -> None:
    documents = [make() for make in DOCUMENTS.values()]
    assert (
        page.render_html(documents, [*DOCUMENTS], "bulkmm: before and after")
        == page_text
    )


def test_names_and_a_title_that_no_text_can_have(tmp_path: Path) -> None:
    file, made_of = tmp_path / "r.html", tmp_path / "a\udcff.json"
    made.kernel().write(made_of)
    assert cli.main(["report", str(made_of), "-o", str(file), "--title=\udcff"]) == 0
    assert "a?" in file.read_text()


def concluded(*pairs: tuple[str, float], where: str = "native", **more: Any) -> str:
    """Return what is concluded of scenarios, each with its ratio."""
    how = {"significant": True, "n": 9, **more}
    ratios = [Ratio(s, "stock", "bulkmm", ratio, (1, 9), **how) for s, ratio in pairs]
    arms = [
        made.arm(s, variant, 1) for s, _ in pairs for variant in ("stock", "bulkmm")
    ]
    return draw_conclusion(Document(made.machine(where), arms, ratios))


def test_what_is_concluded() -> None:
    sentence = concluded(("a", 2), ("b", 3), ("c", 0.9), ("d", 1.01))
    assert "3 of 4 faster than the stock kernel's own code" in sentence
    assert f"(median 2.00{TIMES}, 1.01{TIMES} to 3.00{TIMES})" in sentence
    assert sentence.endswith(f"1 slower (0.90{TIMES}).")
    for more in ({"significant": False}, {"unstable": True}):
        sentence = concluded(("a", 2), **more)
        assert "0 of 1 faster" in sentence
        assert sentence.endswith("1 not proven or unstable.")
    sentence = concluded(("a", 2), ("b", 4), where="TCG", unit="instructions")
    assert "2 of 2 with less work than" in sentence
    assert "(median 67 %, 50 % to 75 %)" in sentence
    assert TIMES not in sentence
    lone = made.document([made.arm("a", "on", 1)], [], "TCG")
    assert "no work was counted" in draw_conclusion(lone)
    failed = draw_conclusion(made.guest())
    assert "1 of 2 checks failed: no figure here is valid" in failed


def test_starts_with_memory_of_a_server_are_concluded_of() -> None:
    file = Path(__file__).parents[2] / "results/AuthenticAMD-25-17-1/serve.json"
    sentence = draw_conclusion(Document.read(file))
    assert "3 of 3 faster than QEMU's prealloc and a read of the file (" in sentence


def test_how_to_take_it_again() -> None:
    document = made.kernel()
    document.machine["revision"] = "0123abc+"
    document.run["argv"] = ["bench", "populate", "--kind=4k", "-o", "a b.json"]
    checkout, changed, command = list_commands(document)
    assert checkout == "git checkout 0123abc && make build"
    assert changed.startswith("#")
    assert command == ".venv/bin/bulkmm bench populate --kind=4k -o 'a b.json'"
    del document.run["argv"]
    assert list_commands(document) == []


def test_without_its_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made.guest().write(tmp_path / "good.json")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    words = ["report", str(tmp_path / "good.json"), "-o", str(tmp_path / "r.html")]
    assert cli.main(words) == Exit.ENVIRONMENT
    remedy = f"{sys.executable} -m pip install jinja2"
    assert f"jinja2 is not installed: {remedy}" in capsys.readouterr().err
