# SPDX-License-Identifier: GPL-2.0-only
"""Write docs/suites.md from the results of the suites' runs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bulkmm import files
from bulkmm.errors import BulkmmError
from bulkmm.lab import scenario
from bulkmm.lab.families import suites
from bulkmm.results import Document
from bulkmm.sheet import Sheet

PAGE = Path(__file__).parents[1] / "docs" / "suites.md"
NAMES = (
    *(suites.MM, "upstream-vmalloc", "upstream-hmm"),
    *(suites.COEXIST, suites.ODD, suites.STRESS),
)
INTRO = """\
# Suites

Tests and tools of others, on stock kernels, with the module absent and present:
[how](lab.md#a-run-suites). Written by `scripts/suites.py RESULT...`
from the results of `bulkmm lab run -o FILE` or `make lab`. A verdict counts the
run's checks; a clean kernel log and no new taint are among them."""
TESTS = """\
## The kernel's tests of memory management

Each line is a test of `run_vmtests.sh`, with how many of its own tests passed, failed
and were skipped. A single verdict holds for all three states: module absent, every path
on, huge pages cleared past the caches. `late`: stopped at its time limit in all states,
under emulation: no verdict."""
HEADINGS = ("suite", "what", "kernel", "how it was run", "verdict")


def page(documents: Sequence[Document]) -> str:
    """Return the page of these results, without other scenarios."""
    held = [one for one in documents if one.run.get("scenario") in NAMES]
    if not held:
        raise BulkmmError(f"no result is of a suite: {', '.join(NAMES)}")
    held.sort(key=lambda one: (NAMES.index(one.run["scenario"]), one.run["kernel"]))
    lines = [INTRO, "", *Sheet(HEADINGS, [*map(_row, held)]).markdown()]
    tests = [one for one in held if one.run["scenario"] == suites.MM]
    if tests:
        lines += [TESTS, "", *_tests(tests).markdown()]
    return "\n".join(lines)


def _row(document: Document) -> list[str]:
    run = document.run
    accelerator = document.machine["accelerator"]
    return [
        f"`{run['scenario']}`",
        scenario.find(run["scenario"]).about,
        str(run["kernel"]),
        f"{accelerator}, {run['seconds']:.0f} s",
        document.verdict,
    ]


def _tests(documents: Sequence[Document]) -> Sheet:
    """Return the tests of each kernel; its parts may be separate runs."""
    kernels: dict[str, dict[str, suites.Attempts]] = {}
    for one in documents:
        kernels.setdefault(str(one.run["kernel"]), {}).update(one.run["tests"])
    names = dict.fromkeys(name for tests in kernels.values() for name in tests)
    rows = [
        [f"`{name}`", *(_said(tests.get(name)) for tests in kernels.values())]
        for name in sorted(names)
    ]
    return Sheet(["test", *kernels], rows)


def _said(arms: suites.Attempts | None) -> str:
    """Return a test's outcome in all states, or in each."""
    if arms is None:
        return "has none"
    check = suites.same(("", ""), arms)
    detail = check.detail.replace("|", "then")
    return detail if check.ok else f"**differs**: {detail}"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULT")
    parser.add_argument(
        "--out", type=Path, default=PAGE, help="default: docs/suites.md"
    )
    args = parser.parse_args()
    try:
        files.write(
            args.out, page([Document.read(one) for one in args.results]), "the page"
        )
    except (OSError, BulkmmError) as error:
        sys.exit(f"suites.py: {error}")


if __name__ == "__main__":
    main()
