# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm show``, ``compare`` and ``report``: what kept results say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bulkmm.shell import options
from bulkmm.shell.errors import Exit, UsageError

if TYPE_CHECKING:  # --help does not wait for them
    import argparse
    from pathlib import Path

COMMANDS = f"""
show: bulkmm.report.command:run_show
    print the table of kept results
    example: out/demo-native.json --markdown
    Print one table of kept results; results of one machine share its notes.
results:RESULT.json...  read this kept result; several make one
{options.MARKDOWN}
--json  print the results as JSON, one after the other, and errors too
--full  print a row for every median and its interval
--schema  print the JSON schema of a result, and no table
{options.ALL_ROWS}

compare: bulkmm.report.compare:run_compare
    tell if the results of one build are slower than those of another
    example: --threshold 5% old-*.json -- new-*.json
    usage: [OPTION...] A.json... -- B.json...
    Compare two builds by several results of each. A file is one sample: run the bench
    at least four times with each build, in turn. A variant is slower if the whole 95 %
    interval of the ratio (of fewer than six files: the range) lies beyond the
    threshold, and a permutation test of the files, corrected for all that is compared,
    says that it is not chance.
files:RESULT.json+  read results of one build, then -- and those of the other;
    two results need no dashes between them
--threshold T = 5%  allow so much more time, as 5%% or 0.05
--format {{table,mmtests}} = table  print our table, or one as MMTests' compare prints
    it
--all-rows  name every variant that was not compared
--json  print the comparison as JSON, and errors too

report: bulkmm.report.command:run_report
    write kept results as one page (HTML)
    example: out/demo-native.json -o out/demo.html
    Write results as one page that fetches nothing: a conclusion, before and after
    beside published figures, a chart, ratios with intervals, every sample, machine,
    method and glossary. Results of bulkmm worth have a section too.
{options.RESULTS}
-o!, --output FILE.html  write the page to this file
--title TEXT = bulkmm: before and after  title the page
"""


def run_show(args: argparse.Namespace) -> int:
    """Print one table of all the files, or the schema of such files."""
    from bulkmm.report import output
    from bulkmm.results import model, result_tables

    if args.schema:
        print(model.format_schema())
        return Exit.OK
    if not args.results:
        raise UsageError("name a RESULT.json, or ask for --schema")
    if args.json and args.markdown:
        raise UsageError("--json and --markdown differ: give one")
    documents = [model.Document.read(path) for path in args.results]
    if args.json:
        print(*(document.to_json() for document in documents), sep="", end="")
        return Exit.OK
    wanted = result_tables.Show(full=args.full, all_rows=args.all_rows)
    if args.markdown:
        print(output.format_results(documents, wanted), end="")
    else:
        output.print_results(documents, wanted)
    return Exit.OK


def run_report(args: argparse.Namespace) -> int:
    """Write the page and print its path."""
    from bulkmm.report import page
    from bulkmm.results.model import Document
    from bulkmm.shell import files
    from bulkmm.worth import report as worth

    files.need_place(args.output, "the report")
    kinds = {path: files.read_json(path).get("kind") for path in args.results}
    document_paths = [path for path in args.results if kinds[path] != worth.KIND]
    worth_paths = [path for path in args.results if path not in document_paths]
    if len({*document_paths}) < len(document_paths):
        raise UsageError("a result is given twice")
    html = page.render_html(
        [Document.read(path) for path in document_paths],
        names_of(document_paths),
        _legible(args.title),
        zip(names_of(worth_paths), map(worth.read_result, worth_paths), strict=True),
    )
    files.write_file(args.output, html, "the report")
    print(f"report: {args.output}")
    return Exit.OK


def names_of(paths: list[Path]) -> list[str]:
    """Return short names of files, or their paths if those are ambiguous."""
    short = [path.stem for path in paths]
    names = short if len({*short}) == len(short) else [str(path) for path in paths]
    return [*map(_legible, names)]


def _legible(words: str) -> str:
    """Return words of the command line without bytes that no text can have."""
    return words.encode(errors="replace").decode()
