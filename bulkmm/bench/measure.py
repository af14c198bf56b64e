# SPDX-License-Identifier: GPL-2.0-only
"""Measure subjects natively: events become a result document."""

from collections.abc import Sequence
from typing import Any

from bulkmm import machine, stats
from bulkmm.bench import judge, take
from bulkmm.bench.subjects import Request
from bulkmm.bench.take import Event, Seen
from bulkmm.results import Document


def run_bench(requests: Sequence[Request], seen: Seen | None = None) -> Document:
    """Measure and verify the subjects in turn; ``seen`` is called for each event."""
    for request in requests:
        take.check(request)
    before = machine.state()
    found = join([document(take.processes(one, seen), one) for one in requests])
    found.run |= machine.disturbed(before)
    return found


def document(taken: list[list[Event]], request: Request) -> Document:
    """Return the document made from the events of all processes."""
    subject, start = request.subject, take.start(taken)
    results, kinds = judge.with_limits(take.arms(taken), subject)
    picks = take.picks(taken)
    scenarios = dict.fromkeys([*picks, *kinds])
    run = {
        "scenario": subject.name,
        "processes": request.processes,
        **start,
        "picks": {s: {**picks.get(s, {}), **kinds.get(s, {})} for s in scenarios},
    }
    return Document(
        machine={**machine.describe(), "accelerator": "native"},
        results=results,
        ratios=judge.ratios(subject, results),
        checks=[
            *take.verdicts(taken, subject.right, subject.wrong),
            *judge.limit_checks(subject, results),
        ],
        run=run,
    )


def join(documents: Sequence[Document]) -> Document:
    """Merge documents of one run into one, whose ratios are judged together."""
    if len(documents) == 1:
        return documents[0]
    results = [result for one in documents for result in one.results]
    arms = {(one.scenario, one.variant): one for one in results}
    effects = [
        (r, stats.effects(arms[r.scenario, r.base], arms[r.scenario, r.variant]))
        for one in documents
        for r in one.ratios
    ]
    return Document(
        machine=documents[0].machine,
        results=results,
        ratios=stats.proven(effects),
        checks=[check for one in documents for check in one.checks],
        run=_joined([one.run for one in documents]),
    )


def _joined(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what holds of all, and each subject's members as in "clear.rounds"."""
    return {
        "scenario": "all",
        "processes": runs[0]["processes"],
        "bytes": sum(run.get("bytes", 0) for run in runs),
        "huge_bytes": sum(run.get("huge_bytes", 0) for run in runs),
        "picks": {k: picked for run in runs for k, picked in run["picks"].items()},
        **{
            f"{run['scenario']}.{name}": value
            for run in runs
            for name, value in run.items()
            if name not in ("scenario", "processes", "picks")
        },
    }
