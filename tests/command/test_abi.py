# SPDX-License-Identifier: GPL-2.0-only
"""docs/abi.md names every file, counter and tracepoint of the source."""

import re

import pytest
from commandlib import ROOT

PAGE = (ROOT / "docs" / "abi.md").read_text()
SOURCES = {path.name: path.read_text() for path in (ROOT / "module").glob("*.[ch]")}
FILE = re.compile(
    # attributes that are named so
    r"\b(?:BMM_TUNABLE|SELECT_FILE|__ATTR(?:_R[OW])?)\(([a-z]\w*)"
)
COUNTER = re.compile(
    r"\[BMM_\w+\] = \"(\w+)\",$|"
    r"\[\w+ - BMM_OWN\] = (?:\w+ > 1 \? )?\"(\w+)\"|"
    r"\[(REASON_\w+)\] = \"\w+\",$",
    re.MULTILINE,
)
EVENT = re.compile(r"TRACE_EVENT\(\s*(\w+),.*?TP_printk\(\"([^\"]*)\"", re.DOTALL)


def named(pattern: re.Pattern[str]) -> set[str]:
    """Return what the sources name."""
    return {
        word
        for text in SOURCES.values()
        for found in pattern.finditer(text)
        for word in found.groups()
        if word
    }


def section(title: str) -> str:
    """Return a section of the page."""
    _, _, rest = PAGE.partition(f"\n## {title}")
    return rest.partition("\n## ")[0]


def test_every_file_is_there() -> None:
    files = named(FILE)
    assert {"mode", "hook", "stats", "version", "off", "backend_cached"} <= files
    assert {"backend", "workers", "verify", "latency_us"} <= files
    text = section("Files")
    assert {file for file in files if not re.search(rf"[`/]{file}`", text)} == set()


def test_every_counter_is_there_and_no_other() -> None:
    named_so = {name.replace("REASON_", "FALLBACK_").lower() for name in named(COUNTER)}
    assert {"hits", "inflight", "leaves_contpte", "fallback_unverified"} <= named_so
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|", section("Counters"), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == named_so


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (name, re.findall(r"(\w+)=", said))
        for name, said in EVENT.findall(SOURCES["trace.h"])
    ],
)
def test_every_field_of_a_tracepoint_is_there(event: str, fields: list[str]) -> None:
    (said,) = re.findall(
        rf"^`bulkmm:{event}`, (.*?)(?:\n\n|\Z)",
        section("Tracepoints"),
        re.MULTILINE | re.DOTALL,
    )
    assert [field for field in fields if f"`{field}`" not in said] == []
