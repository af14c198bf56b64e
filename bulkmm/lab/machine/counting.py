# SPDX-License-Identifier: GPL-2.0-only
"""Counting the work of emulated guests: QEMU's plugin and its records.

Emulated times mean little, but the instructions and stores that the guest's
kernel retires for an operation do not depend on the host. The guest marks its
operations (module/selftest/mark.h); the plugin writes one line per record, in order.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bulkmm import stats
from bulkmm.errors import GuestError
from bulkmm.lab.machine.root import Root
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.paths import MARKS, PLUGIN, built, content_key
from bulkmm.lab.progress import Progress
from bulkmm.results import INSTRUCTIONS, STORES, Measured

COMPILER = "gcc-14"  # of the root, for the host: QEMU loads the result
COMPILE = ("-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror")
UNITS = (INSTRUCTIONS, STORES)
Event = dict[str, Any]  # from a guest
Work = tuple[float, float]  # instructions and stores of one operation
Key = TypeVar("Key")


def ensure(root: Root, progress: Progress) -> Path:
    """Return the plugin, which every architecture's QEMU loads."""
    sources = [*PLUGIN.glob("*.[ch]"), MARKS]
    made = root.var / "plugin" / content_key([*sources, Path(__file__)])

    def make(part: Path) -> None:
        for file in sources:
            shutil.copy(file, part)
        plugin, source = (root.inner(part / name) for name in ("work.so", "work.c"))
        root.run([COMPILER, *COMPILE, "-o", plugin, source])

    what = "building QEMU's plugin that counts work"
    return built(made, what, progress, make) / "work.so"


def of_events(
    outcome: Outcome, records: Callable[[Event], int]
) -> list[tuple[Event, list[list[int]]]]:
    """Return each event's records, if any; an empty list if nothing was counted."""
    found, taken = [], 0
    for event in outcome.events if outcome.work else ():
        if number := records(event):
            found.append((event, outcome.work[taken : taken + number]))
            taken += number
    if taken != len(outcome.work):
        said = f"work of {len(outcome.work)} operations was counted"
        raise GuestError(f"{said}, but the guest reported {taken}")
    return found


def by(
    outcome: Outcome,
    names: Sequence[str],
    key: Callable[[Event], Key | None],
    number: int = 0,
    *,
    calls: int = 1,
    many: Callable[[Event], int] = lambda _event: 1,
) -> dict[Key, list[Work]]:
    """Return the work of a call in a slot of the events' records, by key.

    Of an event whose key is None it is left out; ``many``: records of an event.
    """
    found: dict[Key, list[Work]] = defaultdict(list)
    held = of_events(outcome, lambda e: many(e) if e["event"] in names else 0)
    for event, records in held:
        if (kind := key(event)) is not None:
            found[kind] += [slot(record, number, calls) for record in records]
    return found


def slot(record: Sequence[int], number: int, calls: int = 1) -> Work:
    """Return the work of one call in a slot of a record."""
    instructions, stores = record[2 * number : 2 * number + 2]
    return instructions / calls, stores / calls


def rated(
    name: str,
    nbytes: int,
    arms: Mapping[str, Sequence[Work]],
    pairs: Iterable[tuple[str, str]],
) -> Measured:
    """Return the work of a scenario's arms by unit, and the ratios, if known."""
    if not all(arms.values()):
        return [], []
    return stats.joined(
        stats.rated(
            name, unit, nbytes, {a: [w[i] for w in arms[a]] for a in arms}, pairs
        )
        for i, unit in enumerate(UNITS)
    )
