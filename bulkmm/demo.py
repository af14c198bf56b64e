# SPDX-License-Identifier: GPL-2.0-only
"""``make demo``: show the main job once, natively and in a guest.

First natively: the stock kernel's own machine code and the module's, in a
process on this CPU. Then the module in a guest. Both also as a page.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm import options

if TYPE_CHECKING:  # --help does not wait for them
    import argparse

    from bulkmm.lab.progress import Progress
    from bulkmm.results import Document

SHOWN = (  # natively: those of summary.HEADLINES, with small devices
    "pmem-fsdax-16g",
    "pmem-devdax-16g",
    "thp-2m-populate",
    "thp-2m",
    "vmap-100m-order8",
    "vmap-100m-order0",
)
SCENARIO = "pmem-fsdax-100g"  # in the guest
OUT = Path("out")


def add_parser(sub: options.Subparsers) -> None:
    """Add ``demo`` to the parser of the whole command."""
    options.add(
        sub,
        "demo",
        "show before and after, natively and in a guest",
        "Run the stock kernel's own code beside the module's, natively, then one "
        "scenario in a virtual machine; print a table of each and write a page.",
        run="bulkmm.demo:run_demo",
        example="bulkmm demo",
    )


def run_demo(_args: argparse.Namespace) -> int:
    """Measure natively and in a guest; print a table of each."""
    from bulkmm import files, outcome, table
    from bulkmm.lab import run, scenario
    from bulkmm.lab.progress import Progress
    from bulkmm.native import summary
    from bulkmm.report import command, page
    from bulkmm.sheet import print_lines

    start = time.monotonic()
    run.need_root()
    OUT.mkdir(exist_ok=True)
    native = _native(Progress())
    native.write(OUT / "demo-native.json")
    print("The stock kernel's own code and the module's, natively:\n")
    summary.headlines([native]).print()
    print_lines(table.lines([native]))
    print("\nThe module in a guest, switched on and off:\n")
    guest = run.run_scenario(run.Request(scenario.find(SCENARIO).make()))
    guest.write(OUT / "demo-guest.json")
    table.print_documents([guest])
    names = ["demo-native", "demo-guest"]
    made = page.html([native, guest], names, command.TITLE)
    files.write(OUT / "demo.html", made, "the report")
    spent = time.monotonic() - start
    print(f"All samples: {', '.join(f'{OUT / n}.json' for n in names)}.")
    print(f"The report: {OUT / 'demo.html'}, one page that fetches nothing.")
    print(f"Took {spent:.0f} s.")
    return max(outcome.verdict(native), outcome.verdict(guest))


def _native(progress: Progress) -> Document:
    """Run the headlines in a process, at small sizes."""
    from bulkmm.lab.machine.arch import X86_64
    from bulkmm.native import command, find, measure, run

    kernel, module = find.of_lab(X86_64.series[0], None, progress, build_module=True)
    job = measure.Job(kernel, module, rounds=3, quick=True, only=SHOWN)
    return run.shown(job, command.SUBJECTS, progress)
