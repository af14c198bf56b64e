# SPDX-License-Identifier: GPL-2.0-only
"""Measure subjects natively: events of processes become a result document."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from bulkmm import machine, stats
from bulkmm.bench import amount, judge, program
from bulkmm.bench.subjects import Key, Request
from bulkmm.errors import BulkmmError, unknown
from bulkmm.results import Check, Document, Result

Event = dict[str, Any]
Seen = Callable[[Event], None]
Start = Callable[[int, str], Iterable[Event]]  # from number and padding
PADDING = 4096  # bytes of padding in the environment, which shifts the stack


def run_bench(requests: Sequence[Request], seen: Seen | None = None) -> Document:
    """Measure and verify the subjects in turn; ``seen`` is called for each event."""
    for request in requests:
        check(request)
    return measured([(request, None) for request in requests], seen)


def measured(
    asked: Iterable[tuple[Request, Start | None]], seen: Seen | None
) -> Document:
    """Return what came of requests, with what starts a process (None: the bench)."""
    before = machine.state()
    found = document([(processes(one, seen, start), one) for one, start in asked])
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
        results, kinds = judge.with_limits(arms_of(events), subject)
        found.results += results
        effects += judge.effects(subject, results)
        found.checks += _verdicts(events, subject.right, subject.wrong)
        found.checks += judge.limit_checks(subject, results)
        for served in (_picks(events), kinds):
            for scenario, backends in served.items():
                picks.setdefault(scenario, {}).update(backends)
        run = {"scenario": subject.name, "processes": request.processes}
        runs.append({**run, **_start(events)})
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


def check(request: Request) -> None:
    """Reject what cannot be measured before starting anything."""
    if (wanted := request.backend) is not None:
        names = program.backends(request.subject.name)
        if wanted not in names:
            raise unknown("backend", wanted, names)
    amount.check_memory(request.memory)


def processes(
    request: Request, seen: Seen | None = None, start: Start | None = None
) -> list[list[Event]]:
    """Run the bench, or ``start``, for each process; ``seen`` is called for each event.

    Each process has fresh mappings, its own order and its own stack position.
    """
    chance = random.Random(request.seed)  # noqa: S311 - to vary, not to hide
    begin = start or (lambda n, pad: program.events(_arguments(request, n), pad))
    taken = []
    for number in range(request.processes):
        events = []
        padding = "." * chance.randrange(PADDING)
        for event in begin(number, padding):
            events.append(event)
            if seen:
                seen({**event, "process": number})
        taken.append(events)
    return taken


def _arguments(request: Request, number: int) -> list[str]:
    subject, wanted = request.subject, request.amount
    arguments = [subject.name, f"--size={wanted.size}"]
    arguments += [f"--rounds={request.rounds}", f"--seed={request.seed + number}"]
    arguments += [f"--extent={extent}" for extent in wanted.extents]
    if number:  # the first one verifies every output; the code is the same
        arguments.append("--unverified")
    if request.backend:
        arguments.append(f"--backend={request.backend}")
    return arguments


def _start(taken: list[list[Event]]) -> Event:
    """Return the first process's description of the run, the least in huge pages."""
    starts = [event for _, event in _each(taken, "start")]
    least = min(starts, key=lambda event: event.get("huge_bytes", 0))
    found = starts[0] | {k: v for k, v in least.items() if k == "huge_bytes"}
    return {key: value for key, value in found.items() if key != "event"}


def arms_of(taken: list[list[Event]]) -> dict[Key, Result]:
    """Return each arm by scenario and variant, in the order first seen."""
    raw: dict[Key, list[list[int]]] = {}
    nbytes = {}
    for number, event in _each(taken, "sample"):
        key = event["scenario"], event["variant"]
        times = raw.setdefault(key, [[] for _ in taken])
        times[number].append(event["ns"])
        nbytes[key] = event["bytes"]
    for (scenario, variant), times in raw.items():
        if not all(times):
            raise BulkmmError(f"{scenario}, {variant}: not measured by every process")
    return {
        key: stats.of_processes(*key, nbytes[key], times) for key, times in raw.items()
    }


def _each(taken: list[list[Event]], kind: str) -> Iterator[tuple[int, Event]]:
    """Yield the events of a kind, each with the number of its process."""
    for number, events in enumerate(taken):
        yield from ((number, event) for event in events if event["event"] == kind)


def _picks(taken: list[list[Event]]) -> dict[str, dict[str, str]]:
    """Return by scenario the backends that served each variant, the usual one first."""
    counted: dict[Key, Counter[str]] = {}
    for _, event in _each(taken, "served"):
        key = event["scenario"], event["variant"]
        counted.setdefault(key, Counter())[event["backend"]] += 1
    found: dict[str, dict[str, str]] = {}
    for (scenario, variant), count in counted.items():
        said = "/".join(backend for backend, _ in count.most_common())
        found.setdefault(scenario, {})[variant] = said
    return found


def _verdicts(taken: list[list[Event]], right: str, wrong: str) -> list[Check]:
    """Return the verdict on each verified variant."""
    verified: dict[Key, bool] = {}
    for _, event in _each(taken, "verified"):
        key = event["scenario"], event["variant"]
        verified[key] = verified.get(key, True) and event["ok"]
    several = len({scenario for scenario, _ in verified}) > 1
    return [
        Check(
            f"output of {scenario + ' ' if several else ''}{variant}",
            ok,
            right if ok else wrong,
        )
        for (scenario, variant), ok in verified.items()
    ]
