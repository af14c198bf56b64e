# SPDX-License-Identifier: GPL-2.0-only
"""What a persistent-memory job binds, compares and stores."""

from typing import Any

import pytest

from bulkmm.errors import GuestError
from bulkmm.lab import scenario
from bulkmm.lab.families import pmem
from bulkmm.lab.machine.vm import Outcome

FSDAX = scenario.find("pmem-fsdax-100g")
DEVDAX = scenario.find("pmem-devdax-100g")
GIB = 1 << 30


def lines(one: scenario.Scenario = FSDAX, **chosen: Any) -> list[str]:
    return one.make(**{"seed": 1, **chosen}).job(["nfit"]).splitlines()


def test_what_is_bound_is_unbound_and_compared() -> None:
    job = lines(rounds=7)
    assert len([li for li in job if li.startswith("bind ")]) == job.count("unbind")
    assert job.count("bind round") == 21
    compared = [li for li in job if li.startswith("compare")]
    assert compared[1:] == ["compare last", "compare flipped", "compare restored"]
    small = [li for li in lines(rounds=4, size=GIB) if li.startswith("compare r")]
    assert len(small) == 4 + 1
    broken = lines(break_one_word=True)
    assert broken.count("flip") == 1
    assert "use_device" not in broken


@pytest.mark.parametrize(
    ("one", "align", "where", "pages"),
    [
        (FSDAX, "2M", "dev", 1 << 19),
        (FSDAX, "2M", "mem", 1 << 19),
        (DEVDAX, "2M", "dev", 1 << 19),
        (DEVDAX, "4K", "mem", 1 << 19),
        (DEVDAX, "2M", "mem", 1 << 17),
        (DEVDAX, "1G", "mem", 256),
    ],
)
def test_bytes_written(
    one: scenario.Scenario, align: str, where: str, pages: int
) -> None:
    work = one.make(map=where, **({"align": align} if one is DEVDAX else {}))
    report = Outcome(lambda _event: None, [{"event": "bind", "pages": 1 << 19}])
    assert work.written(report) == pages * 64  # type: ignore[attr-defined]


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
    held = Outcome(lambda _event: None, [said])
    work = FSDAX.make(workers=workers, break_one_word=True)
    (check,) = [c for c in work.checks(held) if c.name.startswith("stamped")]
    assert check.ok is ok
