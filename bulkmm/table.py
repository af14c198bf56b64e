# SPDX-License-Identifier: GPL-2.0-only
"""Result documents as a table: on the screen, or as Markdown for the README."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any, Literal

from bulkmm import grid, published

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.table import Table

    from bulkmm.results import Document, Ratio, Result

HEADINGS = ("variant", "median ms (95 %)", "n", "GB/s", "faster (95 %)", "where")
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
WIDTH, GRID_WIDTH = 80, 96  # where the output is no terminal
TIMES, DASH = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
SAFE_RET = (
    "rebuild-saferet: the same loop, returning as kernels do that mitigate "
    "speculative return stack overflow; this machine's kernel"
)
NO_PMEM = "libpmem2 is left out: it was not there when the bench program was built."
EMULATED = (
    "TCG: ratios are of emulated work, no hardware figures; caches and memory "
    "bandwidth are not emulated."
)


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


def factor(ratio: Ratio) -> str:
    """Return the ratio with its interval, marked if it is not proven."""
    low, high = ratio.ci95
    mark = "" if ratio.significant else " ~"
    return f"{ratio.ratio:.2f}{TIMES} ({low:.2f}{DASH}{high:.2f}){mark}"


def _row(document: Document, result: Result, ratio: Ratio | None) -> Row:
    low, high = result.ci95
    native = where(document) == "native"
    known = native and result.unit == "ns" and result.median > 0
    return Row(
        variant=result.variant,
        time=f"{ms(result.median)} ({ms(low)}{DASH}{ms(high)})",
        n=str(len(result.samples)),
        rate=f"{result.bytes / result.median:.1f}" if known else "",
        ratio=factor(ratio) if ratio else "",
        where=where(document),
    )


def _published_rows(scenario: str) -> list[Row]:
    return [
        Row(
            variant=f"published ({published.MACHINE})",
            time=f"{p.version}: {p.before_ms:.1f} → {p.after_ms:.1f}",
            ratio=f"{p.ratio:.2f}{TIMES}",
            where="VM",
        )
        for p in published.for_scenario(scenario)
    ]


def main_base(ratios: list[Ratio]) -> str:
    """Return what a scenario's variants are compared with first."""
    bases = [ratio.base for ratio in ratios]
    return next((base for base in MAIN_BASES if base in bases), bases[0])


def _part(document: Document, scenario: str) -> Part:
    results = [r for r in document.results if r.scenario == scenario]
    ratios = [r for r in document.ratios if r.scenario == scenario]
    leading = {}
    title = scenario
    if ratios:
        base = main_base(ratios)
        leading = {r.variant: r for r in ratios if r.base == base}
        title = f"{scenario}: faster = time of {base} / time of the variant"
    rows = [_row(document, r, leading.get(r.variant)) for r in results]
    shown = {id(r) for r in leading.values()}
    return Part(
        title=title,
        rows=rows + _published_rows(scenario),
        notes=_notes([r for r in ratios if id(r) not in shown]),
    )


def _notes(ratios: Iterable[Ratio]) -> list[str]:
    """Return a line for each ratio that the table has no room for."""
    return [f"{r.scenario}: {r.base} / {r.variant}: {factor(r)}" for r in ratios]


def parts(document: Document, *, full: bool = True) -> list[Part]:
    """Return the parts of a document's table, one per scenario, in order.

    Without ``full`` those are left out that a grid shows.
    """
    scenarios = dict.fromkeys(result.scenario for result in document.results)
    in_grids = {} if full else grid.kinds(document)
    return [_part(document, s) for s in scenarios if grid.kind(s) not in in_grids]


def footnotes(document: Document) -> list[str]:
    """Return what must stand under a table of this document's figures."""
    machine = document.machine
    cpu = machine.get("cpu", {})
    guest = machine.get("guest", {})
    name = cpu.get("model", "unknown CPU")
    if cpu.get("family") is not None:
        name += f" (family {cpu['family']}, model {cpu.get('model_number')})"
    counts = sorted({len(result.samples) for result in document.results})
    said = DASH.join(str(n) for n in dict.fromkeys(counts[:1] + counts[-1:]))
    kernel = guest.get("kernel") or machine.get("kernel", "unknown")
    lines = [f"{where(document)}: {name}; kernel {kernel}; n = {said}."]
    lines += _bench_lines(document.run)
    if document.checks:
        passed = sum(check.ok for check in document.checks)
        lines.append(f"Checks passed: {passed} of {len(document.checks)}.")
    if where(document) == "TCG":
        lines.append(EMULATED)
    if any(result.variant == "rebuild-saferet" for result in document.results):
        said = str(cpu.get("mitigations", {}).get("spec_rstack_overflow"))
        does = "does" if "Safe RET" in said or "Safe Ret" in said else "does not"
        lines.append(f"{SAFE_RET} {does}.")
    return lines


