# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm report``: results as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError, Exit, UsageError

if TYPE_CHECKING:
    import argparse

    from bulkmm.results import Document

TITLE = "bulkmm: before and after"
HERE = Path(__file__).parent


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``report`` to the parser of the whole command."""
    report = sub.add_parser(
        "report",
        help="results as one page (HTML)",
        description="Write results as one self-contained page: published figures "
        "beside ours, ratios with intervals, every sample, machine and method. It "
        "fetches nothing, and is for paper, telephone, dark screen and screen reader.",
    )
    report.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT.json", help="a result"
    )
    report.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.html", help="to write"
    )
    report.add_argument(
        "--title", default=TITLE, help=f"of the page (default: {TITLE})"
    )
    report.set_defaults(run=run_report)


def run_report(args: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    from bulkmm import files, plot  # noqa: PLC0415 - keeps --help fast
    from bulkmm.results import Document  # noqa: PLC0415

    files.need_place(args.output, "the report")
    if len({*args.results}) < len(args.results):
        raise UsageError("a result is given twice")
    documents = [Document.read(path) for path in args.results]
    write(documents, plot.names_of(args.results), args.output, args.title)
    print(f"report: {args.output}")
    return Exit.OK


def write(
    documents: list[Document], names: list[str], file: Path, title: str = TITLE
) -> None:
    """Write the page of some results."""
    from bulkmm import files  # noqa: PLC0415 - keeps --help fast

    files.write(file, html(documents, names, title), "the report")


def html(documents: list[Document], names: list[str], title: str = TITLE) -> str:
    """Return the page: the same bytes for the same results."""
    from bulkmm import extras, published  # noqa: PLC0415 - keeps --help fast
    from bulkmm.report.method import method  # noqa: PLC0415
    from bulkmm.report.page import Builder  # noqa: PLC0415

    try:
        import jinja2  # noqa: PLC0415 - seldom needed
    except ImportError as error:
        raise BulkmmError(extras.missing("jinja2")) from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["exact"] = repr
    return environment.get_template("page.html").render(
        page=Builder(documents, names).page(title),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        method=method(),
        published_machine=published.MACHINE,
    )
