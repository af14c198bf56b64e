# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm report``: results as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm import options
from bulkmm.errors import Exit

if TYPE_CHECKING:  # --help does not wait for them
    import argparse

    from bulkmm.results import Document

TITLE = "bulkmm: before and after"
HERE = Path(__file__).parent


def add_parser(sub: options.Subparsers) -> None:
    """Add ``report`` to the parser of the whole command."""
    report = options.add(
        sub,
        "report",
        "write kept results as one page (HTML)",
        "Write results as one page that fetches nothing: a conclusion, before and "
        "after beside published figures, a chart, ratios with intervals, every sample, "
        "machine, method and glossary.",
        run="bulkmm.report.command:run_report",
        example="bulkmm report out/demo-native.json -o out/demo.html",
    )
    options.take(report, options.RESULTS)
    options.take(report, "-o!, --output FILE.html  write the page to this file")
    table = f"--title TEXT  title the page (default: {TITLE})"
    options.take(report, table, title=TITLE)


def run_report(args: argparse.Namespace) -> int:
    """Write the page and print its path."""
    from bulkmm import files, plot
    from bulkmm.results import Document

    files.need_place(args.output, "the report")
    documents = Document.read_all(args.results)
    write(documents, plot.names_of(args.results), args.output, args.title)
    print(f"report: {args.output}")
    return Exit.OK


def write(
    documents: list[Document], names: list[str], file: Path, title: str = TITLE
) -> None:
    """Write the page of some results."""
    from bulkmm import files

    files.write(file, html(documents, names, title), "the report")


def html(documents: list[Document], names: list[str], title: str = TITLE) -> str:
    """Return the page: the same bytes for the same results."""
    import jinja2

    from bulkmm import facts, panels, published
    from bulkmm.report.page import BADGES, page
    from bulkmm.results import ALPHA, INTERVAL_LEAST

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        page=page(documents, names, title),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        badges=BADGES,
        facts=facts,
        panels=panels,
        alpha=f"{ALPHA:.0%}",
        level=f"{1 - ALPHA:.0%}",
        least=INTERVAL_LEAST,
        published_machine=published.MACHINE,
    )
