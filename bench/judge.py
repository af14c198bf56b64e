# SPDX-License-Identifier: GPL-2.0-only
"""Evaluating the arms of one subject: the limit, ratios, checks.

The limit of a scenario is the fastest of the program's store loops for it
(``limit:KIND``). It is a separate result, ``limit``, and the winner is among the
picks of the scenario.
"""

import math
from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from bench.subjects import Arms, Subject
from bulkmm.results import stats
from bulkmm.results.model import AGAIN, LIMIT, Check, Key, Result

# Faster than the limit by this factor, in every process, is a mistake of the bench;
# the threshold is higher where the A/A control moves by more.
BEATEN = 1.02
LEAST = 3  # processes


def by_scenario(results: Iterable[Result]) -> dict[str, Arms]:
    """Return the arms of each scenario by variant."""
    scenarios: dict[str, Arms] = {}
    for result in results:
        scenarios.setdefault(result.scenario, {})[result.variant] = result
    return scenarios


def _is_kind(arm: Result) -> bool:
    return arm.arm == LIMIT and bool(arm.backend)


def with_limits(
    arms: dict[Key, Result], subject: Subject
) -> tuple[list[Result], dict[str, dict[str, str]]]:
    """Return all results in order, limits among them, and the winners' kinds.

    The limit is the fastest kind of each cold and unused scenario.
    """
    limits: dict[str, Result] = {}
    for arm in arms.values():
        if _is_kind(arm) and arm.use in subject.limited:
            so_far = limits.get(arm.scenario, arm)
            limits[arm.scenario] = min(so_far, arm, key=attrgetter("median"))
    all_results = [
        *arms.values(),
        *(replace(a, variant=LIMIT, backend="") for a in limits.values()),
    ]
    results = [
        one
        for group in by_scenario(all_results).values()
        for one in sorted(group.values(), key=subject.rank)
    ]
    return results, {s: {LIMIT: a.backend} for s, a in limits.items()}


def compute_effects(
    subject: Subject, results: Iterable[Result]
) -> "list[stats.Effect]":
    """Return the ratios of every scenario, to be judged with those of others."""
    ratios = []
    for arms in by_scenario(results).values():
        pairs = dict.fromkeys(subject.pairs(arms))
        ratios += stats.compare_arms(arms, pairs, _control(arms))
    return ratios


def _control(arms: Arms) -> tuple[str, str] | None:
    """Return the base that is measured twice, and its repetition."""
    again = (name for name, result in arms.items() if result.control == AGAIN)
    pairs = ((arms[name].arm, name) for name in again)
    return next((pair for pair in pairs if pair[0] in arms), None)


def limit_checks(subject: Subject, results: Iterable[Result]) -> list[Check]:
    """Return the check that nothing beats the limit, where there is one.

    A process or two are too few to tell what happens in every one.
    """
    scenarios = by_scenario(results).values()
    limited = [a for a in scenarios if LIMIT in a and any(map(_is_kind, a.values()))]
    if not limited or len(limited[0][LIMIT].samples) < LEAST:
        return []
    beaten = [line for arms in limited for line in _beaten(subject, arms)]
    detail = ", ".join(beaten) or f"of {len(limited)} scenarios, in every process"
    name = f"nothing of {subject.name} is faster than its limit"
    return [Check(name, not beaten, detail)]


def _beaten(subject: Subject, arms: Arms) -> Iterator[str]:
    """Return the arms of one thread that are too fast in every process."""
    kinds = [arm.samples for arm in arms.values() if _is_kind(arm)]
    fastest = [min(times) for times in zip(*kinds, strict=True)]
    control = _control(arms)
    noise = stats.most_noise(arms, control) if control else 0
    least = max(BEATEN, math.exp(noise))
    for arm in arms.values():
        if arm.arm == LIMIT or arm.threads > 1 or arm.way in subject.cached:
            continue
        pairs = zip(arm.samples, fastest, strict=True)
        if all(ns * least < limit for ns, limit in pairs):
            yield f"{arm.scenario} {arm.variant}"
