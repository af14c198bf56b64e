# SPDX-License-Identifier: GPL-2.0-only
"""Measure subjects natively: events become a result document."""

from collections.abc import Iterable, Sequence
from typing import Any

from bulkmm import machine, stats
from bulkmm.bench import judge, take
from bulkmm.bench.subjects import Request
from bulkmm.bench.take import Event, Seen, Start
from bulkmm.results import Document


def run_bench(requests: Sequence[Request], seen: Seen | None = None) -> Document:
    """Measure and verify the subjects in turn; ``seen`` is called for each event."""
    for request in requests:
        take.check(request)
    return measured([(request, None) for request in requests], seen)


def measured(
    asked: Iterable[tuple[Request, Start | None]], seen: Seen | None
) -> Document:
    """Return what came of requests, with what starts a process (None: the bench)."""
    before = machine.state()
    found = document([(take.processes(one, seen, start), one) for one, start in asked])
    found.run |= machine.disturbed(before)
    return found


def document(taken: Iterable[tuple[list[list[Event]], Request]]) -> Document:
    """Return what all processes said, by subject; all ratios are judged together."""
    found = Document(machine={**machine.describe(), "accelerator": "native"})
    effects: list[stats.Effect] = []
    picks: dict[str, dict[str, str]] = {}
    runs: list[dict[str, Any]] = []
    for events, request in taken:
        if not any(event["event"] == "sample" for event in events[0]):
            continue  # it has none of the scenarios
        subject = request.subject
        results, kinds = judge.with_limits(take.arms(events), subject)
        found.results += results
        effects += judge.effects(subject, results)
        found.checks += take.verdicts(events, subject.right, subject.wrong)
        found.checks += judge.limit_checks(subject, results)
        for served in (take.picks(events), kinds):
            for scenario, backends in served.items():
                picks.setdefault(scenario, {}).update(backends)
        run = {"scenario": subject.name, "processes": request.processes}
        runs.append({**run, **take.start(events)})
    found.ratios = stats.proven(effects)
    found.run = {**_joined(runs), "picks": picks}
    return found


def _joined(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a run; of several what holds of all, and members as in "clear.rounds"."""
    if len(runs) <= 1:
        return runs[0] if runs else {}
    return {
        "scenario": "all",
        "processes": runs[0]["processes"],
        "bytes": sum(run.get("bytes", 0) for run in runs),
        "huge_bytes": sum(run.get("huge_bytes", 0) for run in runs),
        **{
            f"{run['scenario']}.{name}": value
            for run in runs
            for name, value in run.items()
            if name not in ("scenario", "processes")
        },
    }
