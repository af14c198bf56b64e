# SPDX-License-Identifier: GPL-2.0-only
"""Result documents as a table: on the screen, or as Markdown for the README."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, log10
from statistics import median
from typing import TYPE_CHECKING, Literal

from bulkmm import grid, published
from bulkmm.results import INTERVAL, NS, RANGE, STORES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console
    from rich.table import Table

    from bulkmm.results import Document, Ratio, Result

SPREADS = {INTERVAL: "({})", RANGE: "[{}]"}  # how each is told from the other
MAIN_BASES = ("rebuild", "off", "absent")  # the first there is leads its scenario
BRIEF = (
    "rebuild",
    "rebuild-saferet",
    "template-movnti",
    "bulkmm",
    "limit",
    "absent",
    "off",
    "on",
)
WIDTH = 100  # where the output is no terminal
TIMES, DASH = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
SAFE_RET = (
    "rebuild-saferet: the same loop, returning as kernels do that mitigate "
    "speculative return stack overflow; this machine's kernel"
)
NO_PMEM = "libpmem2 is left out: it was not there when the bench program was built."
EMULATED = (
    "TCG: the processor is emulated; its times are no hardware figures, and nothing "
    "is rated by them."
)
COUNTED = (
    "TCG: instructions that the emulated guest's kernel retired, and its stores: work, "
    "no times and no hardware figures."
)


@dataclass(frozen=True)
class Show:
    """How much a table shows."""

    full: bool = False  # a row for every median, and no grids
    all_rows: bool = False  # the backends and kinds of limit too


DEFAULT = Show()


@dataclass(frozen=True)
class Row:
    """One line of a scenario's part of the table."""

    variant: str
    time: str
    n: str = ""
    rate: str = ""
    ratio: str = ""
    where: str = ""

    def cells(self) -> tuple[str, str, str, str, str, str]:
        """Return the cells in the order of the headings."""
        return self.variant, self.time, self.n, self.rate, self.ratio, self.where


@dataclass(frozen=True)
class Part:
    """What the table says of one scenario."""

    title: str
    rows: list[Row]
    notes: list[str]


def where(document: Document) -> str:
    """Return native, KVM or TCG."""
    return str(document.machine.get("accelerator", "native"))


def ms(ns: float) -> str:
    """Return milliseconds to three digits, more where they are whole.

    Two digits below a tenth: calls take microseconds too.
    """
    value = ns / 1e6
    if 0 < value < 0.1:  # noqa: PLR2004
        return f"{value:.{1 - floor(log10(value))}f}"
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2  # noqa: PLR2004
    return f"{value:.{decimals}f}"


def count(value: float, median: float = 0) -> str:
    """Return a number of instructions or stores to four digits.

    With a median, in its thousands, millions or billions, which it names.
    """
    for unit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if (median or value) >= unit:
            decimals = 3 - floor(log10((median or value) / unit))
            return f"{value / unit:.{decimals}f}{'' if median else letter}"
    return f"{value:.0f}"


def counted(result: Result) -> str:
    """Return a count with its spread."""
    spread = _spread(result, lambda value: count(value, result.median))
    return f"{count(result.median)}{spread}"


def removed(ratio: float) -> float:
    """Return the percentage of the base's work that the variant does not do."""
    return 100 * (1 - 1 / ratio)


def _removed(ratio: Ratio) -> str:
    spread = _spread(ratio, lambda value: f"{removed(value):.1f}")
    return f"{removed(ratio.ratio):.1f} %{spread}"


def _spread(held: Ratio | Result, write: Callable[[float], str]) -> str:
    """Return an interval in round brackets, a range in square ones, or nothing."""
    low, high = map(write, held.ci95)
    return f" {SPREADS[held.spread].format(low + DASH + high)}" if held.spread else ""


def span(ratio: Ratio, digits: int = 2) -> str:
    """Return the ratio with its spread."""

    def write(value: float) -> str:
        return f"{value:.{digits}f}"

    return f"{write(ratio.ratio)}{TIMES}{_spread(ratio, write)}"


def factor(ratio: Ratio) -> str:
    """Return the ratio with its spread, marked if it is not proven or unstable."""
    mark = "" if ratio.significant else " ~"
    said = span(ratio) if ratio.unit == NS else _removed(ratio)
    return said + mark + (" !" if ratio.unstable else "")


