# SPDX-License-Identifier: GPL-2.0-only
"""docs/tour.md shows what the commands print today."""

import errno
import re
from collections.abc import Iterator

import pytest
import tour

from bulkmm.shell.width import INDENT

STALE = "docs/tour.md shows something else: make tour"


FIGURE = re.compile(r"\d[\d.,]*(?: (?:ns|µs|ms|s|B|[KMG]iB)\b)?|[\[\]]")


def list_words(title: str, output: str) -> Iterator[str]:
    """Yield each line without figures, which vary from boot to boot.

    Of worth only how it begins: there is no figure for what nobody called. Nor are the
    lines that continue others, which depend on the figures' lengths.
    """
    for line in output.splitlines():
        if "worth" in title and line.startswith(INDENT):
            continue
        if words := FIGURE.sub("#", line).split():
            yield " ".join(words[:1] if "worth" in title else words)


def test_the_end_of_a_result() -> None:
    ((line, block),) = (one for one in tour.list_blocks().items() if one[0][0] == "$")
    show = f"COLUMNS={tour.COLUMNS} bulkmm show {tour.RESULT}"
    assert line == f"$ {show} | tail -{tour.TAIL}\n"
    assert block.startswith("AMD EPYC")  # the table's heading
    assert block == tour.trim_lines(tour.show_result()), STALE


def test_the_page_has_every_step() -> None:
    titles = [line[2:-1] for line in tour.list_blocks() if line[0] == "#"]
    assert titles == [*tour.BLOCKS]


def test_the_page_has_every_reason_of_a_hook() -> None:
    """By the kernel's names in module/hook.c; the rest is "in words, beside it"."""
    source = (tour.ROOT / "module" / "hook.c").read_text()
    names = re.findall(r"^\t\{ -(E\w+),", source, re.MULTILINE)
    assert len(names) > 15
    page = tour.PAGE.read_text().partition("## The hook does not attach")[2]
    rows = re.findall(r"^- (`-[^:]+): ", page, re.MULTILINE)
    codes = {int(code) for row in rows for code in re.findall(r"`(-\d+)`", row)}
    assert codes == {-getattr(errno, name) for name in names}


@pytest.mark.vm
def test_what_the_guest_prints() -> None:
    blocks = tour.list_blocks()
    for title, result in tour.run_tour().items():
        assert result.code == 0, (title, result)
        now = [*list_words(title, result.out + result.err)]
        assert now == [*list_words(title, blocks[f"# {title}\n"])], f"{title}: {STALE}"
