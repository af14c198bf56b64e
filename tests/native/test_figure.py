# SPDX-License-Identifier: GPL-2.0-only
"""The report's figure shows the medians it was given, and says so."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import made
import matplotlib as mpl
import pytest

from bulkmm import stats
from bulkmm.report import figure
from bulkmm.results import Document

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"4k": 4 << 10, "2m": 2 << 20, "32m": 32 << 20}
USES = {
    "clear": "",
    "clear, again, hot": "-again",
    "clear, then read in order": "-then-read",
    "clear, then write in order": "-then-write",
    "clear, then read at random": "-then-random",
}
VARIANTS = ("glibc", "plain", "libpmem2", "bulkmm-streaming", "limit:rep")


@pytest.fixture(scope="module")
def measured() -> Document:
    names = [f"clear-{size}{use}" for size in SIZES for use in USES.values()]
    arms = [made.arm(name, variant, 1) for name in names for variant in VARIANTS]
    return made.document(arms, [])


def drawn(document: Document) -> ET.Element:
    made = re.sub(r"xlink:href", "href", figure.svg(document, "6.12"))
    return ET.fromstring(made)  # noqa: S314 - our own


def texts(root: ET.Element) -> list[str]:
    """Return what a reader sees: text kept as text, without line breaks."""
    return ["".join(element.itertext()).strip() for element in root.iter(f"{SVG}text")]


def emulated(name: str = "pmem-100g") -> Document:
    work = [*made.work(name, "off", 3), *made.work(name, "on", 1)]
    return made.document(work, [("off", "on")], "TCG")


def test_points_are_the_medians_of_the_document(measured: Document) -> None:
    arms = measured.arms
    assert figure._series(measured) == {
        title: {
            variant: [(n, arms[f"clear-{s}{use}", variant]) for s, n in SIZES.items()]
            for variant in VARIANTS[:-1]  # no single kinds of the limit
        }
        for title, use in USES.items()
    }


def test_a_line_is_throughput_with_its_interval() -> None:
    class Axes:
        def errorbar(self, *drawn: Any, **_: Any) -> Any:
            return drawn

    one = stats.summarise("clear-4k", "glibc", "ns", 1 << 20, [100, 200, 400])
    sizes, rates, ends = figure._line(Axes(), [(4096, one)], 1.5, 0)  # type: ignore[arg-type]
    middle, slowest, fastest = ((1 << 20) / ns for ns in (200, 400, 100))
    assert (sizes, rates) == ([6144], [middle])
    assert ends == [[middle - slowest], [fastest - middle]]


def test_what_has_no_sizes_is_drawn_by_its_ratios() -> None:
    seen = texts(drawn(emulated("<a> & $b$ _c")))
    title = "6.12: how many times less work than the module off: emulation (TCG)"
    assert {title, "<a> & $b$ _c: on"} <= {*seen}


@pytest.mark.parametrize("most", [1.01, 3, 40, 5000])
def test_an_axis_of_ratios_has_a_few_ticks(most: float) -> None:
    document = emulated()
    document.ratios[0].ratio, document.ratios[0].ci95 = most, (0.99, most)
    ticks = {
        one for one in texts(drawn(document)) if one.endswith("\N{MULTIPLICATION SIGN}")
    }
    assert 2 <= len(ticks) <= 20


def test_emulated_throughput_is_named_so(measured: Document) -> None:
    other = Document(machine={"accelerator": "TCG"}, results=measured.results)
    assert "GB/s, emulated" in texts(drawn(other))


def test_a_users_own_settings_do_not_matter(measured: Document, tmp_path: Path) -> None:
    usual = figure.svg(measured, "r")
    (tmp_path / "rc").write_text("axes.linewidth: 9\naxes.facecolor: red\n")
    mpl.rc_file(tmp_path / "rc")
    assert figure.svg(measured, "r") == usual
    assert not re.search(r"<dc:date>|20[2-9]\d-\d\d-\d\d", usual)
