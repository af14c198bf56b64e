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
    documents = [_run(request, seen) for request in requests]
    found = documents[0] if len(documents) == 1 else join(documents)
    found.run |= machine.disturbed(before)
    return found


def _run(request: Request, seen: Seen | None) -> Document:
    return document(take.processes(request, seen), request)


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
        run={"scenario": "all", **_sums(documents), **_named(documents)},
    )


def _sums(documents: Sequence[Document]) -> dict[str, Any]:
    runs = [one.run for one in documents]
    return {
        "processes": runs[0]["processes"],
        **{
            name: sum(run.get(name, 0) for run in runs)
            for name in ("bytes", "huge_bytes")
        },
        "picks": {k: picked for run in runs for k, picked in run["picks"].items()},
    }


def _named(documents: Sequence[Document]) -> dict[str, Any]:
    """Return each subject's members, named as in "clear.rounds"."""
    return {
        f"{one.run['scenario']}.{name}": value
        for one in documents
        for name, value in one.run.items()
        if name not in ("scenario", "processes", "picks")
    }
