# SPDX-License-Identifier: GPL-2.0-only
"""What a persistent-memory job binds, compares and stores."""

import pytest

from bulkmm.errors import GuestError
from bulkmm.lab import scenario
from bulkmm.lab.families import pmem
from bulkmm.lab.machine.vm import Outcome

FSDAX = scenario.find("pmem-fsdax-100g")


def test_a_comparison_that_is_none_is_no_verdict() -> None:
    event = {"event": "compare", "label": "last"}
    nothing = "pages=0 words_differ=0 pageblocks_differ=0"
    assert not pmem.compared({**event, "verdict": nothing}).ok
    with pytest.raises(GuestError, match="the comparison said"):
        pmem.compared({**event, "verdict": "?"})


@pytest.mark.parametrize(
    ("workers", "shared", "ok"),
    [(1, 0, True), (1, 9, False), (2, 0, False), (2, 9, True)],
)
def test_who_else_stamped(workers: int, shared: int, *, ok: bool) -> None:
    files = {"version": "1", "memmap/mode": "[on]"}
    files["memmap/stats"] = f"hits 1\ninflight 0\nshared_bytes {shared}"
    said = {"event": "state", "when": "unload", "arm": "on", "files": files}
    held = Outcome([said])
    work = FSDAX.make(workers=workers, break_one_word=True)
    (check,) = [c for c in work.checks(held) if c.name.startswith("stamped")]
    assert check.ok is ok
