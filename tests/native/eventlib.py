# SPDX-License-Identifier: GPL-2.0-only
"""Events of a bench program that never ran."""

from collections.abc import Mapping, Sequence
from typing import Any

from bulkmm.bench import measure, subjects

Event = dict[str, Any]
Times = Mapping[str, Sequence[Sequence[int]]]  # of a variant: by process, by round


def events(
    scenarios: Mapping[str, Times], served: Sequence[tuple[str, str, str]] = ()
) -> list[list[Event]]:
    """Return what each process says; ``served``: scenario, variant, backend."""
    count = len(next(iter(next(iter(scenarios.values())).values())))
    return [process(scenarios, served, number) for number in range(count)]


def process(
    scenarios: Mapping[str, Times],
    served: Sequence[tuple[str, str, str]] = (),
    number: int = 0,
    *,
    ok: bool = True,
) -> list[Event]:
    """Return what one process says."""
    start = {"event": "start", "bytes": 1 << 30, "huge_bytes": 1 << 30, "llc": 1 << 25}
    lines: list[Event] = [start]
    for scenario, variants in scenarios.items():
        for variant, times in variants.items():
            named = {"scenario": scenario, "variant": variant}
            lines += [
                {"event": "sample", **named, "round": i, "bytes": 1000, "ns": ns}
                for i, ns in enumerate(times[number])
            ]
            lines.append({"event": "verified", **named, "ok": ok})
    for scenario, variant, backend in served:
        named = {"scenario": scenario, "variant": variant, "backend": backend}
        lines.append({"event": "served", **named, "op": "any"})
    return lines


def document(
    *parts: tuple[subjects.Subject, Mapping[str, Times]],
    served: Sequence[tuple[str, str, str]] = (),
) -> Any:
    """Return the document of these times of subjects."""
    taken = [(subject, events(scenarios, served)) for subject, scenarios in parts]
    return measure.document(
        (said, subjects.Request(subject, subject.full, processes=len(said)))
        for subject, said in taken
    )


def steady(ns: int, processes: int = 5, rounds: int = 3) -> list[list[int]]:
    """Return times that vary by less than half a percent, never alike."""
    return [
        [ns + (7 * i + 3 * k) % 41 * ns // 10000 for k in range(rounds)]
        for i in range(processes)
    ]
