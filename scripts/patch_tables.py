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
    lines = [
        line
        for cpu_results in cpus.values()
        if (documents := select_results(cpu_results, PATCHED))
        for line in make_gains(documents)
    ]
    return GENERATED.sub(lambda _: "\n".join(["", *lines]), text)


def make_gains(documents: list[Document]) -> Iterator[str]:
    """Return the tables of a CPU."""
    yield from (f"### {conditions.cpu_name(documents[0])}", "")
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
