# SPDX-License-Identifier: GPL-2.0-only
"""Figures of whole operations: functions, and what is around them."""

import json
from collections.abc import Iterator
from typing import Any

from result_files import KERNELS, RESULTS, CpuResults, select_results

from bulkmm.control import requirements
from bulkmm.report import headlines
from bulkmm.results import conditions, size_grid
from bulkmm.results.model import Document, Result
from bulkmm.worth import gain

WHOLE = "populate-1g-hugetlb"  # what is measured of whole operations


def describe_repeated(documents: list[Document]) -> str:
    """Return how far apart two runs of the same operation are; nothing of one run."""
    runs = [document for document in documents if (WHOLE, "madvise") in document.arms]
    if len(runs) < 2:  # noqa: PLR2004
        return ""
    first, second = (
        {k[1]: r for k, r in run.arms.items() if k[0] == WHOLE} for run in runs[:2]
    )
    shared = [way for way in first if way in second]
    apart = [
        way
        for way in shared
        if max(r[way].ci95[0] for r in (first, second))
        > min(r[way].ci95[1] for r in (first, second))
    ]
    beyond = f", but for {', '.join(apart)}" if apart else ""
    return (
        f"{WHOLE} is of two runs, one for the rows and one for the grid: their "
        f"intervals overlap{beyond}. Whole operations, above, are all of the run that "
        "has more ways."
    )


def format_whole(cpus: dict[str, CpuResults]) -> str:
    """Return what was measured of the headlines' whole operations.

    In a process, by CPU and way of "bench populate"; in emulated guests, the function's
    share of the instructions of a device's whole bind.
    """
    guests = read_guests()
    series = {requirements.series_of(conditions.get_kernel(guest)) for guest in guests}
    whole = {
        "cpus": {name: dict(find_whole(results)) for name, results in cpus.items()},
        "share_of_bind": sorted(map(compute_share, guests)),
        "series_of_bind": ", ".join(sorted(series)),
    }
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def compute_share(guest: Document) -> float:
    """Return which part of the whole bind is the function's, without the module."""
    function, bind = (
        next(r.median for r in guest.results if r.arm == "absent" and r.use == use)
        for use in ("", "bind")
    )
    return round(function / bind, 3)


def read_guests() -> list[Document]:
    """Return the results of emulated guests, which belong to no CPU."""
    return [Document.read(file) for file in sorted(RESULTS.glob("guest-*.json"))]


def find_whole(results: CpuResults) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ways in which a process did the whole of a headline, with rates.

    All of one run, since runs differ: of the one that has most of them.
    """
    kernels = {
        requirements.series_of(one.machine["kernel"]): one
        for one in select_results(results, KERNELS)
    }
    ways = [way for line in headlines.HEADLINES for way, _ in line.processes]
    runs = select_results(results, "populate*")
    if runs:
        document = max(
            runs, key=lambda run: len({(WHOLE, way) for way in ways} & {*run.arms})
        )
        series = requirements.series_of(document.machine["kernel"])
        nearest = gain.find_nearest(series, kernels)
        for line in headlines.HEADLINES:
            functions = [
                list_rates(result)[0]
                for result in kernels[nearest].results
                if result.matches(line.whole or line.fields)
                and result.variant == size_grid.STOCK
            ]
            for way, _ in line.processes if functions else ():
                if process := document.arms.get((WHOLE, way)):
                    rates: dict[str, Any] = {"gb_per_s": list_rates(process)}
                    if process.threads == 1:  # as the function
                        rates["function"] = functions[0]
                    yield (
                        way,
                        {"series": series, "series_of_function": nearest, **rates},
                    )


def list_rates(result: Result) -> list[float]:
    """Return GB/s: of the median, and of both ends of its interval."""
    times = (result.median, *result.ci95)
    return [round(result.bytes / ns, 3) for ns in times]
