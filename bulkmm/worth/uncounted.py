# SPDX-License-Identifier: GPL-2.0-only
"""What ``bulkmm worth`` can say where it cannot count."""

import platform

from bulkmm.control import doctor, usefulness
from bulkmm.control.system_files import SystemFiles
from bulkmm.results import host
from bulkmm.shell.width import wrap_lines
from bulkmm.worth import gain, report
from bulkmm.worth.gain import IOREMAP, LARGE, SMALL, Figures

KINDS = {IOREMAP: "vmap", SMALL: "vmap", LARGE: "vmap"}  # others are paths


def list_uncounted(root: SystemFiles) -> list[str]:
    """Return what the machine has, and what its CPU's figures say of a call."""
    fit = doctor.examine_kernel(root).fit
    figures = gain.read_gains(host.cpu_name(), platform.release())
    early = gain.estimate_early(root, figures)
    lines = [
        "Nothing was counted. What can be said without:",
        f"  for this machine: {fit.verdict} ({usefulness.MEANINGS[fit.verdict]})",
        *(f"    {why}" for why in fit.reasons),
        *(f"  {report.describe_early(work, figures.source)}" for work in early),
        f"  a call is faster by: {_list_gains(figures)}",
        f"    {figures.source}; how many calls there are, only counting tells",
    ]
    return wrap_lines(lines)


def _list_gains(figures: Figures) -> str:
    """Return the least and the most that calls of each path gain."""
    ratios: dict[str, list[float]] = {}
    for kind, figure in figures.gains.items():
        ratios.setdefault(KINDS.get(kind, kind), []).extend(figure.ratios)
    return ", ".join(
        f"{path} {report.format_ratios((min(values), max(values)))}"
        for path, values in ratios.items()
    )
