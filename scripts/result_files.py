# SPDX-License-Identifier: GPL-2.0-only
"""Results of CPUs and guests, as they are kept in results/."""

import re
from fnmatch import fnmatch
from pathlib import Path

from bulkmm.results import host as machine
from bulkmm.results import submit
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
# what is kept of the machine that emulated a guest
OF_GUEST = ("accelerator", "guest", "bulkmm", "revision", "date")
KERNELS, PATCHED = "kernel-*", f"{submit.PATCHED}-*"
CpuResults = dict[str, Document]  # all results of a CPU, by the name of the file


def read_results(place: Path = RESULTS) -> dict[str, CpuResults]:
    """Return the results of each CPU by the name of its folder."""
    cpus: dict[str, CpuResults] = {}
    for file in sorted(place.glob("*/*.json")):
        cpus.setdefault(file.parent.name, {})[file.stem] = Document.read(file)
    return cpus


def select_results(cpu_results: CpuResults, pattern: str) -> list[Document]:
    """Return the results whose names match a pattern."""
    return [one for name, one in cpu_results.items() if fnmatch(name, pattern)]


def take_result(file: Path, place: Path = RESULTS) -> Path:
    """Put a result into the folder of its CPU; return where it is.

    Work counted in an emulated guest belongs to none.
    """
    document = Document.read(file)
    if document.emulated:
        to = place / f"guest-{document.results[0].scenario}.json"
        document.machine = {name: document.machine[name] for name in OF_GUEST}
        document.run = {"rounds": document.run["rounds"]}
        document.write(to)
        return to
    document = submit.anonymise_document(document)
    if (few := document.run.get("processes", 0)) < submit.LEAST:
        raise BulkmmError(f"{file}: n = {few}, {submit.LEAST} needed for an interval")
    name = machine.cpu_name(document.machine["cpu"])
    if not re.fullmatch(r"\w[\w-]*", name):
        raise BulkmmError(f"{file}: the CPU is no name of a folder: {name}")
    to = place / name / submit.file_name(document)
    to.parent.mkdir(exist_ok=True)
    document.write(to)
    return to
