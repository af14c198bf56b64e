# SPDX-License-Identifier: GPL-2.0-only
"""The support matrix: scenarios over kernels and architectures, in one table.

A cell is one run of a scenario, as by ``bulkmm lab run`` with the same options.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bulkmm import facts, table
from bulkmm.control import needs
from bulkmm.control.module import hooks
from bulkmm.lab.machine import arch as archs
from bulkmm.lab.machine import kinds
from bulkmm.lab.scenario import SCENARIOS, Scenario
from bulkmm.results import STORES, Document, Ratio
from bulkmm.sheet import Sheet

HEADINGS = (
    "path",
    "kernel",
    "scenario",
    "verdict",
    "functions hooked",
    "fewer instructions, or faster",
)
INTRO = """\
What `bulkmm lab matrix{flags}` printed. Each cell is one run of a scenario in a
virtual machine, off and on in one boot: its verdict, which counts the checks of
correctness, a clean kernel log among them; the functions hooked; and what each mode
saves. TCG means that the CPU is emulated: that is the share of the kernel's
instructions, by count. Elsewhere it is time without / time with. Medians, with 95 %
intervals in round brackets, or in square ones the range of fewer than six samples;
`~`: not proven."""
NOTE = (
    "All in virtual machines. Instruction counts are neither times nor hardware "
    "figures. Those of clearing are not counted: it makes the same stores in another "
    "way, and one string instruction clears a page."
)
DEBUG_INTRO = """\
What `bulkmm lab matrix{flags}` printed: reduced scenarios, on kernels that the lab
[builds](lab.md#kernels-that-the-lab-builds) with the kernel's own checks switched on.
`debug` proves locking, RCU and atomic sections, checks page tables, free pages,
objects and lists, and preempts anywhere; `debug-kobject` also delays the release of
every kobject; `kasan` checks every access against its shadow; `clang-cfi`, built by
Clang, checks every indirect call. A run passed if the kernel log has no warning of any
kind and, on kernels that prove locking, lockdep was still active at the end."""
DEBUG_NOTE = "All in virtual machines, emulated. Nothing is measured on these kernels."
# pairs per path; "absent" is a kernel without the module
RATED = {
    "memmap": (("off", "on"),),
    "vmap": (("absent", "pte"), ("absent", "block")),
    "hotplug": (("absent", "on"),),
}


@dataclass(frozen=True)
class Page:
    """A table of runs: the text around it and its columns."""

    title: str
    intro: str
    note: str
    columns: int = len(HEADINGS)


STOCK = Page("# Support matrix", INTRO, NOTE)
DEBUG = Page("# Debug kernels", DEBUG_INTRO, DEBUG_NOTE, HEADINGS.index("verdict") + 2)


@dataclass(frozen=True)
class Cell:
    """A scenario with options, on one kernel."""

    path: str
    arch: str
    kernel: str
    scenario: str
    options: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """Return the arguments of ``bulkmm lab run``."""
        where = ["--arch", self.arch, "--kernel", self.kernel]
        return [self.scenario, *where, *self.options]

    @property
    def name(self) -> str:
        """Return a name for the cell's files."""
        words = "".join(self.options).replace("--", "-").replace("=", "-")
        return f"{self.scenario}-{self.kernel}-{self.arch}{words}"


@dataclass(frozen=True)
class Line:
    """A cell and its result."""

    cell: Cell
    verdict: str
    ok: bool
    hooks: str = ""
    faster: tuple[str, ...] = ()
    release: str = ""

    def cells(self) -> list[str]:
        """Return the line's cells in heading order."""
        options = " ".join((self.cell.scenario, *self.cell.options))
        return [
            self.cell.path,
            f"{self.release or self.cell.kernel} {self.cell.arch}".strip(),
            f"`{options}`",
            self.verdict,
            self.hooks,
            "; ".join(self.faster),
        ]


ALIGN, PREEMPT = "--align", "--preempt"


def checked() -> list[Cell]:
    """Return the cells of the kernels that the lab builds."""
    return [
        Cell(one.path, archs.X86_64.name, kernel, one.name, tuple(words.split()))
        for kernel in kinds.NAMES
        for one in SCENARIOS
        for words in one.debug.get(kernel, ())
    ]


def cells(
    wanted: Iterable[archs.Arch] = archs.ALL, *, quick: bool = False
) -> list[Cell]:
    """Return the cells of these architectures' kernels that can run them."""
    return [
        Cell(one.path, arch.name, kernel, one.name, tuple(words.split()))
        for one in SCENARIOS
        for words in (one.quick if quick else one.full)
        for arch in wanted
        for kernel in arch.series
        if has(arch, kernel, one, tuple(words.split()))
    ]


def has(
    arch: archs.Arch, kernel: str, scenario: Scenario, words: tuple[str, ...]
) -> bool:
    """Return whether a kernel supports a scenario with these options."""
    if (align := option(words, ALIGN)) and align not in arch.aligns:
        return False
    # a kernel built with several preemption models accepts only their names
    models = needs.kernels(f"models-{arch.name}-{kernel}")
    model = option(words, PREEMPT)
    # each of its models by name, or its only one
    if scenario.name == "clear-latency" and model not in (models or ("",)):
        return False
    return scenario.runs_on(kernel, arch)


def option(words: tuple[str, ...], name: str) -> str:
    """Return an option's value, "" if it is not given."""
    return words[words.index(name) + 1] if name in words else ""


def judged(cell: Cell, document: Document) -> Line:
    """Return a cell's line from its run's result."""
    where = facts.where(document)
    return Line(
        cell,
        document.verdict,
        not document.failed,
        hooked(document.run.get("hooks", ())),
        tuple(
            f"{ratio.variant} {table.factor(ratio)} {where}"
            for ratio in rated(cell.path, document)
        ),
        str(document.run.get("kernel", "")),
    )


def hooked(states: Iterable[str]) -> str:
    """Return the number of hooks seen attached, and the others."""
    said = [hook for state in states for hook in hooks(state)]
    symbols = {hook.symbol for hook in said}
    attached = {hook.symbol for hook in said if hook.attached}
    if not symbols:
        return ""
    others = ", ".join(
        f"{hook.symbol} {hook.errno}" for hook in said if hook.symbol not in attached
    )
    return f"{len(attached)} of {len(symbols)}" + (f": not {others}" if others else "")


def rated(path: str, document: Document) -> list[Ratio]:
    """Return the ratios that represent a path: those of its first result."""
    first = document.results[0].scenario if document.results else ""
    pairs = RATED.get(path, ())
    return [
        ratio
        for base, variant in pairs
        for ratio in document.printed().ratios
        if (ratio.scenario, ratio.base, ratio.variant) == (first, base, variant)
        and ratio.unit != STORES
    ]


def failed(cell: Cell, why: str) -> Line:
    """Return the line of a run without a verdict."""
    return Line(cell, f"FAILED: {why}", ok=False)


def markdown(lines: Iterable[Line], flags: str, page: Page = STOCK) -> str:
    """Return the matrix as a page."""
    rows = [line.cells()[: page.columns] for line in lines]
    flat = Sheet(HEADINGS[: page.columns], rows)
    shown = (_crossed(rows) if page is STOCK else flat).markdown()
    intro = page.intro.format(flags=flags)
    return "\n".join([page.title, "", intro, "", *shown, page.note, ""])


def _crossed(rows: list[list[str]]) -> Sheet:
    """Return a row for each scenario and a column for each kernel."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path, kernel, scenario, verdict, held, faster in rows:
        said = (verdict, held and f"{held} hooked", faster)
        cells = found.setdefault((path, scenario), {})
        cells[kernel] = "; ".join(filter(None, said))
    kernels = [*dict.fromkeys(row[1] for row in rows)]
    whole = [(*on, *(cells.get(k, "") for k in kernels)) for on, cells in found.items()]
    return Sheet(("path", "scenario", *kernels), whole)


def summary(lines: list[Line]) -> str:
    """Return how many runs passed."""
    return f"Runs passed: {sum(line.ok for line in lines)} of {len(lines)}."
