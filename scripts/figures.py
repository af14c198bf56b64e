# SPDX-License-Identifier: GPL-2.0-only
"""Write the native figures of docs/figures.md and README.md from results/."""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from bulkmm import facts as known
from bulkmm import grid, machine, table
from bulkmm.bench import goals
from bulkmm.control import needs
from bulkmm.errors import BulkmmError
from bulkmm.native import summary
from bulkmm.results import INTERVAL, Document, spread_of

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
# Text between these marks is generated; in the README, for the CPU that it names.
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
FULL = table.Show(full=True)
KERNEL = "Linux"
POPULATE = "populate.json"
NONE = "No CPU has been measured with this code yet: `make figures`.\n"


@dataclass(frozen=True)
class Measured:
    """All results of a CPU."""

    bench: Document
    kernels: list[Document] = field(default_factory=list)  # one per kernel
    populate: Document | None = None


def folder(described: dict[str, object]) -> str:
    """Return a CPU's folder name: vendor, family, model, stepping."""
    cpu = described["cpu"]
    if not isinstance(cpu, dict):
        raise BulkmmError("a machine without a CPU")
    names = ("vendor", "family", "model_number", "stepping", "part")
    return "-".join(str(cpu[name]) for name in names if cpu.get(name) is not None)


def results(place: Path = RESULTS) -> dict[str, Measured]:
    """Return the results of each CPU by the name of its folder."""
    return {
        file.parent.name: Measured(
            Document.read(file),
            [Document.read(one) for one in sorted(file.parent.glob("kernel-*.json"))],
            Document.read(pools)
            if (pools := file.with_name(POPULATE)).exists()
            else None,
        )
        for file in sorted(place.glob("*/bench.json"))
    }


def page(text: str, held: dict[str, Measured]) -> str:
    """Return docs/figures.md with the figures of these CPUs."""
    lines = [line for name, measured in held.items() for line in cpu(name, measured)]
    made = "\n".join(["", *lines]) if lines else NONE
    return GENERATED.sub(lambda _: made, text)


def cpu(name: str, measured: Measured) -> Iterator[str]:
    """Return the section of a CPU."""
    document = measured.bench
    yield from (f"### {document.machine['cpu']['model']} ({name})", "")
    for one in measured.kernels:
        release = needs.series(one.machine["kernel"])
        yield from (f"#### {KERNEL} {release}: its own code and the module's", "")
        yield from shown(one)
        yield from bullets([*table.lines([one]), *goals.missed(one)])
    if pools := measured.populate:
        yield from ("#### Populate", "")
        yield from shown(pools, FULL)
        said = [*grid.controls(pools), *table.meanings(pools, FULL)]
        yield from bullets([*said, *known.footnotes(pools)])
        yield from reached(pools)
    yield from ("#### The core", "")
    yield from bullets([*facts(document), *known.footnotes(document)])
    for kind, title in TITLES.items():
        if (of := part(document, kind)).results:
            yield from (f"#### {title}", "")
            yield from shown(of)
            yield from bullets([*grid.controls(of), *table.meanings(of)])
    yield from ("#### Goals", "")
    yield from reached(document)


def shown(document: Document, show: table.Show = table.DEFAULT) -> list[str]:
    """Return the tables of a document."""
    return [x for one in table.tables([document], show) for x in one.markdown()]


def reached(document: Document) -> Iterator[str]:
    """Return the goals of a document, and where they are missed."""
    yield from goals.sheet(document).markdown()
    yield from bullets(goals.missed(document))


def bullets(lines: list[str]) -> Iterator[str]:
    """Return lines as a list wrapped to the page's width."""
    for line in lines:
        yield from textwrap.wrap(
            line, WIDTH, initial_indent="- ", subsequent_indent="  "
        )
    if lines:
        yield ""


def facts(document: Document) -> list[str]:
    """Return further facts of the machine."""
    held = document.machine["cpu"]
    caches = ", ".join(f"{name} {size}" for name, size in held["caches"].items())
    nodes = document.machine.get("numa_nodes")
    governor = held.get("governor") or "not told"
    said = f"{held['cores']} CPUs, {nodes} memory node(s); caches {caches}"
    return [f"{said}; frequency governor: {governor}."]


def part(document: Document, kind: str) -> Document:
    """Return a document's part for one subject."""
    return replace(
        document,
        results=[r for r in document.results if grid.kind(r.scenario) == kind],
        ratios=[r for r in document.ratios if grid.kind(r.scenario) == kind],
    )


def readme(text: str, held: dict[str, Measured]) -> str:
    """Return README.md with the figures of the CPU that it names."""

    def made(found: re.Match[str]) -> str:
        kernels = held[found["cpu"]].kernels if found["cpu"] in held else []
        if not kernels:
            raise BulkmmError(
                f"README.md names {found['cpu']}, which is not in results"
            )
        return found["begin"] + "\n".join(headlines(kernels)) + "\n"

    return FIGURES.sub(made, text)


def headlines(kernels: list[Document]) -> Iterator[str]:
    """Return the table of the README and the lines below it."""
    yield from summary.headlines(kernels).markdown()
    held = kernels[0].machine["cpu"]
    named = f"{held['model']} (family {held['family']}, model {held['model_number']})"
    releases = " and ".join(str(one.machine["kernel"]) for one in kernels)
    count = kernels[0].run["processes"]
    spread = "(95 % interval)" if spread_of(count) == INTERVAL else "[range]"
    said = (
        f"{named}; {releases}; {count} processes; {spread}, ~ not proven, ! unstable. "
        "[Every figure](docs/figures.md)."
    )
    yield from textwrap.wrap(said, WIDTH, break_on_hyphens=False)


def main() -> None:
    """Write both pages, or print where this machine's result belongs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--folder", action="store_true", help="print the folder of this CPU, no more"
    )
    try:
        if parser.parse_args().folder:
            print(RESULTS.relative_to(ROOT) / folder(machine.describe()))
            return
        held = results()
        for file, make in ((PAGE, page), (README, readme)):
            file.write_text(make(file.read_text(encoding="utf-8"), held), "utf-8")
    except (OSError, BulkmmError) as error:
        sys.exit(f"figures: {error}")


if __name__ == "__main__":
    main()
