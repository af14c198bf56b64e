# SPDX-License-Identifier: GPL-2.0-only
"""Measure subjects natively: events of processes become a result document."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from bench import amount, judge, program
from bench.subjects import Request
from bulkmm.results import host, stats
from bulkmm.results.model import Check, Document, Key, Result
from bulkmm.shell.errors import BulkmmError, unknown_word

Event = dict[str, Any]
Observer = Callable[[Event], None]
Start = Callable[[int, str], Iterable[Event]]  # from number and padding
PADDING = 4096  # bytes of padding in the environment, which shifts the stack


def run_bench(
    requests: Sequence[Request], observer: Observer | None = None
) -> Document:
    """Measure and verify the subjects in turn; ``observer`` gets each event."""
    for request in requests:
        check_request(request)
    return measure_requests([(request, None) for request in requests], observer)


def measure_requests(
    requests: Iterable[tuple[Request, Start | None]], observer: Observer | None
) -> Document:
    """Return what came of requests, with what starts a process (None: the bench)."""
    before = host.read_load()
    plan = list(requests)
    runs = [run_processes(request, observer, start) for request, start in plan]
    result = make_document(zip(take_turns(runs), (one for one, _ in plan), strict=True))
    result.run |= host.compare_load(before)
    return result


def take_turns(runs: Iterable[Iterator[list[Event]]]) -> list[list[list[Event]]]:
    """Run a process of each in turn; return the events of each run's processes.

    What disturbs for a while disturbs all alike, and after a turn the time is known.
    """
    turns = list(zip_longest(*runs))
    return [
        [log for log in logs if log is not None] for logs in zip(*turns, strict=True)
    ]


def make_document(
    measurements: Iterable[tuple[list[list[Event]], Request]],
) -> Document:
    """Return what all processes said, by subject; all ratios are judged together."""
    combined = Document(machine={**host.describe_host(), "accelerator": "native"})
    effects: list[stats.Effect] = []
    picks: dict[str, dict[str, str]] = {}
    runs: list[dict[str, Any]] = []
    for logs, request in measurements:
        if not any(event["event"] == "sample" for event in logs[0]):
            continue  # it has none of the scenarios
        subject = request.subject
        results, kinds = judge.with_limits(arms_of(logs), subject)
        combined.results += results
        effects += judge.compute_effects(subject, results)
        combined.checks += _verdicts(logs, subject.right, subject.wrong)
        combined.checks += judge.limit_checks(subject, results)
        for selection in (_picks(logs), kinds):
            for scenario, backends in selection.items():
                picks.setdefault(scenario, {}).update(backends)
        run = {"scenario": subject.name, "processes": request.processes}
        runs.append({**run, **_start(logs)})
    combined.ratios = stats.judge_ratios(effects)
    combined.run = {**_joined(runs), "picks": picks}
    return combined


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


def check_request(request: Request) -> None:
    """Reject what cannot be measured before starting anything."""
    if (wanted := request.backend) is not None:
        names = program.list_backends(request.subject.name)
        if wanted not in names:
            raise unknown_word("backend", wanted, names)
    amount.check_memory(request.memory)


def run_processes(
    request: Request, observer: Observer | None = None, start: Start | None = None
) -> Iterator[list[Event]]:
    """Run the bench, or ``start``, for each process, and yield its events.

    ``observer`` gets each as it comes.
    Each process has fresh mappings, its own order and its own stack position.
    """
    chance = random.Random(request.seed)  # noqa: S311 - to vary, not to hide
    begin = start or (lambda n, pad: program.read_events(_arguments(request, n), pad))
    for number in range(request.processes):
        events = []
        padding = "." * chance.randrange(PADDING)
        if observer:
            observer({"event": "process", "process": number})
        for event in begin(number, padding):
            events.append(event)
            if observer:
                observer({**event, "process": number})
        yield events


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


def _start(logs: list[list[Event]]) -> Event:
    """Return the first process's description of the run, the least in huge pages.

    Those are of all of its memory, which can be more than what is measured.
    """
    starts = [event for _, event in _select_events(logs, "start")]
    description = dict(starts[0])
    if "huge_bytes" in description:
        least = min(event.get("huge_bytes", 0) for event in starts)
        description["huge_bytes"] = min(least, description.get("bytes", least))
    return {key: value for key, value in description.items() if key != "event"}


def arms_of(logs: list[list[Event]]) -> dict[Key, Result]:
    """Return each arm by scenario and variant, in the order first seen."""
    raw: dict[Key, list[list[int]]] = {}
    nbytes = {}
    for number, event in _select_events(logs, "sample"):
        key = event["scenario"], event["variant"]
        times = raw.setdefault(key, [[] for _ in logs])
        times[number].append(event["ns"])
        nbytes[key] = event["bytes"]
    for (scenario, variant), times in raw.items():
        if not all(times):
            raise BulkmmError(f"{scenario}, {variant}: not measured by every process")
    return {
        key: stats.of_processes(*key, nbytes[key], times) for key, times in raw.items()
    }


def _select_events(logs: list[list[Event]], kind: str) -> Iterator[tuple[int, Event]]:
    """Yield the events of a kind, each with the number of its process."""
    for number, events in enumerate(logs):
        yield from ((number, event) for event in events if event["event"] == kind)


def _picks(logs: list[list[Event]]) -> dict[str, dict[str, str]]:
    """Return by scenario the backends that served each variant, the usual one first."""
    counts: dict[Key, Counter[str]] = {}
    for _, event in _select_events(logs, "served"):
        key = event["scenario"], event["variant"]
        counts.setdefault(key, Counter())[event["backend"]] += 1
    picks: dict[str, dict[str, str]] = {}
    for (scenario, variant), count in counts.items():
        backends = "/".join(backend for backend, _ in count.most_common())
        picks.setdefault(scenario, {})[variant] = backends
    return picks


def _verdicts(logs: list[list[Event]], right: str, wrong: str) -> list[Check]:
    """Return the verdict on each verified variant."""
    verified: dict[Key, bool] = {}
    for _, event in _select_events(logs, "verified"):
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
