# SPDX-License-Identifier: GPL-2.0-only
"""How much faster the module is: kept figures of this CPU, or of others.

ratios.json is made from results/ by scripts/figures.py: of each kind of calls, how many
times faster the module is in the scenarios of "bench kernel" that stand for it (1 where
its interval has 1 in it, or the control moved by more), and the rate of the kernel's
own code in the last of them.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulkmm.control import devices, requirements
from bulkmm.control import module as modules
from bulkmm.control.format import format_size
from bulkmm.control.pools import Pool, list_page_sizes
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.size import MIB, name_size
from bulkmm.worth.functions import INSTEAD, SIZED, Function

if TYPE_CHECKING:
    from bulkmm.results.model import Document, Ratio

RATIOS_FILE = Path(__file__).with_name("ratios.json")
OTHER_CPUS = "other CPUs"  # said of figures that are not of this CPU
STOCK, MODULE_VARIANTS = "stock", ("bulkmm", "pte")
IOREMAP, SMALL, LARGE = "ioremap", "vmap-small", "vmap-large"
# By path, or by what else tells calls apart: scenarios that show the least and the most
# that they may gain. The last is like what early() finds.
SCENARIOS = {
    "memmap": ("pmem-devdax-{device}", "pmem-fsdax-{device}"),
    "clear": ("thp-2m", "thp-2m-populate"),
    "copy": ("copy-2m-last", "copy-2m-middle", "copy-2m"),
    IOREMAP: ("ioremap-256k", "ioremap-1m"),
    SMALL: ("vmap-256k-order0-far", "vmap-256k-order0"),
    LARGE: ("vmap-100m-order0-far", "vmap-100m-order8"),
}
HUGE = 2 * MIB  # what a fault clears
STRUCT_PAGE = 64 / 4096  # of the memory that it describes
ONE_PAGE, ONE_MIB = 12, 20  # as powers of two


@dataclass(frozen=True)
class Gain:
    """What "bench kernel" showed of one kind of calls."""

    ratios: list[float]
    gb_per_s: float


Gains = dict[str, Gain]  # by kind
GainsJson = dict[str, dict[str, Any]]  # the same, as JSON


@dataclass(frozen=True)
class Figures:
    """The figures that apply here, and where they come from."""

    source: str
    gains: Gains


def extract_gains(document: "Document") -> Gains:
    """Return the figures of a result of "bench kernel"."""
    stock = {r.scenario: r for r in document.results if r.variant == STOCK}
    devices = (r.size for r in document.results if r.operation == "memmap" and r.size)
    names_by_kind = name_scenarios(name_size(next(devices, 0) or MIB))
    ratios = {
        ratio.scenario: round(ratio.ratio, 2) if _is_certain(ratio) else 1.0
        for ratio in document.ratios
        if ratio.base == STOCK and ratio.variant in MODULE_VARIANTS
    }
    gains = {}
    for kind, scenarios in names_by_kind.items():
        if names := [name for name in scenarios if name in ratios]:
            rate = stock[names[-1]].bytes / stock[names[-1]].median
            gains[kind] = Gain([ratios[name] for name in names], round(rate, 2))
    return gains


def _is_certain(ratio: "Ratio") -> bool:
    """Return whether it differs from 1, by itself: others do not matter here."""
    low, high = ratio.ci95
    return not (low <= 1 <= high or ratio.unstable)


def name_scenarios(device: str) -> dict[str, list[str]]:
    """Return the names of the scenarios with devices of a size."""
    return {
        kind: [name.format(device=device.lower()) for name in names]
        for kind, names in SCENARIOS.items()
    }


def read_cpus(file: Path = RATIOS_FILE) -> dict[str, dict[str, GainsJson]]:
    """Return what is kept, by CPU and series."""
    return json.loads(file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def read_gains(cpu: str, release: str, file: Path = RATIOS_FILE) -> Figures:
    """Return the figures kept for a CPU, or the least gains of all others."""
    cpus = read_cpus(file)
    if cpu in cpus:
        series = find_nearest(release, cpus[cpu])
        return Figures(f"this CPU's results on {series}", _least([cpus[cpu][series]]))
    other_gains = [
        by_series[find_nearest(release, by_series)] for by_series in cpus.values()
    ]
    source = (
        f"the least of {len(other_gains)} {OTHER_CPUS}: this one has no results yet"
    )
    return Figures(source, _least(other_gains))


def find_nearest(release: str, series: Iterable[str]) -> str:
    """Return the newest series that is not newer than a kernel, or the oldest."""
    ordered = sorted(series, key=requirements.parse_version)
    older = [one for one in ordered if requirements.is_at_least(release, one)]
    return older[-1] if older else ordered[0]


def _least(candidates: Iterable[GainsJson]) -> Gains:
    """Return the least gain in each scenario."""
    lowest: Gains = {}
    for gains in candidates:
        for kind, fields in gains.items():
            figure = Gain(**fields)
            least = lowest.setdefault(kind, figure)
            ratios = [
                min(pair) for pair in zip(least.ratios, figure.ratios, strict=False)
            ]
            rated = min(least, figure, key=lambda gain: gain.ratios[-1])
            lowest[kind] = Gain(ratios, rated.gb_per_s)
    return lowest


def is_served(function: Function, bits: int) -> bool:
    """Return whether the module serves calls of this size: not a page at a time."""
    return function.path != SIZED or bits > ONE_PAGE


def find_span(
    figures: Figures, function: Function, bits: int
) -> tuple[float, float] | None:
    """Return how many times faster calls get, at least and at most; None: unknown."""
    gain = figures.gains.get(_kind(function, bits)) if function.is_hooked else None
    return (min(gain.ratios), max(gain.ratios)) if gain else None


def _kind(function: Function, bits: int) -> str:
    """Return the kind of calls with ranges of this size."""
    if function.name == "vmap_range_noflush":
        return IOREMAP
    if function.path == SIZED:
        return LARGE if bits > ONE_MIB else SMALL
    return "clear" if function.path == "alloc" else function.path


def estimate_work(figures: Figures, function: Function, pages: float) -> float:
    """Return the most seconds that calls spend on what a path does.

    A fault that is timed in place of its clearing does more than clear a page, or gets
    none.
    """
    gain = figures.gains.get("clear")
    if function.name not in INSTEAD.values() or not gain:
        return math.inf
    return pages * HUGE / gain.gb_per_s / 1e9


def compute_saving(seconds: float, ratio: float) -> float:
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


def estimate_early(
    root: SystemFiles, figures: Figures, on: Sequence[str] = ()
) -> list[Early]:
    """Return what happened at boot, and what will happen at the first use.

    The latter not of a path that is on, which will serve it.
    """
    findings = []
    if nbytes := devices.survey_devices(root, modules.read_module(root)).early_size:
        description = (
            f"struct pages of {format_size(nbytes)} of devices were built without it"
        )
        findings.append(
            _worked("memmap", description, nbytes, figures, share=STRUCT_PAGE)
        )
    for page in list_page_sizes(root) if "clear" not in on else ():
        if (nbytes := page * Pool(root, page).count_uncleared()) > 0:
            free = f"{format_size(nbytes)} of free huge pages of {name_size(page)}"
            description = f"{free} are zeroed at their first use"
            findings.append(_worked("clear", description, nbytes, figures))
    return findings


def _worked(
    path: str, description: str, nbytes: int, figures: Figures, *, share: float = 1
) -> Early:
    """Return the time for memory of which a path writes a share."""
    gain = figures.gains.get(path)
    if not gain:
        return Early(path, description, nbytes, None, None)
    seconds = nbytes * share / gain.gb_per_s / 1e9
    return Early(
        path, description, nbytes, seconds, compute_saving(seconds, gain.ratios[-1])
    )
