# SPDX-License-Identifier: GPL-2.0-only
"""The page is for every kind of reader, alone and without a network."""

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from conftest import Written
from pagelib import named, rows, section, text

from bulkmm.report import page


def test_a_screen_reader_finds_its_way(root: ET.Element) -> None:
    assert root.get("lang") == "en"
    for shown in named(root, "table"):
        assert len(named(shown, "caption")) == 1
        assert all(e.get("scope", "")[:3] in ("row", "col") for e in named(shown, "th"))
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
                assert value.startswith(("#", "data:"))
    style = text(named(root, "style")[0])
    assert "@import" not in style
    assert "url(" not in style
    assert named(root, "script") == []
    clips = re.findall(r"url\(([^)]*)\)", written.file.read_text())
    assert all(clip.startswith("#") for clip in clips)


@pytest.mark.parametrize(("name", "where"), [("native", "native"), ("guest", "TCG")])
def test_labels_cannot_be_missed(root: ET.Element, name: str, where: str) -> None:
    part = section(root, name)
    assert where in text(named(part, "h2")[0])
    assert page.BADGES[where] in text(part)
    assert where in text(named(root, "header")[0])
    for row in (r for r in rows(root, "Medians").values() if name in text(r)):
        assert where in text(row)


def test_the_marks_are_in_the_glossary(root: ET.Element) -> None:
    terms = [text(e) for e in named(section(root, "Glossary"), "dt")]
    assert {"~", "!", "n", "limit", "A/A control", "TCG"} <= set(terms)
