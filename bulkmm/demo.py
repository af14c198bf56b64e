# SPDX-License-Identifier: GPL-2.0-only
"""``make demo``: the main job shown once, natively and in a guest.

Native first, because nothing else may run beside it; then the set-up of the
lab and one scenario; then one table with the published figures beside ours, and
the same as a page.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.bench import command as bench
from bulkmm.lab import command as lab

if TYPE_CHECKING:
    import argparse

    from bulkmm.results import Document

SCENARIO = "pmem-fsdax-100g"
OUT = Path("out")


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``demo`` to the parser of the whole command."""
    demo = sub.add_parser("demo", help="before and after, natively and in a guest")
    demo.set_defaults(run=run_demo)


def _keep(document: Document, name: str) -> Path:
    """Write a result where the reader is told to look for it."""
    OUT.mkdir(exist_ok=True)
    file = OUT / f"{name}.json"
    document.write(file)
    return file


def run_demo(_args: argparse.Namespace) -> int:
    """Measure natively and in a guest; print one table."""
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast
    from bulkmm.bench import subjects  # noqa: PLC0415
    from bulkmm.lab import pmem, run, scenario  # noqa: PLC0415
    from bulkmm.report import command as report  # noqa: PLC0415

    start = time.monotonic()
    signal.signal(signal.SIGTERM, lab.interrupt)
    run.need_root()
    sys.stderr.write("native bench, about half a minute ...\n")
    native = bench.measure([subjects.plan(subjects.MEMMAP, rounds=2)])
    files = [_keep(native, "demo-native")]
    guest = run.run_scenario(run.Request(pmem.Work(scenario.find(SCENARIO))))
    files.append(_keep(guest, "demo-guest"))
    table.print_documents([native, guest])
    page = OUT / "demo.html"
    report.write([native, guest], [file.stem for file in files], page)
    spent = time.monotonic() - start
    print(f"All samples: {', '.join(map(str, files))}. Took {spent:.0f} s.")
    print(f"The report: {page}, one page that fetches nothing.")
    return max(lab.verdict(native), lab.verdict(guest))
