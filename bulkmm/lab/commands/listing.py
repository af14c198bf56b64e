# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab list``: list the scenarios that match."""

import argparse
import json
from typing import Any

from bulkmm.control.record import VERSION
from bulkmm.errors import Exit
from bulkmm.lab import scenario
from bulkmm.lab.choices import FLAGS
from bulkmm.lab.machine import arch, kernels, kinds
from bulkmm.lab.scenario import Scenario


def show(args: argparse.Namespace) -> int:
    """Print a description of each scenario."""
    if args.kernel:
        named = arch.find(args.arch or arch.X86_64.name)
        kernels.check(args.kernel, named, *arch.ALL)
    found = [one for one in scenario.SCENARIOS if _fits(one, args)]
    if args.json:
        said = {"schema_version": VERSION, "kind": "scenarios"}
        print(json.dumps({**said, "scenarios": [*map(_json, found)]}, indent=1))
        return Exit.OK
    for one in found:
        print(one.name)
        print(f"  {'measures' if one.measures else 'does':9}  {one.about}")
        print(f"  checks     {one.check}")
        for line in one.published:
            print(f"  published  {line}")
        where = ", ".join(f"{name} {' '.join(_series(one, name))}" for name in _on(one))
        guest = f"{one.memory} MiB, about {one.seconds} s under TCG; {where}"
        taken = " ".join(FLAGS[name] for name in one.takes)
        print(f"  takes      {taken or 'no option'}")
        print(f"  guest      {guest}")
    return Exit.OK


def _fits(one: Scenario, args: argparse.Namespace) -> bool:
    names = [args.arch] if args.arch else _on(one)
    text = f"{one.name} {one.family} {one.about} {one.check}".lower()
    return (
        (not args.family or one.family == args.family)
        and any(_series(one, name, args.kernel) for name in names)
        and (args.text or "").lower() in text
    )


def _on(one: Scenario) -> list[str]:
    return [name for name in arch.NAMES if _series(one, name)]


def _series(one: Scenario, name: str, kernel: str | None = None) -> list[str]:
    """Return which of an architecture's kernels, or of the one, a scenario runs on."""
    on = arch.find(name)
    known = [kernel] if kernel else [*on.series, *kinds.of(on)]
    known = [each for each in known if not kernels.problem(each, on)]
    return [each for each in known if one.runs_on(each, on)]


def _json(one: Scenario) -> dict[str, Any]:
    return {
        "name": one.name,
        "family": one.family,
        "about": one.about,
        "measures": one.about if one.measures else "",
        "checks": one.check,
        "published": one.published,
        "memory_mib": one.memory,
        "seconds": one.seconds,
        "takes": [FLAGS[name] for name in one.takes],
        "runs_on": {name: _series(one, name) for name in _on(one)},
    }
