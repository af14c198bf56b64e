# SPDX-License-Identifier: GPL-2.0-only
"""docs/abi.md names every file, counter and tracepoint of the source."""

import re

from commandlib import ROOT

PAGE = (ROOT / "docs" / "abi.md").read_text()
SOURCES = "".join(path.read_text() for path in (ROOT / "module").glob("*.[ch]"))
# attributes that are named so
FILE = re.compile(r"\b(?:BMM_TUNABLE|SELECT_FILE|__ATTR(?:_R[OW])?)\(([a-z]\w*)")
COUNTER = re.compile(r"\.names\[\w+\] = (?:\w+ > 1 \? )?\"(\w+)\"")
EVENT = re.compile(r"TRACE_EVENT\(\s*(\w+),.*?TP_printk\(\"([^\"]*)\"", re.DOTALL)


def find_section(title: str) -> str:
    """Return a section of the page."""
    _, _, rest = PAGE.partition(f"\n## {title}")
    return rest.partition("\n## ")[0]


def test_every_file() -> None:
    files, text = {*FILE.findall(SOURCES)}, find_section("Files")
    assert {"mode", "hook", "stats", "version", "off", "backend_cached"} <= files
    assert {"backend", "workers", "verify", "latency_us"} <= files
    assert {file for file in files if not re.search(rf"[`/]{file}`", text)} == set()


def test_every_counter_and_no_other() -> None:
    names = {*COUNTER.findall(SOURCES)}
    assert {"hits", "inflight", "leaves_contpte", "fallback_unverified"} <= names
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|", find_section("Counters"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == names


def test_every_field_of_a_tracepoint() -> None:
    paragraphs = [
        " ".join(part.split()) for part in find_section("Tracepoints").split("\n\n")
    ]
    events = EVENT.findall(SOURCES)
    assert len(events) == 7
    for event, printed in events:
        (text,) = (
            part for part in paragraphs if part.startswith(f"`bulkmm:{event}`, ")
        )
        fields = re.findall(r"(\w+)=", printed)
        assert [field for field in fields if f"`{field}`" not in text] == [], event
