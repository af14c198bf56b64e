# SPDX-License-Identifier: GPL-2.0-only
"""What the patches of upstream/ gain on each CPU, for docs/upstream.md."""

from collections.abc import Iterator

from result_files import PATCHED, ROOT, CpuResults, select_results
from result_notes import describe_document, wrap_paragraph

from bulkmm.report import patched
from bulkmm.results import conditions, size_grid
from bulkmm.results.model import Document
from lab.commands.page import GENERATED
from lab.machine import kernel_kinds

UPSTREAM = ROOT / "docs" / "upstream.md"


def update_upstream(text: str, cpus: dict[str, CpuResults]) -> str:
    """Return docs/upstream.md with what the patches gain on each CPU."""
    results = [
        documents
        for cpu_results in cpus.values()
        if (documents := select_results(cpu_results, PATCHED))
    ]
    results.sort(key=lambda documents: any(map(describe_age, documents)))
    lines = [line for documents in results for line in make_gains(documents)]
    return GENERATED.sub(lambda _: "\n".join(["", *lines]), text)


def make_gains(documents: list[Document]) -> Iterator[str]:
    """Return the tables of a CPU."""
    yield from (f"### {conditions.cpu_name(documents[0])}", "")
    for document in documents:
        if age := describe_age(document):
            yield from wrap_paragraph(age)
        yield from patched.make_table(document).markdown()
        yield from wrap_paragraph(describe_document(document))


def describe_age(document: Document) -> str:
    """Return what has changed since a result was measured: the patches, the method."""
    release = str(document.run[size_grid.AGAINST])
    kind = kernel_kinds.of_release(release)
    lines = []
    if not kind or kind.release(release.partition("-")[0]) != release:
        lines.append(f"The patches or the configuration have changed since {release}.")
    states = [v for name, v in document.run.items() if name.endswith("predictors")]
    if {*states} != {"reset"}:
        lines.append("Branch predictors were not reset.")
    return " ".join(lines)
