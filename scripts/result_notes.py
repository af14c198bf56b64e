# SPDX-License-Identifier: GPL-2.0-only
"""What is to be known of a result's figures, below its tables."""

import re
from collections.abc import Iterator

from result_files import ROOT

from bench.kernel import history
from bulkmm.control import requirements
from bulkmm.control.format import format_size
from bulkmm.results import conditions, size_grid, submit
from bulkmm.results.model import BULKMM, Document
from lab.commands.page import wrap_text

# in core/: a name, or a prefix with what follows it in VECTOR_BACKENDS()
BACKEND = re.compile(r'\.name = "([\w-]+)"')
VECTOR = re.compile(r'VECTOR_BACKENDS\("(\w+)"\)')
SUFFIX = re.compile(r'\.name = prefix(?: "(-\w+)")?,')


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


def wrap_paragraph(line: str) -> Iterator[str]:
    """Return a paragraph of the page's width."""
    yield from wrap_text(line)
    yield ""
