# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab run``: run one scenario."""

import argparse
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from bulkmm import facts, outcome, table
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

# per family: its work's constructor and its options
WORKS: dict[str, tuple[Callable[..., Work], type[Common]]] = {
    scenario.PMEM: (pmem.Work, pmem.Options),
    scenario.CLEAR: (clear.huge_work, huge.Options),
    scenario.VMAP: (vmap.Work, vmap.Options),
    scenario.HMM: (hmm.Work, hmm.Options),
    scenario.HOTPLUG: (hotplug.Work, hotplug.Options),
    scenario.POPULATE: (populate.Work, populate.Options),
    scenario.SUITES: (suites.Work, suites.Options),
}
# fields whose option has another name
CALLED = {"ways": "way", "arms": "arm", "parts": "part", "soak_seconds": "seconds"}


def one(args: argparse.Namespace) -> int:
    """Run a scenario, show its table; the exit code tells whether it passed."""
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
    """Return the request that the arguments of ``bulkmm lab run`` make."""
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    return request(parser.parse_args(words))


def request(args: argparse.Namespace) -> run.Request:
    """Return the request that a command line makes."""
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


def _options(family: str) -> dict[str, str]:
    """Return the options of a family and the fields that hold them."""
    if family == scenario.PACKAGES:
        return {"no_upgrade": "no_upgrade"}
    names = [one.name for one in fields(WORKS[family][1])]
    return {CALLED.get(name, name): name for name in names}


def _work(wanted: scenario.Scenario, args: argparse.Namespace) -> Work:
    """Return the scenario with the given options; reject inapplicable ones."""
    known = _options(wanted.family)
    every = sorted({one for family in scenario.FAMILIES for one in _options(family)})
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name in every
        if (value := getattr(args, name)) is not None and value is not False
    }
    work = _made(wanted, {known[name]: given[name] for name in given if name in known})
    for name in given:
        if known.get(name) not in (*work.takes, "seed"):
            option = name.replace("_", "-")
            raise UsageError(f"--{option} does not apply to {wanted.name}")
    return work


def _made(wanted: scenario.Scenario, chosen: dict[str, Any]) -> Work:
    if wanted.family == scenario.PACKAGES:
        return packages.Work(wanted, upgrade=not chosen)
    make, options = WORKS[wanted.family]
    if "size" in _options(wanted.family):
        chosen["size"] = pmem.parse_size(str(chosen.get("size", wanted.size)))
    return make(wanted, options(**chosen))


def print_checks(document: Document) -> None:
    """Print the checks of a scenario that measures nothing."""
    for check in document.checks:
        print(f"{'ok' if check.ok else 'FAILED':6} {check.name}")
    print(facts.passed(document))