def headings(documents: Iterable[Document]) -> tuple[str, ...]:
    """Return the headings of the rows; those of figures say what their spread is."""
    results = [r for document in documents for r in document.printed().results]
    spreads = dict.fromkeys(r.spread for r in results if r.spread)
    said = "".join(f" {SPREADS[spread].format(spread)}" for spread in spreads)
    if results and results[0].unit != NS:
        work = f"fewer instructions{said}, stores"
        return ("variant", f"instructions{said}", "n", "stores", work, "where")
    return ("variant", f"median ms{said}", "n", "GB/s", f"faster{said}", "where")


def stores_of(document: Document, result: Result) -> Result:
    """Return the stores that were counted with some instructions."""
    key = (result.scenario, result.variant, STORES)
    return next(r for r in document.results if (r.scenario, r.variant, r.unit) == key)


def _same(one: Ratio, other: Ratio) -> bool:
    """Return if two ratios are of the same two arms, by the same unit."""
    first, second = ((r.scenario, r.base, r.variant, r.unit) for r in (one, other))
    return first == second


def _work_row(document: Document, result: Result, ratio: Ratio | None) -> Row:
    """Return the row of instructions and the stores among them."""
    stored = stores_of(document, result)
    fewer = ""
    if ratio:
        alike = replace(ratio, unit=STORES)
        fewer = ", ".join(
            [factor(ratio)]
            + [f"{removed(r.ratio):.1f} %" for r in document.ratios if _same(r, alike)]
        )
    return Row(
        variant=result.variant,
        time=counted(result),
        n=str(len(result.samples)),
        rate=count(stored.median),
        ratio=fewer,
        where=where(document),
    )


def _row(document: Document, result: Result, ratio: Ratio | None) -> Row:
    if result.unit != NS:
        return _work_row(document, result, ratio)
    native = where(document) == "native"
    known = native and result.unit == "ns" and result.median > 0
    pick = grid.picked(document, result.scenario, result.variant)
    return Row(
        variant=f"{result.variant} ({pick})" if pick else result.variant,
        time=f"{ms(result.median)}{_spread(result, ms)}",
        n=str(len(result.samples)),
        rate=f"{result.bytes / result.median:.1f}" if known else "",
        ratio=factor(ratio) if ratio else "",
        where=where(document),
    )


def _published_rows(document: Document, scenario: str) -> list[Row]:
    """Return what was published of a scenario: times, which work stands not beside."""
    known = () if document.emulated else published.for_scenario(scenario)
    return [
        Row(
            variant=f"published ({published.MACHINE})",
            time=f"{p.version}: {p.before_ms:.1f} → {p.after_ms:.1f}",
            ratio=f"{p.ratio:.2f}{TIMES}",
            where="VM",
        )
        for p in known
    ]


def main_base(ratios: list[Ratio]) -> str:
    """Return what a scenario's variants are compared with first."""
    bases = [ratio.base for ratio in ratios]
    return next((base for base in MAIN_BASES if base in bases), bases[0])


def _part(document: Document, scenario: str, *, all_rows: bool) -> Part:
    every = [r for r in grid.shown(document, all_rows=all_rows) if r.unit != STORES]
    results = [r for r in every if r.scenario == scenario]
    names = {r.variant for r in results}
    here = [r for r in document.ratios if r.scenario == scenario]
    ratios = [r for r in here if {r.base, r.variant} <= names and r.unit != STORES]
    leading = {}
    title = scenario
    if ratios:
        base = main_base(ratios)
        leading = {r.variant: r for r in ratios if r.base == base}
        title = f"{scenario}: {_means(document, base)}"
    rows = [_row(document, r, leading.get(r.variant)) for r in results]
    shown = {id(r) for r in leading.values()}
    return Part(
        title=title,
        rows=rows + _published_rows(document, scenario),
        notes=_notes([r for r in ratios if id(r) not in shown]),
    )


def _means(document: Document, base: str) -> str:
    """Return what the ratios of a scenario are."""
    if document.counted:
        return (
            f"fewer = share of the work of {base} that is gone; below 0: there is more"
        )
    return f"faster = time of {base} / time of the variant"


def _notes(ratios: Iterable[Ratio]) -> list[str]:
    """Return a line for each ratio that the table has no room for."""
    return [f"{r.scenario}: {_said(r)}" for r in ratios]


def _said(ratio: Ratio) -> str:
    if ratio.unit == NS:
        return f"{ratio.base} / {ratio.variant}: {factor(ratio)}"
    return f"{ratio.variant} against {ratio.base}: {factor(ratio)} fewer {ratio.unit}"


