# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm report``: the page's content as data, which page.html renders."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bulkmm.report import conclusion, figure, headlines, patched
from bulkmm.results import (
    conditions,
    job_words,
    published_figures,
    result_tables,
    size_grid,
)
from bulkmm.results.model import ACCELERATORS, ALPHA, INTERVAL_LEAST, Document
from bulkmm.results.table import Table
from bulkmm.worth import report as worth
from bulkmm.worth.report import Worth

FOLDER = Path(__file__).parent
# The weight of each kind of figure, columns beside it.
BADGES = {
    "native": "measured natively on this hardware",
    "KVM": "measured in a virtual machine (KVM)",
    "TCG": "emulated (TCG): counts of work; times do not reflect hardware",
}
GAIN = "faster, or fewer instructions"
HEADINGS = ("what is done", "before", "after", GAIN, "where", "result", "published")
TASKS = {  # by the operation of a result
    "memmap": "struct pages are initialised",
    "clear": "memory is cleared",
    "copy": "memory is copied",
    "vmap": "page arrays are mapped",
    "vmalloc": "kernel memory is allocated",
    "ioremap": "a device's memory is mapped",
    "hotplug": "memory becomes RAM",
    "populate": "memory is made resident",
}
VERSIONS = ("revision", "bulkmm", "python", "numpy", "qemu")


def render_html(
    documents: list[Document],
    names: list[str],
    title: str,
    worth_results: Iterable[tuple[str, Worth]] = (),
) -> str:
    """Return the page, native results first: the same bytes for the same results."""
    named_documents = list(zip(names, documents, strict=True))
    named_documents.sort(
        key=lambda pair: ACCELERATORS.index(conditions.get_accelerator(pair[1]))
    )
    heads = [
        row
        for name, document in named_documents
        if not patched.is_of_patches(document)
        for row in list_headlines(document, name)
    ]
    # Native first, then those with published figures.
    heads.sort(key=lambda row: (ACCELERATORS.index(row[4]), not row[-1]))
    # nothing published; a single result, which the page names
    hidden = {"published": not any(row[-1] for row in heads), "result": not names[1:]}
    columns = [i for i, name in enumerate(HEADINGS) if not hidden.get(name)]
    html: str = _read_template("page.html").render(
        title=title,
        sources=[_source(document, name) for name, document in named_documents],
        leading=[*_lead(named_documents)],
        headlines=Table(
            [HEADINGS[i] for i in columns], [[row[i] for i in columns] for row in heads]
        ),
        counted=[*worth_results],
        worth=worth,
        gain=GAIN,
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        badges=BADGES,
        conditions=conditions,
        how_to_read=figure.HOW_TO_READ,
        alpha=f"{ALPHA:.0%}",
        level=f"{1 - ALPHA:.0%}",
        least=INTERVAL_LEAST,
        published_machine=published_figures.MACHINE,
    )
    return html


def _read_template(name: str) -> Any:  # noqa: ANN401 - the library's
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def draw_headlines(document: Document) -> str:
    """Return the chart of what people wait for as a picture (SVG)."""
    figure_data = figure.draw_titled(document, [*headlines.list_ratios(document)])
    (panel,) = figure_data["panels"]
    template = _read_template("figure.svg")
    return f"{template.module.picture(panel, figure.WIDTH, alone=True)}\n"


def _lead(named_documents: Iterable[tuple[str, Document]]) -> Iterator[dict[str, Any]]:
    """Yield what people wait for, of each kernel's own code beside the module's.

    And what patches gain, of a kernel without them and the one with them.
    """
    for name, document in named_documents:
        for table in headlines.make_tables([document]):
            notes = [*headlines.list_notes([document])]
            chart = figure.draw_titled(document, [*headlines.list_ratios(document)])
            yield {"name": name, "table": table, "notes": notes, "chart": chart}
        if patched.is_of_patches(document):
            table = patched.make_cpu_table(document)
            notes = [*patched.list_notes(document), *patched.LEGENDS]
            yield {"name": name, "table": table, "notes": notes, "chart": ""}


def _source(whole: Document, name: str) -> dict[str, Any]:
    """Return all of one document, by the names in page.html."""
    document, where = whole.printed(), conditions.get_accelerator(whole)
    gains = patched.is_of_patches(document)
    leading = patched.select_gains(document) if gains else document
    values = {one: document.machine.get(one) for one in VERSIONS}
    values["seed"] = document.run.get("seed")
    versions = {one: str(value) for one, value in values.items() if value is not None}
    return {
        "name": name,
        "where": where,
        "conclusion": conclusion.draw_conclusion(leading),
        "notes": result_tables.list_notes([document]),
        "facts": {**conditions.list_facts(document), **versions},
        "commands": conclusion.list_commands(document),
        "failed": document.failed,
        "checks": len(document.checks),
        "figure": figure.draw_figure(document),
        "tables": result_tables.make_tables([document]),
        "jobs": _list_jobs(document),
        "samples": _samples(document),
    }


def _list_jobs(document: Document) -> dict[str, str]:
    """Return what each scenario of a kernel's own code does, in words."""
    results = document.results if size_grid.is_of_kernel(document) else ()
    return {r.scenario: job_words.describe_job(r) for r in results}


def _samples(document: Document) -> Table:
    """Return every sample in the order taken."""
    rows: list[list[str]] = []
    for scenario in document.scenarios:
        rows.append([scenario])
        for result in document.results:
            if result.scenario == scenario:
                samples = ", ".join(f"{value:.10g}" for value in result.samples)
                rows.append([result.variant, result.unit, samples])
    return Table(("variant", "unit", "samples"), rows)


def list_headlines(whole: Document, name: str) -> Iterator[list[str]]:
    """Return before and after of the headlines: few scenarios, or those chosen."""
    document = whole.printed()
    arms = document.arms
    in_grids = size_grid.scenarios_of(document)
    for ratio in conclusion.select_ratios(document):
        two = [arms[ratio.scenario, v] for v in (ratio.base, ratio.variant)]
        if two[0].operation in in_grids and not headlines.match_headline(two[0]):
            continue
        before, after = (
            f"{r.variant}: {result_tables.format_value(r.median, r.unit)}" for r in two
        )
        yield [
            ": ".join(filter(None, (TASKS.get(two[0].operation), ratio.scenario))),
            before,
            after,
            result_tables.format_ratio(ratio),
            conditions.get_accelerator(document),
            name,
            "; ".join(_published(document, ratio.scenario)),
        ]


def _published(document: Document, scenario: str) -> list[str]:
    """Return a scenario's published figures; none beside emulated work."""
    if document.emulated:
        return []
    if figures := published_figures.list_figures(scenario):
        return [f"{published_figures.MACHINE}: {'; '.join(figures)}"]
    if document.run.get("scenario") != scenario:
        return []
    return [str(line) for line in document.run.get("published", ())]
