# SPDX-License-Identifier: GPL-2.0-only
"""The page says what the results say, to every kind of reader."""

from __future__ import annotations

import base64
import itertools
import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import made
import pytest

from bulkmm import cli, facts, grid, published, table
from bulkmm.control.text import number
from bulkmm.errors import Exit
from bulkmm.report import command, lines, page
from bulkmm.report.conclusion import commands, conclude
from bulkmm.results import Document, Ratio

if TYPE_CHECKING:
    from conftest import Written

    from bulkmm.results import Result

Table = dict[str, ET.Element]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def root(written: Written) -> ET.Element:
    """Return the page: it is well-formed XML as well."""
    return ET.fromstring(written.file.read_text())  # noqa: S314 - our own


def parsed(*documents: Document) -> ET.Element:
    """Return the page of some results, which are called a, b, c."""
    page = command.html([*documents], [*"abc"[: len(documents)]])
    return ET.fromstring(page)  # noqa: S314 - our own


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
        rated = "fewer" if document.counted else "faster"
        for scenario in document.scenarios:
            held = rows(part, f"{scenario}: {rated}")
            every = rows(part, f"Samples of {scenario},")
            samples = {name.partition(",")[0]: row for name, row in every.items()}
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
    if facts.where(document) == "native":
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
        times = [number(value / scale) for scale in (1, 1e3, 1e6, 1e9)]
        forms = (*times, table.count(value), f"{value:.2f}", f"{value:.1f}")
        assert said in forms


def test_a_conclusion_stands_on_top(root: ET.Element) -> None:
    machine = "native On A & B (family 25, model 1), kernel 6.18.44:"
    said = [text(p) for p in named(named(root, "header")[0], "p")]
    assert said[0].startswith(f"{machine} of 1 comparison 1 is faster than the kernel")
    assert said[0].endswith(f"loop (1.51{table.TIMES}). 1 of 1 checks passed.")
    assert said[1].startswith(f"{machine} of 8 comparisons 8 are faster than rep-stosb")
    assert said[2].startswith("TCG Emulated (TCG), kernel 7.3.4+deb13-cloud-amd64: ")
    assert said[2].endswith(": 1 of 2 checks failed: no figure here is valid.")


def conclusion_of(*pairs: tuple[str, float], where: str = "native", **more: Any) -> str:
    """Return what is concluded of scenarios, each with its ratio."""
    ratios = [
        Ratio(name, "stock", "bulkmm", ratio, (ratio, ratio), **held)
        for name, ratio in pairs
        if (held := {"significant": True, "n": 9, **more})
    ]
    arms = [
        made.arm(name, variant, 1)
        for name, _ in pairs
        for variant in ("stock", "bulkmm")
    ]
    return conclude(Document(made.machine(where), arms, ratios))


def test_what_is_concluded() -> None:
    said = conclusion_of(("a", 2), ("b", 3), ("c", 0.9), ("d", 1.01))
    assert said.endswith(
        f"of 4 comparisons 3 are faster than the stock kernel's own code (median "
        f"2.00{table.TIMES}, 1.01{table.TIMES} to 3.00{table.TIMES}), 1 slower "
        f"(0.90{table.TIMES})."
    )
    for more in ({"significant": False}, {"unstable": True}):
        said = conclusion_of(("a", 2), **more)
        assert "0 are faster" in said
        assert said.endswith("1 not proven or unstable.")
    said = conclusion_of(("a", 2), ("b", 4), where="TCG", unit="instructions")
    assert "2 are less work than" in said
    assert "(median 67 %, 50 % to 75 %)" in said
    assert said.endswith("Work is no time.")
    assert table.TIMES not in said


def test_published_figures_stand_beside_ours(
    root: ET.Element, written: Written
) -> None:
    heads = rows(root, "Medians")
    ours = written.documents["native"]
    row = heads["memmap-stamp native"]
    ratio = next(r for r in ours.ratios if r.variant == "bulkmm")
    arms = {r.variant: r for r in ours.results}
    old = [p.ratio for p in published.for_scenario("memmap-stamp")]
    assert len(old) == 3
    assert values(row) == [
        *(arms["rebuild"].median, *arms["rebuild"].ci95),
        *(arms["bulkmm"].median, *arms["bulkmm"].ci95),
        *said_of(ratio),
        *old,
    ]
    for figure in published.for_scenario("memmap-stamp"):
        said = f"{figure.before_ms} → {figure.after_ms} ms"
        assert said in text(row)