def parts(document: Document, show: Show = DEFAULT) -> list[Part]:
    """Return the parts of a document's table, one per scenario, in order.

    Unless ``show`` is full those are left out that a grid shows.
    """
    document = document.printed()
    scenarios = dict.fromkeys(result.scenario for result in document.results)
    in_grids = {} if show.full else grid.kinds(document)
    return [
        _part(document, scenario, all_rows=show.all_rows)
        for scenario in scenarios
        if grid.kind(scenario) not in in_grids
    ]


def cpu_name(document: Document) -> str:
    """Return the CPU by its name, family and model."""
    cpu = document.machine.get("cpu", {})
    name = str(cpu.get("model", "unknown CPU"))
    if cpu.get("family") is None:
        return name
    return f"{name} (family {cpu['family']}, model {cpu.get('model_number')})"


def footnotes(document: Document) -> list[str]:
    """Return what must stand under a table of this document's figures."""
    machine = document.machine
    cpu = machine.get("cpu", {})
    guest = machine.get("guest", {})
    name = cpu_name(document)
    counts = sorted({len(result.samples) for result in document.printed().results})
    said = DASH.join(str(n) for n in dict.fromkeys(counts[:1] + counts[-1:]))
    kernel = guest.get("kernel") or machine.get("kernel", "unknown")
    processes = " processes" if "processes" in document.run else ""
    lines = [f"{where(document)}: {name}; kernel {kernel}; n = {said}{processes}."]
    lines += _bench_lines(document)
    lines += grid.threads(document)
    if document.checks:
        passed = sum(check.ok for check in document.checks)
        lines.append(f"Checks passed: {passed} of {len(document.checks)}.")
    if document.emulated:
        lines.append(COUNTED if document.counted else EMULATED)
    if any(result.variant == "rebuild-saferet" for result in document.results):
        said = str(cpu.get("mitigations", {}).get("spec_rstack_overflow"))
        does = "does" if "Safe RET" in said or "Safe Ret" in said else "does not"
        lines.append(f"{SAFE_RET} {does}.")
    return lines


def _bench_lines(document: Document) -> list[str]:
    """Return what a native run says of its memory, its peers and its quiet."""
    run, lines = document.run, []
    if "huge_bytes" in run and run.get("bytes"):
        share = min(1, run["huge_bytes"] / run["bytes"])
        lines.append(f"Memory in huge pages: {share:.0%}.")
    if any(name.endswith("libpmem2") and not run[name] for name in run):
        lines.append(NO_PMEM)
    if varied := [r for r in document.results if r.cv is not None]:
        worst = max(varied, key=lambda r: r.cv or 0)
        middle = median(r.cv or 0 for r in varied)
        lines.append(
            f"Coefficient of variation between processes: median {middle:.1%}, most "
            f"{worst.cv or 0:.0%} ({worst.scenario} {worst.variant})."
        )
    if "load" in run:
        before, after = run["load"]
        stolen = f"{run.get('steal', 0):.1%} of the CPU time stolen"
        lines.append(f"Load {before} before, {after} after; {stolen}.")
    return lines


BRACKETS = f"(a{DASH}b): 95 % interval. [a{DASH}b]: range of fewer than six samples."
LEGEND = f"{BRACKETS} ~ not proven. ! unstable: the A/A control moved by more."


def _empty_table(headings: Iterable[str], numeric: Iterable[str]) -> Table:
    from rich import box  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415

    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    numeric = set(numeric)
    for i, heading in enumerate(headings):
        justify: Literal["left", "right"] = "right" if heading in numeric else "left"
        shown.add_column(plain(heading), justify=justify, no_wrap=not i)
    return shown


def plain(text: str) -> str:
    """Return text in which no bracket is a style."""
    return text.replace("[", "\\[")


def screen(console: Console | None = None) -> Console:
    """Return where tables go: as wide as the terminal, or as a page."""
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    console = console or Console()
    if not console.is_terminal and console.width < WIDTH:
        console.width = WIDTH
    return console


def _print_grid(console: Console, held: grid.Grid) -> None:
    # Hyphens are where a long name of a variant may be broken.
    names = [held.headings[0], *(h.replace("-", "-\n") for h in held.headings[1:])]
    shown = _empty_table(names, names[1:] if held.numeric else ())
    for row in held.rows:
        shown.add_row(*map(plain, row))
    console.print(shown)
    console.print()


