# SPDX-License-Identifier: GPL-2.0-only
"""The report's figure shows the values it was given: read back by its own axes."""

import math
import re
from typing import Any
from xml.etree import ElementTree as ET

import made
import pytest

from bulkmm.report import page
from bulkmm.results.model import Document
from bulkmm.results.result_tables import TIMES

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"4k": "4 KiB", "2m": "2 MiB", "32m": "32 MiB"}
USES = {
    "clear": "",
    "clear, again, hot": "-again",
    "clear, then read in order": "-then-read",
    "clear, then write in order": "-then-write",
    "clear, then read at random": "-then-random",
}
VARIANTS = ("glibc", "plain", "libpmem2", "bulkmm-streaming", "limit:rep")
OFFSETS = {"up": -4, "names": 8}  # of what is labelled, from the label
INTERVAL = re.compile(r"M[\d.]+ ([\d.]+)m-3 0h6m-3 0V([\d.]+)")


def by_size(variants: tuple[str, ...] = VARIANTS, where: str = "native") -> Document:
    names = [f"clear-{size}{use}" for size in SIZES for use in USES.values()]
    arms = [made.arm(name, variant, 1) for name in names for variant in variants]
    return made.document(arms, [], where)


def emulated(*names: str) -> Document:
    work = [
        one
        for name in names or ("pmem-100g",)
        for one in (*made.work(name, "off", 3), *made.work(name, "on", 1))
    ]
    return made.document(work, [("off", "on")], "TCG")


def draw(document: Document) -> ET.Element:
    return ET.fromstring(page.render_html([document], ["6.12"], "t"))  # noqa: S314 - our own


def part(root: ET.Element, name: str) -> list[ET.Element]:
    return [one for one in root.iter() if one.get("class") == name]


