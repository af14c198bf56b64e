# SPDX-License-Identifier: GPL-2.0-only
"""Where the time of a whole operation goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import made
import pytest

from bulkmm.report import breakdown

if TYPE_CHECKING:
    from conftest import Written


def test_shares_add_up_to_the_whole() -> None:
    (plug,) = breakdown.operations(made.guest())
    assert plug.name == "plug"
    assert sum(line.before for line in plug.lines) == pytest.approx(100)
    assert plug.after == pytest.approx(42)
    walk, other, rest = plug.lines
    assert (walk.function, walk.before, walk.after) == ("set_zone_contiguous", 60, 0.5)
    assert (walk.reached, other.reached) == ("hotplug", breakdown.UNREACHED)
    assert (rest.label, rest.before) == (breakdown.REST, pytest.approx(25))


def test_many_functions_have_few_lines() -> None:
    many = {f"f{i}": 10 + i for i in range(40)}
    document = made.guest()
    document.run["breakdown"] = [
        made.traced("bind", arm, 2000, many) for arm in ("absent", "on")
    ]
    (bind,) = breakdown.operations(document)
    assert len(bind.lines) == breakdown.MOST + 1
    assert bind.lines[0].function == "f39"
    assert sum(line.before for line in bind.lines) == pytest.approx(100)


def test_without_a_trace_nothing_is_drawn() -> None:
    assert not list(breakdown.operations(made.native()))


def test_it_is_on_the_page(written: Written) -> None:
    text = written.file.read_text()
    assert "guest, plug by function, tracing included, emulated" in text
    assert "set_zone_contiguous (hotplug): 60.0 %, then 0.5 %" in text
