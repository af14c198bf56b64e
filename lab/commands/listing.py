# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab list``: list the scenarios that match."""

import argparse
import sys
from collections.abc import Iterator

from bulkmm.control.json_output import ScenarioRecord, Scenarios
from bulkmm.shell.errors import Exit
from bulkmm.shell.progress import format_estimate
from bulkmm.shell.width import wrap_line
from lab.choices import FLAGS
from lab.machine import arch, kernel_kinds, kernels
from lab.scenario import SCENARIOS, Scenario

LONG = 300  # seconds; from there on the short list tells, too
NAME_WIDTH = max(len(scenario.name) for scenario in SCENARIOS)


def list_scenarios(args: argparse.Namespace) -> int:
    """Print a description of each scenario."""
    if args.kernel:
        machine = arch.find_arch(args.arch or arch.X86_64.name)
        kernels.check_name(args.kernel, machine, *arch.ARCHES)
    records = [_record(one) for one in SCENARIOS if _fits(one, args)]
    if not records:
        sys.stderr.write("bulkmm: nothing fits: bulkmm lab list shows all of them\n")
    describe = _describe if args.full else _name
    lines = [line for record in records for line in describe(record)]
    names = {one: _list_kernels(arch.find_arch(one)) for one in arch.NAMES}
    if records:
        lines += ["", *_describe_kernels(names)]
    document = Scenarios(scenarios=records, kernels=names)
    document.print_output(lines, as_json=args.json)
    return Exit.OK if records or not args.text else Exit.USAGE


def _list_kernels(machine: arch.Arch) -> list[str]:
    """Return what --kernel takes on an architecture, besides full releases."""
    return [*machine.tested, *kernel_kinds.list_names(machine)]


def _describe_kernels(names: dict[str, list[str]]) -> Iterator[str]:
    for name, kernels_of in names.items():
        yield from wrap_line(f"--arch {name} --kernel {', '.join(kernels_of)}", "  ")
    yield "or a full release: bulkmm lab kernels --list; what is built: docs/lab.md"


def _name(record: ScenarioRecord) -> Iterator[str]:
    line = f"{record.name:{NAME_WIDTH}} {record.about}"
    if record.seconds >= LONG:
        line += f" ({format_estimate(record.seconds)})"
    yield from wrap_line(line, " " * (NAME_WIDTH + 1))


def _describe(record: ScenarioRecord) -> Iterator[str]:
    yield record.name
    yield f"  {'measures' if record.measures else 'does':9}  {record.about}"
    yield f"  checks     {record.checks}"
    for line in record.published:
        yield f"  published  {line}"
    yield f"  takes      {' '.join(record.takes) or 'no option'}"
    where = ", ".join(" ".join((name, *on)) for name, on in record.runs_on.items())
    guest = f"{record.memory_mib} MiB, {format_estimate(record.seconds)} under TCG"
    yield f"  guest      {guest}; {where}"


def _fits(scenario: Scenario, args: argparse.Namespace) -> bool:
    names = [args.arch] if args.arch else arch.NAMES
    text = (
        f"{scenario.name} {scenario.family} {scenario.about} {scenario.check}".lower()
    )
    return (
        (not args.family or scenario.family == args.family)
        and any(_series(scenario, name, args.kernel) for name in names)
        and (args.text or "").lower() in text
    )


def _series(scenario: Scenario, name: str, kernel: str | None = None) -> list[str]:
    """Return which of an architecture's kernels, or of the one, a scenario runs on."""
    on = arch.find_arch(name)
    candidates = [kernel] if kernel else [*on.series, *kernel_kinds.list_names(on)]
    candidates = [each for each in candidates if not kernels.find_problem(each, on)]
    return [
        each for each in candidates if scenario.runs_on(kernels.read_name(each, on))
    ]


def _record(scenario: Scenario) -> ScenarioRecord:
    return ScenarioRecord(
        name=scenario.name,
        family=scenario.family,
        about=scenario.about,
        measures=scenario.about if scenario.measures else "",
        checks=scenario.check,
        published=list(scenario.published),
        memory_mib=scenario.machine.memory,
        seconds=scenario.seconds,
        takes=[FLAGS[name] for name in scenario.takes],
        runs_on={name: on for name in arch.NAMES if (on := _series(scenario, name))},
    )