def test_nothing_published_stands_beside_emulated_work(root: ET.Element) -> None:
    emulated = [row for row in rows(root, "Medians").values() if "TCG" in text(row)]
    assert len(emulated) == 3
    for row in emulated:
        assert table.TIMES not in text(row)
        assert not re.search("RK3588|Ice Lake", text(row))


def test_native_comes_first_then_what_has_something_published() -> None:
    arms = [
        made.arm(scenario, variant, 1)
        for scenario in ("other", "memmap-stamp")
        for variant in ("off", "on")
    ]
    native, kvm = (made.document(arms, [("off", "on")], w) for w in ("native", "KVM"))
    root = parsed(kvm, native)
    heads = rows(root, "Medians")
    assert list(heads) == ["memmap-stamp b", "other b", "memmap-stamp a", "other a"]
    said = [text(h) for h in named(root, "h2")]
    assert said.index("b native") < said.index("a KVM")


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


def test_figures_say_in_words_what_they_show(root: ET.Element) -> None:
    sweeps = [text(f) for f in named(section(root, "sweep"), "figcaption")]
    assert "clear: throughput by size, GB/s" in sweeps
    (traced,) = named(section(root, "guest"), "figure")
    assert text(named(traced, "figcaption")[0]).startswith("guest, plug by function")


def places(row: ET.Element) -> list[float]:
    """Return where the marks of a row's figure are, in percent of its width."""
    marks = named(named(row, "svg")[0], "circle")
    return [float(str(mark.get("cx")).rstrip("%")) for mark in marks]


def test_a_forest_is_sorted_and_to_scale() -> None:
    times = {"a": 10, "b": 80, "c": 200, "d": 50}
    arms = [made.arm(f"{name}-x", "bulkmm", ms) for name, ms in times.items()]
    arms += [made.arm(f"{name}-x", "stock", 100) for name in times]
    document = made.document(arms, [("stock", "bulkmm")])
    root = parsed(document)
    held = rows(root, "How many times faster than the stock kernel's own code")
    assert list(held) == [f"{name}-x: bulkmm" for name in "adbc"]
    ratios = {f"{r.scenario}: bulkmm": r for r in document.ratios}
    at = {name: places(row)[0] for name, row in held.items()}
    one = float(
        str(named(next(iter(held.values())), "line", **{"class": "one"})[0].get("x1"))[
            :-1
        ]
    )
    for name, row in held.items():
        ratio = ratios[name]
        assert values(row) == [ratio.ratio, *ratio.ci95]
        assert (at[name] > one) == (ratio.ratio > 1)
        # logarithmic: the same factor is the same way
        way = (at[name] - one) / math.log(ratio.ratio)
        assert way == pytest.approx(
            (at["a-x: bulkmm"] - one) / math.log(ratios["a-x: bulkmm"].ratio), rel=0.02
        )
    assert "forest" not in [
        t.get("class") for t in named(parsed(made.guest()), "table")
    ]


@pytest.mark.parametrize(
    ("low", "high"), [(0.9, 1.1), (1, 9), (0.5, 300), (1, 1), (1e-4, 1e6)]
)
def test_a_forest_has_ticks_in_view(low: float, high: float) -> None:
    ratios = [Ratio("s", "a", "b", x, (x, x), True, 9) for x in (low, high)]  # noqa: FBT003
    found = lines.forest("x", ratios)
    assert 1 <= len(found.ticks) <= lines.MOST_TICKS
    at = [place for place, _ in found.ticks]
    assert at == sorted(at)
    if low < high:
        assert at[-1] - at[0] > 30  # percent


def test_what_is_unstable_or_not_proven_is_marked() -> None:
    document = made.document(
        [made.arm("s", v, 1) for v in ("off", "on")], [("off", "on")]
    )
    for unstable, significant in itertools.product((False, True), repeat=2):
        document.ratios[0].unstable, document.ratios[0].significant = (
            unstable,
            significant,
        )
        root = parsed(document)
        for caption in ("Medians", "How many times", "s: faster"):
            row = list(rows(root, caption).values())[-1]
            marks = [e.get("title", "").partition(":")[0] for e in named(row, "abbr")]
            assert marks == ["not proven"] * (not significant) + ["unstable"] * unstable
        looks = str(
            named(list(rows(root, "How many times").values())[-1], "svg")[0].get(
                "class"
            )
        ).split()
        assert ("open" in looks, "shaky" in looks) == (not significant, unstable)


