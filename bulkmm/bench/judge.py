# SPDX-License-Identifier: GPL-2.0-only
"""Evaluating the arms of one subject: the limit, ratios, checks.

The limit of a scenario is the fastest of the program's store loops for it
(``limit:KIND``). It is a separate result, ``limit``, and the winner is among the
picks of the scenario.
"""

import math
import re
from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from bulkmm import stats
from bulkmm.bench.subjects import LIMIT, Arms, Key, Subject, split
from bulkmm.results import Check, Result

# Faster than the limit by this factor, in every process, is a mistake of the bench;
# the threshold is higher where the A/A control moves by more.
BEATEN = 1.02
LEAST = 3  # processes


def by_scenario(results: Iterable[Result]) -> dict[str, Arms]:
    """Return the arms of each scenario by variant."""
    found: dict[str, Arms] = {}
    for result in results:
        found.setdefault(result.scenario, {})[result.variant] = result
    return found


def _is_kind(variant: str) -> bool:
    return variant.startswith(f"{LIMIT}:")


def with_limits(
    arms: dict[Key, Result], subject: Subject
) -> tuple[list[Result], dict[str, dict[str, str]]]:
    """Return all results in order, limits among them, and the winners' kinds.

    The limit is the fastest kind of each cold and unused scenario.
    """
    found: dict[str, Result] = {}
    for arm in arms.values():
        if _is_kind(arm.variant) and re.fullmatch(subject.cold, arm.scenario):
            so_far = found.get(arm.scenario, arm)
            found[arm.scenario] = min(so_far, arm, key=attrgetter("median"))
    every = [*arms.values(), *(replace(a, variant=LIMIT) for a in found.values())]
    results = [
        one
        for held in by_scenario(every).values()
        for one in sorted(held.values(), key=lambda arm: subject.rank(arm.variant))
    ]
    return results, {s: {LIMIT: split(a.variant)[2]} for s, a in found.items()}


def effects(subject: Subject, results: Iterable[Result]) -> "list[stats.Effect]":
    """Return the ratios of every scenario, to be judged with those of others."""
    found = []
    for held in by_scenario(results).values():
        pairs = dict.fromkeys(subject.pairs(held))
        found += stats.compared(held, pairs, _control(subject, held))
    return found


def _control(subject: Subject, held: Arms) -> tuple[str, str] | None:
    """Return the base that is measured twice, and its repetition."""
    pairs = ((base, f"{base}-again") for base in subject.bases)
    return next((pair for pair in pairs if held.keys() >= {*pair}), None)


def limit_checks(subject: Subject, results: Iterable[Result]) -> list[Check]:
    """Return the check that nothing beats the limit, where there is one.

    A process or two are too few to tell what happens in every one.
    """
    every = by_scenario(results).values()
    held = [a for a in every if LIMIT in a and any(map(_is_kind, a))]
    if not held or len(held[0][LIMIT].samples) < LEAST:
        return []
    beaten = [line for arms in held for line in _beaten(subject, arms)]
    said = ", ".join(beaten) or f"of {len(held)} scenarios, in every process"
    name = f"nothing of {subject.name} is faster than its limit"
    return [Check(name, not beaten, said)]


def _beaten(subject: Subject, held: Arms) -> Iterator[str]:
    """Return the arms of one thread that are too fast in every process."""
    kinds = [arm.samples for variant, arm in held.items() if _is_kind(variant)]
    fastest = [min(times) for times in zip(*kinds, strict=True)]
    control = _control(subject, held)
    noise = stats.most_noise(held, control) if control else 0
    least = max(BEATEN, math.exp(noise))
    for variant, arm in held.items():
        name, threads, _ = split(variant)
        if name == LIMIT or threads or name in subject.cached:
            continue
        pairs = zip(arm.samples, fastest, strict=True)
        if all(ns * least < limit for ns, limit in pairs):
            yield f"{arm.scenario} {variant}"