def _bench_lines(run: dict[str, Any]) -> list[str]:
    """Return what a native run says of its memory and its peers."""
    lines = []
    if "huge_bytes" in run and run.get("bytes"):
        share = min(1, run["huge_bytes"] / run["bytes"])
        lines.append(f"Memory in huge pages: {share:.0%}.")
    if any(name.endswith("libpmem2") and not run[name] for name in run):
        lines.append(NO_PMEM)
    return lines


LEGEND = "~ not proven: Mann-Whitney above 5 %, or the interval contains 1."


def _empty_table(headings: Iterable[str], numeric: Iterable[str]) -> Table:
    from rich import box  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415

    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    numeric = set(numeric)
    for i, heading in enumerate(headings):
        justify: Literal["left", "right"] = "right" if heading in numeric else "left"
        shown.add_column(heading, justify=justify, no_wrap=not i)
    return shown


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
        shown.add_row(*row)
    console.print(shown)
    console.print()


def print_lines(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of its own kind."""
    shown = _empty_table(headings, ())
    for row in rows:
        shown.add_row(*(cell.replace("[", "\\[") for cell in row))
    screen().print(shown)


def _print_parts(console: Console, found: list[Part]) -> None:
    shown = _empty_table(HEADINGS, ("n", "GB/s"))
    for part in found:
        shown.add_row(f"[bold]{part.title.partition(':')[0]}[/bold]")
        for row in part.rows:
            shown.add_row(*row.cells(), end_section=row is part.rows[-1])
    console.print(shown)


def print_documents(
    documents: list[Document], console: Console | None = None, *, full: bool = False
) -> None:
    """Print one table of several documents.

    Many scenarios of one kind are printed as grids, unless all is asked for.
    """
    console = screen(console)
    found = [part for document in documents for part in parts(document, full=full)]
    compact = [] if full else [g for one in documents for g in grid.grids(one, factor)]
    if compact and not console.is_terminal:
        console.width = max(console.width, GRID_WIDTH)
    if found or not compact:
        _print_parts(console, found)
    for held in compact:
        _print_grid(console, held)
    for line in _lines_under(documents, found, full=full):
        console.print(line, markup=False, highlight=False)


def _lines_under(
    documents: list[Document], found: list[Part], *, full: bool
) -> list[str]:
    lines = [part.title for part in found if ":" in part.title]
    lines += [note for part in found for note in part.notes]
    for document in documents:
        lines += [] if full else grid.controls(document)
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
    rows = [row for row in part.rows if row.variant in BRIEF] + newest
    return Part(part.title, rows, [])


def _markdown_grid(held: grid.Grid) -> list[str]:
    lines = ["| " + " | ".join(held.headings) + " |"]
    rule = "--:" if held.numeric else "---"
    lines.append("|---" + f"|{rule}" * (len(held.headings) - 1) + "|")
    return [*lines, *(f"| {' | '.join(row)} |" for row in held.rows), ""]


def _markdown_parts(found: list[Part]) -> list[str]:
    lines = [
        "| scenario | " + " | ".join(HEADINGS) + " |",
        "|---|---|---|--:|--:|---|---|",
    ]
    for part in found:
        scenario = part.title.partition(":")[0]
        lines += [f"| {scenario} | {' | '.join(row.cells())} |" for row in part.rows]
    return [*lines, ""]


def markdown(*documents: Document, brief: bool = False, full: bool = False) -> str:
    """Return the same rows and lines as Markdown; ``brief``: the main ones."""
    found = [part for document in documents for part in parts(document, full=full)]
    if brief:
        found = [part for whole in found if (part := _brief(whole))]
    compact = [] if full else [g for one in documents for g in grid.grids(one, factor)]
    lines = _markdown_parts(found) if found or not compact else []
    lines += [line for held in compact for line in _markdown_grid(held)]
    lines += [f"{line}  " for line in _lines_under(list(documents), found, full=full)]
    return "\n".join(lines).rstrip() + "\n"
