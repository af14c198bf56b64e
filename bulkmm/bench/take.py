# SPDX-License-Identifier: GPL-2.0-only
"""What all native measurements share: limits, samples, arms, checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bulkmm import machine, stats
from bulkmm.bench import program
from bulkmm.errors import BulkmmError, UsageError
from bulkmm.results import Check

if TYPE_CHECKING:
    from collections.abc import Callable

    from bulkmm.results import Result

    Event = dict[str, Any]
    Seen = Callable[[Event], None]

SPARE_KIB = 64 << 10  # what the program and the rest of the system keep


def check_rounds(rounds: int) -> None:
    """Refuse a number of rounds that the program does not take."""
    if not 1 <= rounds <= 10000:  # noqa: PLR2004 - the program's range
        raise UsageError(f"{rounds} rounds: give 1 to 10000")


def check_backend(subject: str, name: str | None) -> None:
    """Refuse a backend that does not serve for a subject here."""
    if name is None:
        return
    names = program.backends(subject)
    if name not in names:
        listed = ", ".join(names)
        raise UsageError(f"no backend {name!r} here: there are {listed}")


def check_memory(nbytes: int) -> None:
    """Refuse what does not fit into memory, before anything is started."""
    need = nbytes // 1024 + SPARE_KIB
    have = machine.memory_kib("MemAvailable")
    if have is not None and have < need:
        raise BulkmmError(
            f"not enough memory: {need >> 10} MiB needed, {have >> 10} MiB available"
        )


def events(arguments: list[str], seen: Seen | None) -> list[Event]:
    """Run the program to its end; ``seen`` is told each event."""
    taken = []
    for event in program.events(arguments):
        taken.append(event)
        if seen:
            seen(event)
    return taken


def start(taken: list[Event]) -> Event:
    """Return what the program said of the run, and which backends served."""
    found = next(event for event in taken if event["event"] == "start")
    said = {key: value for key, value in found.items() if key != "event"}
    served: dict[str, dict[str, str]] = {}
    for event in taken:
        if event["event"] == "served":
            served.setdefault(event["scenario"], {})[event["op"]] = event["backend"]
    return {**said, "served": served}


def arms(taken: list[Event]) -> dict[tuple[str, str], Result]:
    """Return each arm by scenario and variant, in the order first seen."""
    samples: dict[tuple[str, str], list[float]] = {}
    nbytes = {}
    for event in taken:
        if event["event"] == "sample":
            key = event["scenario"], event["variant"]
            samples.setdefault(key, []).append(event["ns"])
            nbytes[key] = event["bytes"]
    return {
        key: stats.summarise(*key, "ns", nbytes[key], values)
        for key, values in samples.items()
    }


def checks(taken: list[Event], right: str, wrong: str) -> list[Check]:
    """Return the verdict on each verified variant."""
    found = [event for event in taken if event["event"] == "verified"]
    several = len({event["scenario"] for event in found}) > 1
    return [
        Check(
            f"output of {event['scenario'] + ' ' if several else ''}{event['variant']}",
            event["ok"],
            right if event["ok"] else wrong,
        )
        for event in found
    ]
