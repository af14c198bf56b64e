# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab run``: one scenario, as the command line has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bulkmm import outcome, table
from bulkmm.errors import UsageError
from bulkmm.lab import run, scenario
from bulkmm.lab.families import (
    clear,
    hmm,
    hotplug,
    huge,
    packages,
    pmem,
    populate,
    suites,
    vmap,
)
from bulkmm.lab.machine import arch

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from bulkmm.lab.work import Work
    from bulkmm.results import Document

# options that not every family of scenarios has
OPTIONS = {
    scenario.PMEM: ("size", "align", "map", "backend", "workers"),
    scenario.CLEAR: (
        *("folios", "way", "kib", "preempt", "seconds"),
        *sorted(huge.ZEROING),
    ),
    scenario.VMAP: ("arm", "arrays", "loops", "seconds"),
    scenario.HMM: (),
    scenario.HOTPLUG: ("size",),
    scenario.POPULATE: (),
    scenario.SUITES: ("part", "seconds"),
}
COMMON = ("rounds", "seed")


def _suite(wanted: scenario.Scenario, given: dict[str, Any]) -> Work:
    given["parts"] = tuple(given.pop("part", ()))
    return suites.Work(wanted, suites.Options(**given))


# families that have no others
PLAIN: dict[str, Callable[[scenario.Scenario, dict[str, Any]], Work]] = {
    scenario.HMM: lambda one, given: hmm.Work(one, hmm.Options(**given)),
    scenario.POPULATE: lambda one, given: populate.Work(one, populate.Options(**given)),
    scenario.SUITES: _suite,
}


def one(args: argparse.Namespace) -> int:
    """Run a scenario, show its table, and say by the exit code if it held."""
    asked = request(args)
    outcome.need_place(args)
    document = run.run_scenario(asked)

    def show() -> None:
        if document.results:
            table.print_documents([document])
        else:
            print_checks(document)

    return outcome.finish(args, document, show)


def request(args: argparse.Namespace) -> run.Request:
    """Return what a command line asks for."""
    return run.Request(
        _work(scenario.find(args.scenario), args),
        kernel=args.kernel,
        arch=arch.find(args.arch),
        accel=args.accel,
        cpu=args.cpu,
        cpus=args.cpus,
        append=args.append,
        keep=args.keep,
        defines=args.module_defines,
    )


def _work(wanted: scenario.Scenario, args: argparse.Namespace) -> Work:
    """Return the scenario with the options that were given; refuse others'."""
    given = {
        name: getattr(args, name)
        for name in (*(name for names in OPTIONS.values() for name in names), *COMMON)
        if getattr(args, name) is not None
    }
    if wanted.family == scenario.PACKAGES:
        given |= {"break_one_word": True} if args.break_one_word else {}
        return packages.Work(wanted, given, upgrade=not args.no_upgrade)
    if args.no_upgrade:
        raise UsageError(f"--no-upgrade is no option of {wanted.name}")
    for name in given:
        if name not in (*OPTIONS[wanted.family], *COMMON):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is no option of {wanted.name}")
    given["break_one_word"] = args.break_one_word
    if wanted.family == scenario.CLEAR:
        given["ways"] = tuple(given.pop("way", ()))
        given["kib"] = tuple(given.get("kib", ()))
        given["soak_seconds"] = given.pop("seconds", huge.SOAK_SECONDS)
        return clear.huge_work(wanted, huge.Options(**given))
    if wanted.family == scenario.VMAP:
        given["arms"] = tuple(given.pop("arm", ()))
        given["soak_seconds"] = given.pop("seconds", vmap.SOAK_SECONDS)
        return vmap.Work(wanted, vmap.Options(**given))
    if wanted.family in PLAIN:
        return PLAIN[wanted.family](wanted, given)
    given["size"] = pmem.parse_size(given.get("size", wanted.size))
    if wanted.family == scenario.HOTPLUG:
        return hotplug.Work(wanted, hotplug.Options(**given))
    return pmem.Work(wanted, pmem.Options(**given))


def print_checks(document: Document) -> None:
    """Print what a scenario that measures nothing has to show."""
    for check in document.checks:
        print(f"{'ok' if check.ok else 'FAILED':6} {check.name}")
    passed = sum(check.ok for check in document.checks)
    print(f"Checks passed: {passed} of {len(document.checks)}.")
