# SPDX-License-Identifier: GPL-2.0-only
"""What a page has, found as its reader finds it."""

from xml.etree import ElementTree as ET

from bulkmm.report import command
from bulkmm.results import Document

Table = dict[str, ET.Element]


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
