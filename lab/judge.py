# SPDX-License-Identifier: GPL-2.0-only
"""The result document of a run: what its scenario says, and what is common to all."""

from typing import Any

from bulkmm.results.model import Check, Document
from bulkmm.shell.errors import GuestError
from lab import state
from lab.machine import klog
from lab.machine.kernel_kinds import Kind
from lab.machine.vm import Outcome
from lab.scenario.base import ABSENT, Scenario


def judge_outcome(
    scenario: Scenario,
    kind: Kind | None,
    memory_limit: int,
    outcome: Outcome,
) -> Document:
    """Return the document of what a guest reported; checks may have failed."""
    try:
        document = _judge_scenario(scenario, outcome)
        document.checks += _guest_checks(scenario, kind, memory_limit, outcome)
    # a family's judge looks for what its guest reports, which may have failed to
    except (KeyError, IndexError, ValueError) as error:
        raise GuestError(f"the guest's reports are incomplete: {error!r}") from error
    return document


def _judge_scenario(scenario: Scenario, outcome: Outcome) -> Document:
    document = Document(machine={})
    document.results, document.ratios = scenario.results(outcome)
    document.checks = scenario.checks(outcome)
    document.run = {
        "scenario": scenario.name,
        "published": list(scenario.published),
        "peak_rss_bytes": outcome.peak_rss,
        "hooks": state.hooks_seen(outcome, scenario.path),
        **scenario.facts(outcome),
    }
    return document


def _guest_checks(
    scenario: Scenario,
    kind: Kind | None,
    memory_limit: int,
    outcome: Outcome,
) -> list[Check]:
    """Return the checks common to all scenarios (boot_guest() has checked the log)."""
    start, end = outcome.of("start")[0], outcome.of("end")[-1]
    allowed = scenario.taint
    allowed |= klog.WARNED_TAINT if scenario.warns else 0
    taint = klog.new_taint(int(start["taint"]), int(end["taint"]), allowed)
    rss = outcome.peak_rss
    return [
        Check("kernel log clean", ok=True, detail="nothing found"),
        Check("taint", not taint, f"{start['taint']} -> {end['taint']}"),
        Check("host memory", rss < memory_limit, f"{rss / 1e9:.2f} GB at its peak"),
        *_warning_checks(scenario, outcome.log),
        *_lock_checks(kind, end),
    ]


def _warning_checks(scenario: Scenario, log: str) -> list[Check]:
    """Check that nothing warned, where that is expected, but what does without us."""
    if not scenario.warns or scenario.path == "vmap":  # whose judge compares each
        return []
    by_absence: dict[bool, set[str]] = {True: set(), False: set()}
    for _, arm, places in klog.list_warnings(log):
        by_absence[arm == ABSENT].update(places)
    more = by_absence[False] - by_absence[True]
    return [Check("warnings", not more, f"not without the module: {sorted(more)}")]


def _lock_checks(kind: Kind | None, end: dict[str, Any]) -> list[Check]:
    """Check that a kernel with lockdep kept it running to the end.

    Lockdep turns itself off after its first report, and when its tables are full.
    """
    if not kind or not kind.proves_locking:
        return []
    debug_locks = end.get("debug_locks")
    detail = f"debug_locks: {debug_locks}"
    return [Check("locking proven to the end", debug_locks == 1, detail)]
