# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab run``: run one scenario."""

import argparse

from bulkmm.results import conditions, finish, result_tables
from bulkmm.results.model import Document
from lab import choices, run, scenario
from lab.command import add_run_options
from lab.machine import arch, build, kernels


def run_scenario(args: argparse.Namespace) -> int:
    """Run a scenario, show its table; the exit code tells whether it passed."""
    wanted = make_request(args)
    finish.need_place(args)
    document = run.run_scenario(wanted)

    def show() -> None:
        if document.results:
            result_tables.print_documents([document])
        else:
            print_checks(document)

    return finish.finish_run(args, document, show)


def parse_request(words: list[str]) -> run.Request:
    """Return the request that the arguments of ``bulkmm lab run`` make."""
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    return make_request(parser.parse_args(words))


def make_request(args: argparse.Namespace) -> run.Request:
    """Return the request that a command line makes."""
    return run.Request(
        scenario.find_scenario(args.scenario).make(**choices.collect_options(args)),
        kernels.find_kernel(args.kernel, arch.find_arch(args.arch)),
        accel=args.accel,
        cpu=args.cpu,
        cpus=args.cpus,
        append=args.append,
        keep=args.keep,
        defines=build.parse_defines(args.module_defines),
    )


def print_checks(document: Document) -> None:
    """Print the checks of a scenario that measures nothing."""
    for check in document.checks:
        print(f"{'ok' if check.ok else 'FAILED':6} {check.name}")
    print(conditions.describe_checks(document))
