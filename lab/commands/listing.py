# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab list``: list the scenarios that match."""

import argparse
from collections.abc import Iterator

from bulkmm.control.record import ScenarioRecord, Scenarios
from bulkmm.shell.errors import Exit
from lab import scenario
from lab.choices import FLAGS
from lab.machine import arch, kernels, kinds
from lab.scenario import Scenario


def show(args: argparse.Namespace) -> int:
    """Print a description of each scenario."""
    if args.kernel:
        named = arch.find(args.arch or arch.X86_64.name)
        kernels.check(args.kernel, named, *arch.ALL)
    found = [_record(one) for one in scenario.SCENARIOS if _fits(one, args)]
    lines = (line for one in found for line in _lines(one))
    Scenarios(scenarios=found).tell(lines, as_json=args.json)
    return Exit.OK


def _lines(one: ScenarioRecord) -> Iterator[str]:
    yield one.name
    yield f"  {'measures' if one.measures else 'does':9}  {one.about}"
    yield f"  checks     {one.checks}"
    for line in one.published:
        yield f"  published  {line}"
    yield f"  takes      {' '.join(one.takes) or 'no option'}"
    where = ", ".join(" ".join((name, *on)) for name, on in one.runs_on.items())
    guest = f"{one.memory_mib} MiB, about {one.seconds} s under TCG"
    yield f"  guest      {guest}; {where}"


def _fits(one: Scenario, args: argparse.Namespace) -> bool:
    names = [args.arch] if args.arch else arch.NAMES
    text = f"{one.name} {one.family} {one.about} {one.check}".lower()
    return (
        (not args.family or one.family == args.family)
        and any(_series(one, name, args.kernel) for name in names)
        and (args.text or "").lower() in text
    )


def _series(one: Scenario, name: str, kernel: str | None = None) -> list[str]:
    """Return which of an architecture's kernels, or of the one, a scenario runs on."""
    on = arch.find(name)
    known = [kernel] if kernel else [*on.series, *kinds.of(on)]
    known = [each for each in known if not kernels.problem(each, on)]
    return [each for each in known if one.runs_on(each, on)]


def _record(one: Scenario) -> ScenarioRecord:
    return ScenarioRecord(
        name=one.name,
        family=one.family,
        about=one.about,
        measures=one.about if one.measures else "",
        checks=one.check,
        published=list(one.published),
        memory_mib=one.memory,
        seconds=one.seconds,
        takes=[FLAGS[name] for name in one.takes],
        runs_on={name: on for name in arch.NAMES if (on := _series(one, name))},
    )