def test_every_sample_is_a_point(root: ET.Element, written: Written) -> None:
    held = rows(section(root, "native"), "memmap-stamp: faster")
    every = {}
    for drawn in written.documents["native"].results:
        at = places(held[drawn.variant])
        assert len(at) == len(drawn.samples)
        every |= dict(zip(drawn.samples, at, strict=True))
    assert sorted(every.values()) == [every[ns] for ns in sorted(every)]
    # from 0: twice the time is twice as far
    least, most = min(every), max(every)
    assert (every[most] - lines.EDGE) / (every[least] - lines.EDGE) == pytest.approx(
        most / least, rel=0.01
    )


def test_the_result_can_be_downloaded(root: ET.Element, written: Written) -> None:
    links = {e.get("download"): str(e.get("href")) for e in named(root, "a")}
    for name, document in written.documents.items():
        kind, _, held = links[f"{name}.json"].partition(",")
        assert kind == "data:application/json;base64"
        assert base64.b64decode(held).decode() == document.to_json()


def test_how_to_take_it_again(root: ET.Element) -> None:
    said = [text(e) for e in named(section(root, "Reproduce"), "pre")]
    assert said[0] == "git checkout 0123abc && make build .venv/bin/bulkmm bench all"
    held = Document.read(next(ROOT.glob("results/*/kernel-6.12.json")))
    held.machine["revision"] = "0123abc+"
    _, changed, again = commands(held)
    assert changed.startswith("#")
    words = shlex.split(again)
    assert words[:3] == [".venv/bin/bulkmm", "bench", "kernel"]
    asked = cli.parser().parse_args(words[1:])
    taken = held.run["processes"], held.run["memmap.rounds"]
    assert (asked.kernel, asked.processes, asked.rounds) == ("6.12", *taken)
    lab = made.guest()
    lab.run = {
        "scenario": "pmem-fsdax-100g",
        "srcversion": "x",
        "arch": "x86_64",
        "rounds": 5,
    }
    asked = cli.parser().parse_args(shlex.split(commands(lab)[-1])[1:])
    assert (asked.scenario, asked.kernel, asked.rounds) == ("pmem-fsdax-100g", "7.3", 5)


def test_the_marks_are_in_the_glossary(root: ET.Element) -> None:
    terms = [text(e) for e in named(section(root, "Glossary"), "dt")]
    assert {"~", "!", "n", "limit", "A/A control", "TCG"} <= set(terms)


def test_no_ratio_of_emulated_times(root: ET.Element, written: Written) -> None:
    guest = written.documents["guest"]
    assert any(ratio.unit == "ns" for ratio in guest.ratios)
    assert table.TIMES not in text(section(root, "guest"))
    for row in (r for r in rows(root, "Medians").values() if "TCG" in text(r)):
        cells = {e.get("data-title"): text(e) for e in row}
        assert table.TIMES not in cells["Fewer:"]
        assert "%" in cells["Fewer:"]


@pytest.mark.parametrize(("name", "where"), [("native", "native"), ("guest", "TCG")])
def test_labels_cannot_be_missed(root: ET.Element, name: str, where: str) -> None:
    part = section(root, name)
    assert where in text(named(part, "h2")[0])
    assert page.BADGES[where] in text(part)
    assert where in text(named(root, "header")[0])
    for heading in named(part, "h3")[:-1]:
        assert where in text(heading)
    for row in (r for r in rows(root, "Medians").values() if name in text(r)):
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
        if svg.get("aria-hidden"):  # what it shows stands beside it in numbers
            continue
        assert svg.get("role") == "img"
        assert text(named(svg, "title")[0])
        assert text(named(svg, "desc")[0])
    for link in named(root, "a"):
        if not link.get("download"):
            assert str(link.get("href")).removeprefix("#") in ids


def test_nothing_is_fetched(root: ET.Element, written: Written) -> None:
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.rpartition("}")[2] in ("src", "href", "action", "data", "poster"):
                assert value.startswith(("#", "data:"))
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
