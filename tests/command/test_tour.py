# SPDX-License-Identifier: GPL-2.0-only
"""docs/tour.md shows what the commands print today."""

import re
from collections.abc import Iterator

import pytest
import tour

STALE = "docs/tour.md shows something else: make tour"


def list_leaders(output: str) -> Iterator[str]:
    """Yield how each line begins: its figures vary from boot to boot."""
    for line in output.splitlines():
        if words := re.sub(r"[\d.,]+|[\[\]]", "#", line).split():
            yield " ".join(words[: 2 if words[1:] and words[1] != "#" else 1])


def test_the_end_of_a_result() -> None:
    (block,) = (text for line, text in tour.list_blocks().items() if line[0] == "$")
    assert block == tour.trim_lines(tour.show_result()), STALE


def test_the_page_has_every_step() -> None:
    titles = [line[2:-1] for line in tour.list_blocks() if line[0] == "#"]
    assert titles == [*tour.BLOCKS]


@pytest.mark.vm
def test_what_the_guest_prints() -> None:
    blocks = tour.list_blocks()
    for title, result in tour.run_tour().items():
        assert result.code == 0, (title, result)
        now = [*list_leaders(result.out + result.err)]
        assert now == [*list_leaders(blocks[f"# {title}\n"])], f"{title}: {STALE}"
