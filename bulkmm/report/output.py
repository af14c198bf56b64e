# SPDX-License-Identifier: GPL-2.0-only
"""What ``show`` and ``bench kernel`` print of results."""

from collections.abc import Sequence

from bulkmm.report import headlines, patched
from bulkmm.results import result_tables
from bulkmm.results.model import Document
from bulkmm.results.result_tables import Show
from bulkmm.results.table import print_lines


def print_results(documents: Sequence[Document], show: Show) -> None:
    """Print tables, notes, and at the end what people wait for, or patches gain."""
    if whole := _list_whole(documents, show):
        result_tables.print_documents(whole, show=show)
        headlines.print_headlines(whole)
    gains = [*filter(patched.is_of_patches, documents)]
    for i, document in enumerate(gains):
        if whole or i:
            print()
        patched.make_cpu_table(document).print()
        print_lines(["", *patched.list_notes(document)])
    if gains:
        print_lines(["", *patched.LEGENDS])


def format_results(documents: Sequence[Document], show: Show) -> str:
    """Return the tables and notes as Markdown."""
    whole = _list_whole(documents, show)
    lines = [result_tables.format_markdown(*whole, show=show)] if whole else []
    gains = [*filter(patched.is_of_patches, documents)]
    for document in gains:
        lines += patched.make_cpu_table(document).markdown()
        lines += [*(f"{note}  " for note in patched.list_notes(document)), ""]
    if gains:
        lines += [f"{note}  " for note in patched.LEGENDS]
    return "\n".join(lines).rstrip() + "\n"


def _list_whole(documents: Sequence[Document], show: Show) -> list[Document]:
    """Return the results whose variants have rows.

    Those of patches are relative to the patched kernel: read in a hurry, the inverse.
    """
    if show.full or show.all_rows:
        return [*documents]
    return [one for one in documents if not patched.is_of_patches(one)]
