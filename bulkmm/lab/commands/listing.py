# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab list``: the scenarios that fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bulkmm.control.status import SCHEMA_VERSION
from bulkmm.errors import Exit
from bulkmm.lab import scenario
from bulkmm.lab.machine import arch, kinds

if TYPE_CHECKING:
    import argparse

    from bulkmm.lab.scenario import Scenario


def show(args: argparse.Namespace) -> int:
    """Print what each scenario is."""
    found = [one for one in scenario.SCENARIOS if _fits(one, args)]
    if args.json:
        said = {"schema_version": SCHEMA_VERSION, "kind": "scenarios"}
        print(json.dumps({**said, "scenarios": [*map(_json, found)]}, indent=1))
        return Exit.OK
    for one in found:
        print(one.name)
        print(f"  measures   {one.measures}")
        print(f"  checks     {one.check}")
        for line in one.published:
            print(f"  published  {line}")
        where = ", ".join(f"{name} {' '.join(_series(one, name))}" for name in _on(one))
        guest = f"{one.memory} MiB, about {one.seconds} s under TCG; {where}"
        print(f"  guest      {guest}")
    return Exit.OK


def _fits(one: Scenario, args: argparse.Namespace) -> bool:
    names = [args.arch] if args.arch else _on(one)
    series = [each for name in names for each in _series(one, name)]
    text = f"{one.name} {one.family} {one.measures} {one.check}".lower()
    return (
        (not args.family or one.family == args.family)
        and (not args.kernel or any(map(args.kernel.startswith, series)))
        and (not args.arch or bool(series))
        and (args.text or "").lower() in text
    )


def _on(one: Scenario) -> list[str]:
    return [name for name in arch.NAMES if _series(one, name)]


def _series(one: Scenario, name: str) -> list[str]:
    """Return the kernels of an architecture that a scenario runs on."""
    if one.x86_64_only and name != arch.X86_64.name:
        return []
    on = arch.find(name)
    return [each for each in (*on.series, *kinds.of(on)) if one.runs_on(each)]


def _json(one: Scenario) -> dict[str, Any]:
    return {
        "name": one.name,
        "family": one.family,
        "measures": one.measures,
        "checks": one.check,
        "published": one.published,
        "memory_mib": one.memory,
        "seconds": one.seconds,
        "runs_on": {name: _series(one, name) for name in _on(one)},
    }
