# SPDX-License-Identifier: GPL-2.0-only
"""What the README states that the sources state too."""

import json
import re
from importlib import metadata

import figures
from docpages import FENCED, ROOT

from bulkmm.control.format import format_duration
from bulkmm.report import headlines
from bulkmm.shell.size import GIB
from lab.machine import arch

README = (ROOT / "README.md").read_text()
WORDS = 500  # two minutes, without the tables
BOX = " ".join(re.findall(r"(?m)^> (.*)$", README))


def test_it_can_be_read_in_minutes() -> None:
    """What is more belongs into the book."""
    text = re.sub(r"\]\([^)]*\)|^\|.*|<!--.*-->", " ", README, flags=re.MULTILINE)
    assert len(text.split()) <= WORDS


def test_what_is_emulated_is_said_where_it_is_offered() -> None:
    (audience,) = (line for line in README.split("\n- ") if "CXL" in line)
    assert "CXL and GPUs: emulated only" in audience
    book = (ROOT / "docs" / "README.md").read_text()
    assert "CXL and GPU memory: emulated only" in book


def test_the_whole_is_of_the_run_that_the_pages_have() -> None:
    ((_, cpu),) = figures.FIGURES.findall(README)
    ways = json.loads(headlines.WHOLE_FILE.read_text("utf-8"))["cpus"][cpu]
    (text,) = (part for part in README.split("\n\n") if "QEMU's prealloc" in part)
    text = " ".join(text.split())
    whole = [ways[way] for way in ("qemu-1", "qemu-2", "bulkmm-2")]
    times = [format_duration(64 * GIB / one["gb_per_s"][0]) for one in whole]
    assert re.findall(r"\d+\.\d+ s\b", text) == times
    assert {f"Linux {one['series']}:" in text for one in whole} == {True}


def test_the_status() -> None:
    assert f" {metadata.version('bulkmm')}," in BOX
    *older, last = arch.X86_64.tested
    assert f" {', '.join(older)} and {last} kernels on x86-64" in BOX
    assert f"({arch.ARM64.tested[0]} on arm64, " in BOX


def modes_at_load() -> dict[str, str]:
    """Return what the module's parameters are by default."""
    source = (ROOT / "module" / "paths.def").read_text()
    return dict(re.findall(r'^BMM_PATH\((\w+), "(\w+)"', source, re.MULTILINE))


def test_the_paths() -> None:
    """As the table of the book has them, and the sentence in the box."""
    book = (ROOT / "docs" / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| (on|off) \|", book, re.MULTILINE)
    assert dict(rows) == modes_at_load()
    on, _, off = BOX.partition(" are on once the module is loaded;")
    for path, mode in rows:
        assert f"`{path}`" in (on if mode == "on" else off)


def test_a_command_has_nothing_that_only_its_author_knows() -> None:
    """Neither a variable that nobody sets nor a host."""
    text = "".join(block for _, block in FENCED.findall(README))
    assert "git clone URL-OF-THIS-REPOSITORY " in text
    assert not re.findall(r"\$\w+|https?://\S+", text)
