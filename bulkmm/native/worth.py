# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor --measure``: estimate the module's gain here without loading it."""

from bulkmm import facts, table
from bulkmm.lab.progress import Progress
from bulkmm.native import find, measure
from bulkmm.native.command import SUBJECTS
from bulkmm.native.run import shown
from bulkmm.results import Document, Ratio

# The scenarios that represent a path; no other is run. Where a host reports all of its
# cache (480 MiB seen), every scenario of clear takes a minute.
SHOWN = {
    "memmap": ("pmem-fsdax-16g",),
    "clear": ("thp-2m", "thp-2m-populate"),
    "vmap": ("vmap-100m-order0", "vmap-100m-order8"),
}
BASE, LIMIT = "stock", "limit"


def examine(
    release: str, kernel: str | None, module: str | None, progress: Progress
) -> Document:
    """Measure the running kernel, or another: reduced, and unprivileged."""
    named = kernel or str(find.running(release))
    with find.files(named, module, progress, needed=False) as (image, built):
        shows = tuple(one for names in SHOWN.values() for one in names)
        job = measure.Job(image, built, rounds=3, processes=3, quick=True, only=shows)
        return shown(job, SUBJECTS, progress)


def lines(document: Document) -> list[str]:
    """Return it as text: a line for each scenario that represents a path."""
    kernel, n = document.machine["kernel"], document.run["processes"]
    said = [f"{facts.cpu_name(document)}, kernel {kernel}, natively, n = {n}:"]
    alone = not any(one.variant == "bulkmm" for one in document.results)
    for path, names in SHOWN.items():
        for ratio in document.ratios:
            ours = ratio.variant in measure.PICKED[path]
            wanted = ratio.variant.startswith(LIMIT) if alone else ours
            if ratio.base == BASE and wanted and ratio.scenario in names:
                said.append(_line(path, ratio, alone=alone))
    if alone:
        said.append(
            "No bulkmm.ko for this kernel, nor its headers: these are the most that "
            "stores alone would allow. --module names one."
        )
    said.append(table.LEGEND)
    return said + [f"NOT as the kernel's own code: {c.name}" for c in document.failed]


def _line(path: str, ratio: Ratio, *, alone: bool) -> str:
    least = "at most " if alone else ""
    return f"{path}: {ratio.scenario} {ratio.variant} {least}{table.factor(ratio)}"