def texts(root: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def numbers(words: str | None) -> list[float]:
    return [float(one) for one in re.findall(r"-?[\d.]+", words or "")]


def ticks(plot: ET.Element, axis: str) -> dict[str, float]:
    """Return the labels of an axis and the places that they label."""
    (group,) = part(plot, axis)
    places = {}
    for label in group:
        if axis in OFFSETS:
            place = float(label.get("y", "")) + OFFSETS[axis]
        else:
            slant = label.get("transform")
            place = numbers(slant)[0] - 6 if slant else float(label.get("x", ""))
        places[str(label.text)] = place
    return places


def inverse(places: dict[float, float]) -> Any:
    """Return the value at a place, of a linear axis with these values."""
    (low, start), *_, (high, end) = places.items()
    return lambda place: low + (place - start) / (end - start) * (high - low)


@pytest.mark.parametrize(("where", "unit"), [("native", ""), ("TCG", ", emulated")])
def test_points_and_intervals_are_those_of_the_document(where: str, unit: str) -> None:
    document = by_size(where=where)
    more = ": emulation (TCG)" if unit else ""
    panels = {texts(one)[0]: one for one in part(draw(document), "panel")}
    assert [*panels] == [title + more for title in USES]
    for panel, use in zip(panels.values(), USES.values(), strict=True):
        rate = inverse({float(k): v for k, v in ticks(panel, "up").items()})
        frame = next(panel.iter(f"{SVG}rect"))
        bottom = float(frame.get("y", "")) + float(frame.get("height", ""))
        assert rate(bottom) == 0  # heights are comparable only from zero
        lines = part(panel, "line")
        assert f"GB/s{unit}" in texts(panel)
        assert len(lines) == len(VARIANTS) - 1  # no single kinds of the limit
        for variant, (points, ends, _) in zip(VARIANTS, lines, strict=False):
            arms = [document.arms[f"clear-{size}{use}", variant] for size in SIZES]
            rates = [rate(y) for y in numbers(points.get("points"))[1::2]]
            assert rates == pytest.approx([r.bytes / r.median for r in arms], rel=2e-3)
            spreads = [(r.bytes / r.ci95[1], r.bytes / r.ci95[0]) for r in arms]
            for pair, spread in zip(
                INTERVAL.findall(str(ends.get("d"))), spreads, strict=True
            ):
                assert [rate(float(y)) for y in pair] == pytest.approx(spread, rel=2e-3)


def test_sizes_are_on_a_logarithmic_axis() -> None:
    for panel in part(draw(by_size()), "panel"):
        places = ticks(panel, "across")
        assert [*places] == [*SIZES.values()]
        start, middle, end = places.values()
        assert (middle - start) / (end - start) == pytest.approx(9 / 13, abs=2e-3)
        lines = [numbers(line[0].get("points"))[::2] for line in part(panel, "line")]
        for place, *beside in zip(places.values(), *lines, strict=True):
            assert beside == sorted({*beside})  # no interval hides another
            assert sum(beside) / len(beside) == pytest.approx(place, abs=0.2)


def test_the_legend_tells_lines_apart() -> None:
    variants = tuple(f"v{i}" for i in range(56))
    root = draw(by_size(variants))
    (legend,) = part(root, "legend")
    assert "".join(legend.itertext()).split() == [*variants]
    looks = [
        (one.get("stroke"), str(one.get("d")).removeprefix("M-12 0h24M0 0"))
        for one in legend.iter(f"{SVG}path")
    ]
    assert len({*looks}) == len(variants)
    for panel in part(root, "panel"):
        for (colour, marker), line in zip(looks, part(panel, "line"), strict=True):
            assert line.get("stroke") == line[2].get("fill") == colour
            assert str(line[2].get("d")).count(marker) == len(SIZES)


def test_a_single_size_is_drawn_by_its_ratio() -> None:
    arms = [made.arm("copy-64m", variant, 1) for variant in ("stock", "bulkmm")]
    root = draw(made.document(arms, [("stock", "bulkmm")]))
    assert not part(root, "panel")
    (rows,) = part(root, "ratios")
    assert [*ticks(rows, "names")] == ["copy-64m: bulkmm"]


def test_what_has_no_sizes_is_drawn_by_its_ratios() -> None:
    names = ("pmem-<a> & $b$ _c", "pmem-proven", "pmem-unstable")
    document = emulated(*names)
    ratios = [one for one in document.ratios if one.unit == "instructions"]
    for ratio, value in zip(ratios, (0.5, 3, 40), strict=True):
        ratio.ratio, ratio.ci95 = value, (value / 1.5, value * 1.2)
        ratio.significant = ratio.scenario != names[0]
        ratio.unstable = ratio.scenario == names[2]
    root = draw(document)
    (rows,) = part(root, "ratios")
    title = "memmap: times less work than the module off: emulation (TCG)"
    assert texts(rows)[0] == title
    assert [*ticks(rows, "names")] == [f"{name}: on" for name in names]
    labels = ticks(rows, "across").items()
    read = inverse({math.log(float(k.rstrip(TIMES))): v for k, v in labels})
    marks = [*rows.iter(f"{SVG}circle")]
    for ratio, mark, y in zip(
        ratios, marks, ticks(rows, "names").values(), strict=True
    ):
        assert float(mark.get("cy", "")) == y
        assert math.exp(read(float(mark.get("cx", "")))) == pytest.approx(
            ratio.ratio, rel=5e-3
        )
    bars = [numbers(one.get("d")) for one in rows.iter(f"{SVG}path")][-len(ratios) :]
    for ratio, (low, _, high) in zip(ratios, bars, strict=True):
        ends = [math.exp(read(place)) for place in (low, high)]
        assert ends == pytest.approx(ratio.ci95, rel=5e-3)
    assert [one.get("class") for one in marks] == ["hollow", None, "hollow"]
    words = ", ".join(f"{one.scenario}: on {one.ratio:.2f}" for one in ratios)
    assert next(root.iter(f"{SVG}desc")).text == f"{words}."


@pytest.mark.parametrize("most", [1, 1.01, 3, 40, 5000])
def test_an_axis_of_ratios_has_a_few_ticks(most: float) -> None:
    document = emulated()
    document.ratios[0].ratio, document.ratios[0].ci95 = most, (0.99, most)
    (rows,) = part(draw(document), "ratios")
    frame = next(rows.iter(f"{SVG}rect"))
    start, width = float(frame.get("x", "")), float(frame.get("width", ""))
    places = ticks(rows, "across").values()
    assert 2 <= len(places) <= 13
    assert start <= min(places) < max(places) <= start + width


def test_an_interval_from_0_has_no_place() -> None:
    names = ("clear-a", "clear-b")
    arms = [made.arm(name, variant, 1) for name in names for variant in ("off", "on")]
    document = made.document(arms, [("off", "on")])
    document.ratios[0].ci95 = (0, 2)
    (rows,) = part(draw(document), "ratios")
    assert [*ticks(rows, "names")] == ["clear-b: on"]
