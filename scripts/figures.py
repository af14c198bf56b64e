# SPDX-License-Identifier: GPL-2.0-only
"""Write the native figures of README.md and pages of docs/ from results/."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

from patch_tables import UPSTREAM, update_upstream
from result_files import (
    KERNELS,
    PATCHED,
    RESULTS,
    ROOT,
    CpuResults,
    read_results,
    select_results,
    take_result,
)
from result_notes import describe_amounts, describe_document, wrap_paragraph
from whole_operations import describe_repeated, format_whole

from bench import goals
from bench.kernel import history
from bulkmm.control import requirements
from bulkmm.report import headlines, page
from bulkmm.results import host as machine
from bulkmm.results import result_tables, size_grid
from bulkmm.results.model import Document
from bulkmm.results.table import Table
from bulkmm.shell.errors import BulkmmError
from bulkmm.worth import gain
from lab.commands.page import GENERATED, wrap_text

PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
# Text between these marks is generated; in the README, for the CPU that it names.
FIGURES = re.compile(
    r"(<!-- figures: begin (\S+) -->\n).*?(?=<!-- figures: end -->)", re.DOTALL
)
PICTURE = RESULTS / "headlines.svg"
MACHINE = "x86_64"  # of all results of kernels
HEADLINES_SPAN = "The last column spans the medians of these kernels on so many CPUs."
HEADLINES_NOTE = (
    "Transparent huge pages gain less: [why](docs/clear.md#when-it-helps). [Other "
    "CPUs, every figure](docs/figures.md#what-people-wait-for)."
)
EMPTY_PAGE = "No CPU has been measured with this code yet: `make figures`.\n"
# for each kind of result, its tables; "bulkmm show" has more
SECTIONS: dict[str, tuple[str, Callable[[list[Document]], Iterable[Table]]]] = {
    "Each kernel's own code and the module's": (
        KERNELS,
        lambda documents: [
            result_tables.make_kernel_table(documents, ways=result_tables.MODULE_ARMS)
        ],
    ),
    "Kernel after kernel": (
        "history",
        lambda documents: [history.make_table(*documents)],
    ),
    "Populate": (
        "populate*",  # all kinds of page; of one of them, measured by itself
        lambda documents: [result_tables.make_tables([one])[0] for one in documents],
    ),
    "Stage": ("stage", lambda documents: result_tables.make_tables(documents)[:1]),
    "Serve": ("serve", lambda documents: result_tables.make_tables(documents)[:1]),
    "The core": ("bench", lambda documents: size_grid.make_size_grids(*documents)),
}


def make_page(text: str, cpus: dict[str, CpuResults]) -> str:
    """Return docs/figures.md with the figures of these CPUs."""
    lines = [
        line
        for name, cpu_results in cpus.items()
        for line in make_section(name, cpu_results)
    ]
    body = "\n".join(["", *lines]) if lines else EMPTY_PAGE
    return GENERATED.sub(lambda _: body, text)


def make_section(name: str, cpu_results: CpuResults) -> Iterator[str]:
    """Return the section of a CPU."""
    host = next(iter(cpu_results.values())).machine
    yield from (f"### {host['cpu']['model']} ({name})", "")
    caches = ", ".join(f"{n} {size}" for n, size in host["cpu"]["caches"].items())
    governor = host["cpu"].get("governor") or "unknown"
    description = (
        f"{host['cpu']['cores']} CPUs, {host.get('numa_nodes')} memory node(s); caches"
    )
    yield from wrap_paragraph(
        f"{description} {caches}; frequency governor: {governor}."
    )
    if kernels := select_results(cpu_results, KERNELS):
        for table in headlines.make_tables(kernels):
            yield from table.markdown()
        whole = headlines.describe_whole(kernels)
        yield from wrap_paragraph(
            " ".join([*whole, headlines.describe_losses(kernels)])
        )
    for title, (pattern, sheets) in SECTIONS.items():
        if documents := select_results(cpu_results, pattern):
            yield from (f"#### {title}", "")
            for sheet in sheets(documents):
                yield from sheet.markdown()
            if pattern == KERNELS and (amounts := describe_amounts(documents)):
                yield from wrap_paragraph(amounts)
            for document in documents:
                yield from wrap_paragraph(describe_document(document))
            if repeated := describe_repeated(documents):
                yield from wrap_paragraph(repeated)
    yield from ("#### Goals that are not met", "")
    yield from list_missed(cpu_results)


def list_missed(cpu_results: CpuResults) -> Iterator[str]:
    """Return the goals that are not met, and how many there are."""
    rows, summary = [], []
    for name, document in cpu_results.items():
        if fnmatch(name, PATCHED):
            continue  # goals are the module's
        if goal_rows := goals.make_table(goals.judge_goals(document)).rows:
            rows += [(name, *row) for row in goal_rows if row[2].startswith("not")]
            met = sum(row[2].startswith("met") for row in goal_rows)
            summary.append(f"{name} {met} of {len(goal_rows)}")
    yield from Table(("result", *goals.HEADINGS), rows).markdown()
    yield from wrap_paragraph(f"Met: {', '.join(summary)}.")


def format_ratios(cpus: dict[str, CpuResults]) -> str:
    """Return what "bulkmm worth" knows of each CPU, by kernel series."""
    figures = {
        name: {
            requirements.series_of(one.machine["kernel"]): {
                kind: asdict(figure) for kind, figure in gain.extract_gains(one).items()
            }
            for one in kernels
        }
        for name, cpu_results in cpus.items()
        if (kernels := select_results(cpu_results, KERNELS))
    }
    text = json.dumps(figures, indent=1, sort_keys=True)
    # a line for each kind of calls
    return re.sub(r"\{[^{}]+\}", lambda match: " ".join(match[0].split()), text) + "\n"


def update_readme(text: str, cpus: dict[str, CpuResults]) -> str:
    """Return README.md with the figures of the CPU that it names."""

    def render(match: re.Match[str]) -> str:
        begin, cpu = match.groups()
        if kernels := list(select_pinned(cpus.get(cpu, {}))):
            return "\n".join([begin.rstrip(), *make_headlines(kernels), ""])
        raise BulkmmError(f"README.md names {cpu}, which is not in results")

    return FIGURES.sub(render, text)


def select_pinned(cpu_results: CpuResults) -> Iterator[Document]:
    """Yield the results of pinned kernels: the README has no room for all."""
    pinned = requirements.read_kernels(f"pinned-{MACHINE}")
    for document in select_results(cpu_results, KERNELS):
        if requirements.series_of(document.machine["kernel"]) in pinned:
            yield document


def draw_picture(cpus: dict[str, CpuResults]) -> str:
    """Return the report's chart of the headlines, of the CPU that the README names."""
    (cpu,) = (cpu for _, cpu in FIGURES.findall(README.read_text(encoding="utf-8")))
    newest = select_results(cpus[cpu], KERNELS)[-1]
    return page.draw_headlines(newest)


