# SPDX-License-Identifier: GPL-2.0-only
"""Time of an operation by kernel function, as lab/guest/trace.sh reports it."""

from collections.abc import Iterable
from typing import Any

from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check


def of(outcome: Outcome) -> list[dict[str, Any]]:
    """Return calls and nanoseconds per operation, arm and function.

    Times are those of function_graph, its overhead included: ``ns`` with callees,
    ``own_ns`` without the other functions listed.
    """
    return [
        {
            "operation": event["operation"],
            "variant": event["arm"],
            "ns": int(event["ns"]),
            "functions": dict(map(_function, str(event["functions"]).split())),
        }
        for event in outcome.of("graph")
    ]


def _function(text: str) -> tuple[str, dict[str, int]]:
    name, _, counted = text.partition("=")
    keys = ("calls", "ns", "own_ns")
    return name, dict(zip(keys, map(int, counted.split(":")), strict=True))


def check(outcome: Outcome, operations: Iterable[str], arms: Iterable[str]) -> Check:
    """Check that each operation was fully traced in each arm."""
    wanted = {(operation, arm) for operation in operations for arm in arms}
    graphs = outcome.of("graph")
    held = [event for event in graphs if str(event["functions"]).split()]
    seen = {(event["operation"], event["arm"]) for event in held}
    lost = sum(int(event["lost"]) for event in graphs)
    detail = f"{len(seen)} of {len(wanted)} operations, {lost} events lost"
    return Check("time by function", seen == wanted and not lost, detail)
