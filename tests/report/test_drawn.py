# SPDX-License-Identifier: GPL-2.0-only
"""What is drawn on the page: to scale, marked, and said in words."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING

import made
import pytest
from pagelib import named, parsed, places, rows, section, text, values

from bulkmm.report import lines
from bulkmm.results import Ratio

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from conftest import Written


def test_figures_say_in_words_what_they_show(root: ET.Element) -> None:
    sweeps = [text(f) for f in named(section(root, "sweep"), "figcaption")]
    assert "clear: throughput by size, GB/s" in sweeps
    (traced,) = named(section(root, "guest"), "figure")
    assert text(named(traced, "figcaption")[0]).startswith("guest, plug by function")


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
