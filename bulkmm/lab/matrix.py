# SPDX-License-Identifier: GPL-2.0-only
"""The support matrix: scenarios over kernels and architectures, in one table.

A cell is one run of a scenario, as by ``bulkmm lab run`` with the same options.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bulkmm import facts, table
from bulkmm.control import needs
from bulkmm.control.module import hooks
from bulkmm.lab import choices
from bulkmm.lab.families.vmap import CASES
from bulkmm.lab.machine import arch as archs
from bulkmm.lab.scenario import find
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
What `bulkmm lab matrix{flags}` printed. Each line is one run of a scenario in a
virtual machine, off and on in one boot. A verdict counts the run's checks of
correctness, a clean kernel log among them. TCG means that the CPU is emulated: the
last column is the share of the kernel's instructions saved, by count. Elsewhere it is
time without / time with. Medians, with 95 % intervals in round brackets, or in square
ones the range of fewer than six samples; `~`: not proven."""
NOTE = (
    "All in virtual machines. Instruction counts are neither times nor hardware "
    "figures. Those of clearing are not counted: it makes the same stores in another "
    "way, and one string instruction clears a page."
)
DEBUG_INTRO = """\
What `bulkmm lab matrix{flags}` printed: reduced scenarios, on kernels that the lab
[builds](lab.md#kernels-with-their-checks-on) with the kernel's own checks switched on.
`debug` proves locking, RCU and atomic sections, checks page tables, free pages,
objects and lists, and preempts anywhere; `debug-kobject` also delays the release of
every kobject; `kasan` checks every access against its shadow. A run passed if the
kernel log has no warning of any kind and, on kernels that prove locking, lockdep was
still active at the end."""
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


Rows = tuple[tuple[str, ...], ...]  # scenarios and options
ALIGN, PREEMPT = "--align", "--preempt"
STORM = ("hook-storm", "--cpus", "4", "--seconds", "240")
# All scenarios with their options, path by path, with fewer rounds than by
# default: as short as is meaningful.
TWO, THREE = ("--rounds", "2"), ("--rounds", "3")
FULL: Rows = (
    ("pmem-fsdax-100g",),
    ("pmem-devdax-100g",),
    ("pmem-devdax-100g", ALIGN, "1G"),
    ("pmem-faults",),
    ("pmem-verify",),
    STORM,
    ("hmm-private-64g",),
    ("upstream-hmm",),
    ("thp-2m", "--init-on-alloc", "0", *TWO),
    ("thp-2m", "--init-on-alloc", "1", *TWO),
    ("mthp", "--init-on-alloc", "0", *TWO),
    ("hugetlb-2m", *TWO),
    ("hugetlb-1g",),
    ("clear-cases", *TWO),
    ("clear-faults",),
    ("clear-populate",),
    ("mthp-pair",),
    *(("clear-latency", PREEMPT, model, *TWO) for model in choices.PREEMPT),
    ("clear-latency", *TWO),
    ("populate-guest", *TWO),
    *((name, *THREE) for name in CASES),
    ("vmap-check",),
    ("vmap-faults",),
    ("upstream-vmalloc",),
    ("hotplug-kmem-32g",),
    ("hotplug-kmem-4g", *TWO),
    ("hotplug-cxl-4g", *TWO),
    ("hotplug-virtio-mem-4g", *TWO),
    ("hotplug-virtio-mem-32g", *TWO),
    ("hotplug-faults",),
    ("coexist",),
    ("ndctl-odd",),
    ("stress",),
    ("upstream-mm", "--seconds", "20"),
)
QUICK: Rows = (
    ("pmem-fsdax-100g", "--size", "2G", "--rounds", "3"),
    ("hugetlb-2m", "--folios", "8", "--way", "write-middle", "--rounds", "1"),
    ("vmap-100m-order8", "--rounds", "3", "--arrays", "50"),
    ("hotplug-kmem-4g", "--rounds", "1"),
)

# The kernels that the lab builds, and their runs: all scenarios, with as little
# work as proves the same; loading, unloading and switching where kobjects live on;
# attaching where memory has a shadow.
ONE = ("--rounds", "1")
FEW = (*ONE, "--arrays", "50")
SMALL = ("--kib", "64", "--kib", "1024")
MAPPED = (
    ("vmap-check", "--arrays", "1000"),
    ("vmap-faults", "--seconds", "30"),
    ("upstream-vmalloc", "--loops", "20"),
)
CHECKED: dict[str, Rows] = {
    "debug": (
        ("pmem-fsdax-100g", "--size", "4G", *ONE),
        ("pmem-devdax-100g", "--size", "4G", *ONE),
        ("pmem-devdax-100g", "--size", "16G", ALIGN, "1G", *ONE),
        ("pmem-faults",),
        ("pmem-verify",),
        ("hook-faults",),
        STORM,
        ("hmm-private-64g", "--size", "4G", *ONE),
        ("upstream-hmm", *ONE),
        ("thp-2m", "--init-on-alloc", "0", "--folios", "4", *ONE),
        ("thp-2m", "--init-on-alloc", "1", "--folios", "4", *ONE),
        ("mthp", *SMALL, "--init-on-alloc", "0", "--folios", "2", *ONE),
        ("mthp-pair", *ONE),
        ("hugetlb-2m", "--folios", "4", *ONE),
        ("hugetlb-1g", *ONE),
        ("clear-cases", *ONE),
        ("clear-faults", "--seconds", "30"),
        ("clear-latency", PREEMPT, "full", *ONE),
        ("clear-latency", PREEMPT, "lazy", *ONE),
        *((name, *FEW) for name in CASES),
        *MAPPED,
        ("hotplug-kmem-4g", *ONE),
        ("hotplug-virtio-mem-4g", *ONE),
        ("hotplug-faults",),
    ),
    "debug-kobject": (
        ("hook-kobject",),
        ("clear-faults", "--seconds", "30"),
        ("hotplug-virtio-mem-4g", *ONE),
    ),
    "kasan": (
        ("hook-kasan",),
        ("vmap-100m-order8", *FEW),
        ("vm_map_ram", *FEW),
        ("ioremap-1m", *FEW),
        *MAPPED,
        ("hotplug-kmem-4g", *ONE),
        ("hotplug-faults",),
    ),
}


def checked() -> list[Cell]:
    """Return the cells of the kernels that the lab builds."""
    return [
        Cell(find(name).path, archs.X86_64.name, kernel, name, tuple(options))
        for kernel, rows in CHECKED.items()
        for name, *options in rows
    ]


def cells(scenarios: Rows, wanted: Iterable[archs.Arch] = archs.ALL) -> list[Cell]:
    """Return the cells of these architectures' kernels that can run them."""
    return [
        Cell(find(words[0]).path, arch.name, kernel, words[0], words[1:])
        for words in scenarios
        for arch in wanted
        for kernel in arch.series
        if has(arch, kernel, words)
    ]


def has(arch: archs.Arch, kernel: str, words: tuple[str, ...]) -> bool:
    """Return whether a kernel supports a scenario with these options."""
    scenario = find(words[0])
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
    width, intro = page.columns, page.intro.format(flags=flags)
    rows = [line.cells()[:width] for line in lines]
    shown = Sheet(HEADINGS[:width], rows).markdown()
    return "\n".join([page.title, "", intro, "", *shown, page.note, ""])


def summary(lines: list[Line]) -> str:
    """Return how many runs passed."""
    return f"Runs passed: {sum(line.ok for line in lines)} of {len(lines)}."