def make_headlines(kernels: list[Document]) -> Iterator[str]:
    """Return the table of the README and the lines below it."""
    for table in headlines.make_tables(kernels):
        yield from table.markdown()
    legend = (
        f"Times and ratios are medians of {kernels[0].run['processes']} processes (~ "
        "not proven, ! unstable)."
    )
    amounts = " ".join(headlines.describe_amounts(kernels))
    losses = headlines.describe_losses(kernels, "Proven to be slower")
    notes = (
        f"{headlines.SCOPE} {legend} {amounts} {HEADLINES_SPAN} {losses} "
        f"{HEADLINES_NOTE}"
    )
    yield from wrap_text(notes)


PAGES = {PAGE: make_page, README: update_readme, UPSTREAM: update_upstream}
# whole.json first: the notes of the pages and the picture read it
DATA = {
    gain.RATIOS_FILE: format_ratios,
    headlines.WHOLE_FILE: format_whole,
    PICTURE: draw_picture,
}


def main() -> None:
    """Write the pages, or print where this machine's result belongs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--folder", action="store_true", help="print the folder of this CPU, no more"
    )
    parser.add_argument(
        "--take",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="put results that somebody sent into the folder of their CPU first",
    )
    try:
        args = parser.parse_args()
        for file in args.take or ():
            take_result(file)
        if args.folder:
            print(RESULTS.relative_to(ROOT) / machine.cpu_name())
            return
        cpus = read_results()
        for file, format_data in DATA.items():
            file.write_text(format_data(cpus), "utf-8")
        for file, make in PAGES.items():
            file.write_text(make(file.read_text(encoding="utf-8"), cpus), "utf-8")
    except (OSError, BulkmmError) as error:
        sys.exit(f"figures: {error}")


if __name__ == "__main__":
    main()
