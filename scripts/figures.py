# SPDX-License-Identifier: GPL-2.0-only
"""Write the native figures of docs/figures.md and README.md from results/."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm import grid, machine, table
from bulkmm.bench import goals
from bulkmm.errors import BulkmmError
from bulkmm.results import Document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bulkmm.results import Ratio, Result

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
# Everything between these is made here; of a README, of the CPU that it names.
GENERATED = re.compile(
    r"(?<=<!-- generated: begin -->\n).*?(?=<!-- generated: end -->)", re.DOTALL
)
FIGURES = re.compile(
    r"(?P<begin><!-- figures: begin (?P<cpu>\S+) -->\n).*?(?=<!-- figures: end -->)",
    re.DOTALL,
)
TITLES = {
    "memmap": "Stamping",
    "clear": "Clearing",
    "copy": "Copying",
    "first-use": "First use",
}
WIDTH = 100
NONE = "No CPU has been measured with this code yet: `make figures`.\n"


@dataclass(frozen=True)
class Headline:
    """A row of the README: a scenario, what is usual, and ours."""

    what: str
    scenario: str
    usual: str
    ours: str


HEADLINES = (
    Headline("struct pages, a 100 GiB device", "memmap-stamp", "rebuild", "bulkmm"),
    Headline(
        "clear 2 MiB, bypassing the cache", "clear-2m", "rep-stosb", "bulkmm-streaming"
    ),
    Headline("clear 64 KiB, cached", "clear-64k", "rep-stosb", "bulkmm-cached"),
    Headline(
        "copy 64 MiB, bypassing the cache", "copy-64m", "glibc", "bulkmm-streaming"
    ),
    Headline("copy 64 KiB, cached, hot", "copy-64k-again", "glibc", "bulkmm-cached"),
)


def folder(described: dict[str, object]) -> str:
    """Return the name of a CPU's folder: vendor, family, model, stepping."""
    cpu = described["cpu"]
    if not isinstance(cpu, dict):
        raise BulkmmError("a machine without a CPU")
    names = ("vendor", "family", "model_number", "stepping", "part")
    return "-".join(str(cpu[name]) for name in names if cpu.get(name) is not None)


def results(place: Path = RESULTS) -> dict[str, Document]:
    """Return the result of each CPU by the name of its folder."""
    files = sorted(place.glob("*/bench.json"))
    return {file.parent.name: Document.read(file) for file in files}


def page(text: str, held: dict[str, Document]) -> str:
    """Return docs/figures.md with the figures of these CPUs."""
    lines = [line for name, document in held.items() for line in cpu(name, document)]
    made = "\n".join(["", *lines]) if lines else NONE
    return GENERATED.sub(lambda _: made, text)


def cpu(name: str, document: Document) -> Iterator[str]:
    """Return the section of a CPU."""
    yield from (f"### {document.machine['cpu']['model']} ({name})", "")
    yield from bullets([*facts(document), *table.footnotes(document)])
    for kind, title in TITLES.items():
        if (of := part(document, kind)).results:
            yield from (f"#### {title}", "", *table.markdown_tables(of))
            yield from bullets(notes(of))
    yield from (
        "#### Goals",
        "",
        f"| {' | '.join(goals.HEADINGS)} |",
        "|---|--:|---|---|",
    )
    yield from (f"| {' | '.join(row)} |" for row in goals.rows(document))
    yield ""
    yield from bullets(goals.missed(document))


def bullets(lines: list[str]) -> Iterator[str]:
    """Return lines as a list that is no wider than a page."""
    for line in lines:
        yield from textwrap.wrap(
            line, WIDTH, initial_indent="- ", subsequent_indent="  "
        )
    if lines:
        yield ""


def facts(document: Document) -> list[str]:
    """Return what else is known of the machine."""
    held = document.machine["cpu"]
    caches = ", ".join(f"{name} {size}" for name, size in held["caches"].items())
    nodes = document.machine.get("numa_nodes")
    governor = held.get("governor") or "not told"
    said = f"{held['cores']} CPUs, {nodes} memory node(s); caches {caches}"
    return [f"{said}; frequency governor: {governor}."]


def part(document: Document, kind: str) -> Document:
    """Return what a document says of one subject."""
    return replace(
        document,
        results=[r for r in document.results if grid.kind(r.scenario) == kind],
        ratios=[r for r in document.ratios if grid.kind(r.scenario) == kind],
    )


def notes(document: Document) -> list[str]:
    """Return what stands under the tables of one subject."""
    found = [*grid.controls(document)]
    for one in table.parts(document):
        found += [one.title, *one.notes] if ":" in one.title else one.notes
    return found


def readme(text: str, held: dict[str, Document]) -> str:
    """Return README.md with the figures of the CPU that it names."""

    def made(found: re.Match[str]) -> str:
        if found["cpu"] not in held:
            raise BulkmmError(
                f"README.md names {found['cpu']}, which is not in results"
            )
        return found["begin"] + "\n".join(headlines(held[found["cpu"]])) + "\n"

    return FIGURES.sub(made, text)


def headlines(document: Document) -> Iterator[str]:
    """Return the table of the README and the line below it."""
    yield "| GB/s | usual | bulkmm | limit | faster |"
    yield "|---|---|---|--:|---|"
    arms = {(r.scenario, r.variant): r for r in document.results}
    ratios = {(r.scenario, r.base, r.variant): r for r in document.ratios}
    for one in HEADLINES:
        ratio = ratios.get((one.scenario, one.usual, one.ours))
        if ratio:
            yield f"| {' | '.join(headline(one, arms, ratio, document))} |"
    described = document.machine
    held = described["cpu"]
    named = f"{held['model']} (family {held['family']}, model {held['model_number']})"
    count = document.run["processes"]
    yield from ("", f"{named}, kernel {described['kernel']}, {count} processes;")
    yield "[range], ~ not proven, ! unstable. [Every figure](docs/figures.md)."


def headline(
    one: Headline, arms: dict[tuple[str, str], Result], ratio: Ratio, document: Document
) -> list[str]:
    """Return the cells of one row."""
    usual, ours = arms[one.scenario, one.usual], arms[one.scenario, one.ours]
    limit = None  # what stays in a cache has none
    if not one.ours.endswith("-cached"):
        limit = arms.get((one.scenario, grid.LIMIT))
    pick = grid.picked(document, one.scenario, one.ours)
    return [
        one.what,
        f"{one.usual} {rate(usual)}",
        f"{rate(ours)} ({pick})" if pick else rate(ours),
        rate(limit) if limit else "",
        table.factor(ratio),
    ]


def rate(arm: Result) -> str:
    """Return throughput in GB/s."""
    return f"{arm.bytes / arm.median:.1f}"


def main() -> int:
    """Write both pages, or say where this machine's result belongs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--folder", action="store_true", help="print the folder of this CPU, no more"
    )
    try:
        if parser.parse_args().folder:
            print(RESULTS.relative_to(ROOT) / folder(machine.describe()))
            return 0
        held = results()
        for file, make in ((PAGE, page), (README, readme)):
            file.write_text(make(file.read_text(encoding="utf-8"), held), "utf-8")
    except (OSError, BulkmmError) as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
