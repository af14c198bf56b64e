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
from typing import Any

from bench import goals
from bench.kernel import history, patched
from bulkmm.control import requirements
from bulkmm.control.format import format_size
from bulkmm.report import headlines, page
from bulkmm.results import conditions, result_tables, size_grid, submit
from bulkmm.results import host as machine
from bulkmm.results.model import BULKMM, Document, Result
from bulkmm.results.table import Table
from bulkmm.shell.errors import BulkmmError
from bulkmm.worth import gain
from lab.commands.page import GENERATED, wrap_text
from lab.machine import kernel_kinds

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
UPSTREAM = ROOT / "docs" / "upstream.md"
# Text between these marks is generated; in the README, for the CPU that it names.
FIGURES = re.compile(
    r"(<!-- figures: begin (\S+) -->\n).*?(?=<!-- figures: end -->)", re.DOTALL
)
# in core/: a name, or a prefix with what follows it in VECTOR_BACKENDS()
BACKEND = re.compile(r'\.name = "([\w-]+)"')
VECTOR = re.compile(r'VECTOR_BACKENDS\("(\w+)"\)')
SUFFIX = re.compile(r'\.name = prefix(?: "(-\w+)")?,')
# what is kept of the machine that emulated a guest
OF_GUEST = ("accelerator", "guest", "bulkmm", "revision", "date")
PICTURE = RESULTS / "headlines.svg"
MACHINE = "x86_64"  # of all results of kernels
WHOLE = "populate-1g-hugetlb"  # what is measured of whole operations
KERNELS, PATCHED = "kernel-*", f"{submit.PATCHED}-*"
HEADLINES_SPAN = "The last column spans the medians of these kernels on so many CPUs."
HEADLINES_NOTE = (
    "Transparent huge pages gain less: [why](docs/clear.md#when-it-helps). [Other "
    "CPUs, every figure](docs/figures.md#what-people-wait-for)."
)
EMPTY_PAGE = "No CPU has been measured with this code yet: `make figures`.\n"
CpuResults = dict[str, Document]  # all results of a CPU, by the name of the file
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


def read_results(place: Path = RESULTS) -> dict[str, CpuResults]:
    """Return the results of each CPU by the name of its folder."""
    cpus: dict[str, CpuResults] = {}
    for file in sorted(place.glob("*/*.json")):
        cpus.setdefault(file.parent.name, {})[file.stem] = Document.read(file)
    return cpus


def select_results(cpu_results: CpuResults, pattern: str) -> list[Document]:
    """Return the results whose names match a pattern."""
    return [one for name, one in cpu_results.items() if fnmatch(name, pattern)]


def take_result(file: Path, place: Path = RESULTS) -> Path:
    """Put a result into the folder of its CPU; return where it is.

    Work counted in an emulated guest belongs to none.
    """
    document = Document.read(file)
    if document.emulated:
        to = place / f"guest-{document.results[0].scenario}.json"
        document.machine = {name: document.machine[name] for name in OF_GUEST}
        document.run = {"rounds": document.run["rounds"]}
        document.write(to)
        return to
    document = submit.anonymise_document(document)
    if (few := document.run.get("processes", 0)) < submit.LEAST:
        raise BulkmmError(f"{file}: n = {few}, {submit.LEAST} needed for an interval")
    name = machine.cpu_name(document.machine["cpu"])
    if not re.fullmatch(r"\w[\w-]*", name):
        raise BulkmmError(f"{file}: the CPU is no name of a folder: {name}")
    to = place / name / submit.file_name(document)
    to.parent.mkdir(exist_ok=True)
    document.write(to)
    return to


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


def describe_amounts(documents: list[Document]) -> str:
    """Return which times of a row are of different amounts of memory."""
    scenarios: dict[str, dict[int, list[str]]] = {}
    for document in documents:
        series = requirements.series_of(document.machine["kernel"])
        for result in document.results:
            names = scenarios.setdefault(result.scenario, {})
            names.setdefault(result.bytes, [])
            if series not in names[result.bytes]:
                names[result.bytes].append(series)
    by_amounts: dict[str, list[str]] = {}
    for scenario, names in scenarios.items():
        if len(names) > 1:
            amounts = (f"{format_size(n)} ({', '.join(x)})" for n, x in names.items())
            by_amounts.setdefault(" and ".join(amounts), []).append(scenario)
    parts = [f"{amounts} in {', '.join(x)}" for amounts, x in by_amounts.items()]
    if not parts:
        return ""
    lead = "Not of the same amount of memory, so that only the ratios can be compared"
    return f"{lead}: {'; '.join(parts)}."


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


def describe_document(document: Document) -> str:
    """Return what is to be known of a result's figures."""
    code = describe_code(document)
    if document.run.get("scenario") == submit.HISTORY:
        return " ".join(
            [*history.list_notes(document)[:-1], code]
        )  # the page has the legend
    return " ".join(
        [
            *size_grid.describe_controls(document),
            *conditions.list_footnotes(document),
            code,
        ]
    )


def describe_code(document: Document) -> str:
    """Return which code was measured, when, and what of it is gone."""
    revision, changed, _ = str(document.machine.get("revision")).partition("+")
    texts = [f"revision {revision}{' with changes' if changed else ''}"]
    texts += [document.machine["date"]] if "date" in document.machine else []
    backends = {r.backend for r in document.results if r.arm == BULKMM and r.backend}
    if obsolete := sorted(backends - list_backends()):
        texts.append(f"with backends that core/ no longer has: {', '.join(obsolete)}")
    return f"Code: {', '.join(texts)}."


def list_backends() -> set[str]:
    """Return the names of all backends of the core."""
    files = [*(ROOT / "core").rglob("*.c"), *(ROOT / "core").rglob("*.h")]
    text = "".join(file.read_text("utf-8") for file in files)
    vectors = {p + s for p in VECTOR.findall(text) for s in SUFFIX.findall(text)}
    return {*BACKEND.findall(text)} | vectors


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


def wrap_paragraph(line: str) -> Iterator[str]:
    """Return a paragraph of the page's width."""
    yield from wrap_text(line)
    yield ""


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


def update_upstream(text: str, cpus: dict[str, CpuResults]) -> str:
    """Return docs/upstream.md with what the patches gain on each CPU."""
    lines = [
        line
        for cpu_results in cpus.values()
        if (documents := select_results(cpu_results, PATCHED))
        for line in make_gains(documents)
    ]
    return GENERATED.sub(lambda _: "\n".join(["", *lines]), text)


def make_gains(documents: list[Document]) -> Iterator[str]:
    """Return the tables of a CPU."""
    yield from (f"### {documents[0].machine['cpu']['model']}", "")
    for document in documents:
        yield from patched.make_table(document).markdown()
        notes = f"{describe_document(document)}{describe_patches(document)}"
        yield from wrap_paragraph(notes)


def describe_patches(document: Document) -> str:
    """Return a sentence if the kernel of a result had other patches than now."""
    release = str(document.run[size_grid.AGAINST])
    kind = kernel_kinds.of_release(release)
    if kind and kind.release(release.partition("-")[0]) == release:
        return ""
    return f" The patches or the configuration have changed since {release}."


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
