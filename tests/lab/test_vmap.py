# SPDX-License-Identifier: GPL-2.0-only
"""What is read in the kernel's log: warnings, its own tests' results."""

import pytest

from bulkmm.lab import run, scenario
from bulkmm.lab.families import vmap_proof
from bulkmm.lab.machine import klog
from bulkmm.lab.machine.vm import Outcome

OLD = "WARNING: CPU: 0 PID: 1 at mm/vmalloc.c:556 vmap_small_pages_range_noflush+0x4"
NEW = "WARNING: mm/vmalloc.c:565 at vmap_small_pages_range_noflush+0x449/0x5e0"
Said = tuple[str, ...]


def logged(arm: str, *said: str, what: str = "null-first") -> str:
    begin = f"[ 1.0] bulkmm-lab: warnings of {what} in {arm} begin"
    return "\n".join([begin, *said, "[ 1.1] bulkmm-lab: warnings end", ""])


def test_expected_warnings_are_no_fault() -> None:
    log = logged("pte", OLD, "Call Trace:", "[ 1.0] BUG: sleeping function")
    assert klog.search(log) == ["[ 1.0] BUG: sleeping function"]
    assert klog.search(log + "Call Trace:") == [*klog.search(log), "Call Trace:"]
    assert klog.search(logged("pte", "WARNING: Oops")) == ["WARNING: Oops"]
    for line, place in ((OLD, "mm/vmalloc.c:556"), (NEW, "mm/vmalloc.c:565")):
        found = klog.warnings(logged("pte", line, line) + line)
        assert found == [("null-first", "pte", [place, place])]
    lockdep = "WARNING: bad unlock balance detected!"
    assert klog.warnings(logged("pte", f"[ 1.0] {lockdep}"))[0][2] == [lockdep]


@pytest.mark.parametrize(
    ("absent", "on", "ok"),
    [((OLD,), (OLD,), True), ((OLD,), (), True), ((OLD,), (NEW,), False)],
)
def test_nothing_else_warns_than_without_the_module(
    absent: Said, on: Said, *, ok: bool
) -> None:
    log = logged("absent", *absent) + logged("on", *on)
    faults = scenario.find("hotplug-faults")
    assert [check.ok for check in run._warning_checks(faults, log)] == [ok]


@pytest.mark.parametrize(
    ("what", "absent", "pte", "ok"),
    [
        ("null-first", (OLD,), (OLD,), True),
        ("null-first", (OLD,), (), False),
        ("null-first", (OLD,), (OLD, OLD), False),
        ("null-first", (), (), False),
        ("too-many", (), (), True),
        ("too-many", (OLD,), (OLD,), False),
        ("test_vmalloc", (), (), True),
        ("test_vmalloc", (OLD,), (OLD,), False),
    ],
)
def test_warnings(what: str, absent: Said, pte: Said, *, ok: bool) -> None:
    log = logged("absent", *absent, what=what) + logged("pte", *pte, what=what)
    held = Outcome(log=log)
    assert [check.ok for check in vmap_proof.warnings(held, "absent")] == [ok]
