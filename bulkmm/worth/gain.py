# SPDX-License-Identifier: GPL-2.0-only
"""How much faster the module is: kept figures of this CPU, or of others.

ratios.json is made from results/ by scripts/figures.py. Each scenario of "bench
kernel" has the time and the bytes of the kernel's own code, and how many times
faster the module is: 1 where its interval has 1 in it, or the control moved by more.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulkmm.control import late, needs, text
from bulkmm.control.root import Root
from bulkmm.pool.pools import Pool, sizes
from bulkmm.size import MIB, named
from bulkmm.worth.functions import INSTEAD, SIZED, Function

if TYPE_CHECKING:
    from bulkmm.results import Document, Ratio

KEPT = Path(__file__).with_name("ratios.json")
STOCK, OURS = "stock", ("bulkmm", "pte")
FSDAX, DEVDAX = "pmem-fsdax-100g", "pmem-devdax-100g"
TOUCHED, POPULATED = "thp-2m", "thp-2m-populate"
# the least and the most that a path may gain, by what the calls are like
SPANS = {
    "memmap": (DEVDAX, FSDAX),
    "clear": (TOUCHED, POPULATED),
    "alloc": (TOUCHED, POPULATED),
    "copy": ("copy-2m-last", "copy-2m-middle", "copy-2m"),
}
IOREMAP = "vmap_range_noflush"
SMALL = ("vmap-256k-order0-far", "vmap-256k-order0")
LARGE = ("vmap-100m-order0-far", "vmap-100m-order8")
RANGES = ("ioremap-256k", "ioremap-1m")
SCENARIOS = sorted(
    {*RANGES, *SMALL, *LARGE, *(s for span in SPANS.values() for s in span)}
)
HUGE = 2 * MIB  # what a fault clears
STRUCT_PAGE = 64 / 4096  # of the memory that it describes
ONE_PAGE, ONE_MIB = 12, 20  # as powers of two


@dataclass(frozen=True)
class Figure:
    """What one scenario of "bench kernel" showed."""

    ratio: float
    stock_ns: float
    bytes: int


Figures = dict[str, Figure]  # by scenario
Kept = dict[str, dict[str, Any]]  # the same, as JSON


@dataclass(frozen=True)
class Known:
    """The figures that apply here, and where they come from."""

    source: str
    figures: Figures


def of(document: "Document") -> Figures:
    """Return the figures of a result of "bench kernel"."""
    stock = {r.scenario: r for r in document.results if r.variant == STOCK}
    return {
        _usual(one.scenario): Figure(
            round(one.ratio, 2) if _sure(one) else 1.0,
            round(stock[one.scenario].median),
            stock[one.scenario].bytes,
        )
        for one in document.ratios
        if one.base == STOCK and one.variant in OURS
        if _usual(one.scenario) in SCENARIOS
    }


def _sure(ratio: "Ratio") -> bool:
    """Return whether it differs from 1, by itself: others do not matter here."""
    low, high = ratio.ci95
    return not (low <= 1 <= high or ratio.unstable)


def _usual(scenario: str) -> str:
    """Return the name with the usual size of a device; --quick has a smaller one."""
    return re.sub(r"^(pmem-\w+)-\d+g$", r"\1-100g", scenario)


def kept(cpu: str, release: str, file: Path = KEPT) -> Known:
    """Return the figures kept for a CPU, or the least gains of all others."""
    held: dict[str, dict[str, Kept]] = json.loads(file.read_text(encoding="utf-8"))
    if cpu in held:
        series = _nearest(release, held[cpu])
        return Known(f"this CPU's results on {series}", _figures([held[cpu][series]]))
    others = [one[_nearest(release, one)] for one in held.values()]
    named = f"the least of {len(others)} other CPUs: this one has no results yet"
    return Known(named, _figures(others))


def _nearest(release: str, series: Iterable[str]) -> str:
    """Return the newest series that is not newer than a kernel, or the oldest."""
    ordered = sorted(series, key=needs.version)
    older = [one for one in ordered if needs.at_least(release, one)]
    return older[-1] if older else ordered[0]


def _figures(held: Iterable[Kept]) -> Figures:
    """Return the least gain of each scenario."""
    found: Figures = {}
    for one in held:
        for name, kept_of_it in one.items():
            figure = Figure(**kept_of_it)
            if name not in found or figure.ratio < found[name].ratio:
                found[name] = figure
    return found


def served(one: Function, bits: int) -> bool:
    """Return whether the module serves calls of this size: not a page at a time."""
    return one.path != SIZED or bits > ONE_PAGE


def span(known: Known, one: Function, bits: int) -> tuple[float, float] | None:
    """Return how many times faster calls get, at least and at most; None: unknown."""
    if not one.served:
        return None
    names = SPANS.get(one.path)
    if one.path == SIZED:
        names = LARGE if bits > ONE_MIB else SMALL
        names = RANGES if one.name == IOREMAP else names
    ratios = [f.ratio for name in names or () if (f := known.figures.get(name))]
    return (min(ratios), max(ratios)) if ratios else None


def work(known: Known, one: Function, calls: float) -> float:
    """Return the most seconds that calls spend on what a path does.

    A fault that is timed in place of its clearing does more than clear.
    """
    figure = known.figures.get(TOUCHED)
    if one.name not in INSTEAD.values() or not figure:
        return math.inf
    return calls * figure.stock_ns * HUGE / figure.bytes / 1e9


def saved(seconds: float, ratio: float) -> float:
    """Return the seconds that would be saved; none by what is slower."""
    return max(seconds * (1 - 1 / ratio), 0.0)


@dataclass(frozen=True)
class Early:
    """Work of the kernel's own code that no probe has seen."""

    path: str
    says: str
    bytes: int
    seconds: float | None  # None: no rate is known
    saved_seconds: float | None


def early(root: Root, known: Known) -> list[Early]:
    """Return what happened at boot, and what will happen at the first use."""
    found = []
    nbytes, total, _ = late.missed(root)
    if nbytes := nbytes if total else late.zone_bytes(root):
        said = f"struct pages of {text.size(nbytes)} of devices were built without it"
        found.append(_worked("memmap", said, nbytes, known, FSDAX, share=STRUCT_PAGE))
    for page in sizes(root):
        if (nbytes := page * Pool(root, page).uncleared) > 0:
            said = f"{text.size(nbytes)} of free huge pages of {named(page)} are zeroed"
            said += " at their first use"
            found.append(_worked("clear", said, nbytes, known, POPULATED))
    return found


def _worked(
    path: str, said: str, nbytes: int, known: Known, scenario: str, *, share: float = 1
) -> Early:
    """Return the time for memory of which a scenario's call writes a share."""
    figure = known.figures.get(scenario)
    if not figure:
        return Early(path, said, nbytes, None, None)
    seconds = figure.stock_ns * nbytes * share / figure.bytes / 1e9
    return Early(path, said, nbytes, seconds, saved(seconds, figure.ratio))
