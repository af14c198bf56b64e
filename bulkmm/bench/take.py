# SPDX-License-Identifier: GPL-2.0-only
"""Run the program process by process and evaluate its events."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bulkmm import stats
from bulkmm.bench import amount, program
from bulkmm.bench.subjects import Request
from bulkmm.errors import BulkmmError, unknown
from bulkmm.results import Check, Result

Event = dict[str, Any]
Seen = Callable[[Event], None]
Start = Callable[[int, str], Iterable[Event]]  # from number and padding
Key = tuple[str, str]  # scenario, variant

PADDING = 4096  # bytes of padding in the environment, which shifts the stack


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
    if subject.used_max is not None:
        arguments.append(f"--used-max={subject.used_max}")
    return arguments


def start(taken: list[list[Event]]) -> Event:
    """Return the first process's description of the run."""
    found = next(event for event in taken[0] if event["event"] == "start")
    return {key: value for key, value in found.items() if key != "event"}


def arms(taken: list[list[Event]]) -> dict[Key, Result]:
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


def picks(taken: list[list[Event]]) -> dict[str, dict[str, str]]:
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


def verdicts(taken: list[list[Event]], right: str, wrong: str) -> list[Check]:
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