def print_lines(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of its own kind."""
    shown = _empty_table(headings, ())
    for row in rows:
        shown.add_row(*map(plain, row))
    screen().print(shown)


def _kinds(documents: Iterable[Document]) -> list[list[Document]]:
    """Return the documents of times and those of work: no table has both."""
    held = list(documents)
    kinds = ([d for d in held if d.counted is counted] for counted in (False, True))
    return [kind for kind in kinds if kind]


def _print_parts(console: Console, documents: list[Document], show: Show) -> None:
    shown = _empty_table(headings(documents), ("n", "GB/s", "stores"))
    for part in _shown_parts(documents, show=show):
        shown.add_row(f"[bold]{part.title.partition(':')[0]}[/bold]")
        for row in part.rows:
            cells = map(plain, row.cells())
            shown.add_row(*cells, end_section=row is part.rows[-1])
    console.print(shown)


def print_documents(
    documents: list[Document], console: Console | None = None, show: Show = DEFAULT
) -> None:
    """Print one table of several documents.

    Many scenarios of one kind are printed as grids, unless all is asked for.
    """
    console = screen(console)
    found = _shown_parts(documents, show=show)
    compact = _grids(documents, show)
    for kind in _kinds(documents) if found or not compact else ():
        _print_parts(console, kind, show)
    for held in compact:
        _print_grid(console, held)
    for line in _lines_under(documents, found, show):
        console.print(line, markup=False, highlight=False)


def _grids(documents: Iterable[Document], show: Show) -> list[grid.Grid]:
    if show.full:
        return []
    return [
        held
        for one in documents
        for held in grid.grids(one, factor, all_rows=show.all_rows)
    ]


def _lines_under(
    documents: Iterable[Document], found: list[Part], show: Show
) -> list[str]:
    lines = [part.title for part in found if ":" in part.title]
    lines += [note for part in found for note in part.notes]
    for document in documents:
        lines += [] if show.full else grid.controls(document)
        lines += footnotes(document)
    return list(dict.fromkeys([*lines, LEGEND]))


def print_document(document: Document, console: Console | None = None) -> None:
    """Print the table of one document."""
    print_documents([document], console)


def _brief(part: Part) -> Part | None:
    """Return what the first screen of a README has room for."""
    if part.title.endswith("-first"):
        return None
    newest = [row for row in part.rows if row.variant.startswith("published")][-1:]
    rows = [r for r in part.rows if r.variant.partition(" ")[0] in BRIEF] + newest
    return Part(part.title, rows, [])


def _markdown_grid(held: grid.Grid) -> list[str]:
    lines = ["| " + " | ".join(held.headings) + " |"]
    rule = "--:" if held.numeric else "---"
    lines.append("|---" + f"|{rule}" * (len(held.headings) - 1) + "|")
    return [*lines, *(f"| {' | '.join(row)} |" for row in held.rows), ""]


def _markdown_parts(documents: list[Document], found: list[Part]) -> list[str]:
    lines = [
        "| scenario | " + " | ".join(headings(documents)) + " |",
        "|---|---|---|--:|--:|---|---|",
    ]
    for part in found:
        scenario = part.title.partition(":")[0]
        lines += [f"| {scenario} | {' | '.join(row.cells())} |" for row in part.rows]
    return [*lines, ""]


def markdown_tables(
    *documents: Document, brief: bool = False, show: Show = DEFAULT
) -> list[str]:
    """Return the tables as lines of Markdown."""
    compact = _grids(documents, show)
    lines = []
    for kind in _kinds(documents) or [[]]:
        found = _shown_parts(kind, brief=brief, show=show)
        if found or not compact:
            lines += _markdown_parts(kind, found)
    return lines + [line for held in compact for line in _markdown_grid(held)]


def _shown_parts(
    documents: Iterable[Document], *, show: Show, brief: bool = False
) -> list[Part]:
    found = [part for document in documents for part in parts(document, show)]
    return [part for whole in found if (part := _brief(whole))] if brief else found


def markdown(*documents: Document, brief: bool = False, show: Show = DEFAULT) -> str:
    """Return the same rows and lines as Markdown; ``brief``: the main ones."""
    lines = markdown_tables(*documents, brief=brief, show=show)
    found = _shown_parts(documents, brief=brief, show=show)
    lines += [f"{line}  " for line in _lines_under(documents, found, show)]
    return "\n".join(lines).rstrip() + "\n"
