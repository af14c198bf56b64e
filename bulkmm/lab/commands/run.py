# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab run``: one scenario, as the command line has it."""

import argparse
from collections.abc import Callable
from typing import Any

from bulkmm import outcome, table
from bulkmm.errors import UsageError
from bulkmm.lab import run, scenario
from bulkmm.lab.command import add_run_options
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
from bulkmm.lab.work import Common, Work
from bulkmm.results import Document

# options that not every family of scenarios has
COMMON = ("rounds", "seed", "break_one_word")
OPTIONS = {
    scenario.PMEM: (*COMMON, "size", "align", "map", "backend", "workers"),
    scenario.CLEAR: (
        *COMMON,
        *("folios", "way", "kib", "preempt", "seconds"),
        *sorted(huge.ZEROING),
    ),
    scenario.VMAP: (*COMMON, "arm", "arrays", "loops", "seconds"),
    scenario.HMM: COMMON,
    scenario.HOTPLUG: (*COMMON, "size"),
    scenario.POPULATE: COMMON,
    scenario.SUITES: (*COMMON, "part", "seconds"),
    scenario.PACKAGES: ("no_upgrade",),
}
FIELDS = {"way": "ways", "arm": "arms", "part": "parts"}  # otherwise called
# of each family: what makes its work, and of what
WORKS: dict[str, tuple[Callable[..., Work], Callable[..., Common]]] = {
    scenario.PMEM: (pmem.Work, pmem.Options),
    scenario.CLEAR: (clear.huge_work, huge.Options),
    scenario.VMAP: (vmap.Work, vmap.Options),
    scenario.HMM: (hmm.Work, hmm.Options),
    scenario.HOTPLUG: (hotplug.Work, hotplug.Options),
    scenario.POPULATE: (populate.Work, populate.Options),
    scenario.SUITES: (suites.Work, suites.Options),
}


def one(args: argparse.Namespace) -> int:
    """Run a scenario, show its table, and say by the exit code if it held."""
    wanted = request(args)
    outcome.need_place(args)
    document = run.run_scenario(wanted)

    def show() -> None:
        if document.results:
            table.print_documents([document])
        else:
            print_checks(document)

    return outcome.finish(args, document, show)


def asked(words: list[str]) -> run.Request:
    """Return what the words behind ``bulkmm lab run`` ask for."""
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    return request(parser.parse_args(words))


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
        for name in dict.fromkeys(name for names in OPTIONS.values() for name in names)
        if getattr(args, name) is not None and getattr(args, name) is not False
    }
    for name in given:
        if name not in OPTIONS[wanted.family]:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is no option of {wanted.name}")
    if wanted.family == scenario.PACKAGES:
        return packages.Work(wanted, upgrade="no_upgrade" not in given)
    make, options = WORKS[wanted.family]
    return make(wanted, options(**_fields(wanted, given)))


def _fields(wanted: scenario.Scenario, given: dict[str, Any]) -> dict[str, Any]:
    """Return options as the families name them, sizes in bytes."""
    found = {
        FIELDS.get(name, name): tuple(value) if isinstance(value, list) else value
        for name, value in given.items()
    }
    if "size" in OPTIONS[wanted.family]:
        found["size"] = pmem.parse_size(str(given.get("size", wanted.size)))
    if wanted.family != scenario.SUITES and "seconds" in found:
        found["soak_seconds"] = found.pop("seconds")
    return found


def print_checks(document: Document) -> None:
    """Print what a scenario that measures nothing has to show."""
    for check in document.checks:
        print(f"{'ok' if check.ok else 'FAILED':6} {check.name}")
    passed = sum(check.ok for check in document.checks)
    print(f"Checks passed: {passed} of {len(document.checks)}.")
