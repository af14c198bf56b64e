# SPDX-License-Identifier: GPL-2.0-only
"""Write the native figures of docs/figures.md and README.md from results/."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

from bulkmm import facts, grid, machine, table
from bulkmm.bench import goals, submit
from bulkmm.control import needs
from bulkmm.errors import BulkmmError
from bulkmm.lab.commands.page import GENERATED
from bulkmm.native import history
from bulkmm.results import Document
from bulkmm.sheet import Sheet
from bulkmm.worth import gain

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
# Text between these marks is generated; in the README, for the CPU that it names.
FIGURES = re.compile(
    r"(<!-- figures: begin (\S+) -->\n).*?(?=<!-- figures: end -->)", re.DOTALL
)
WIDTH = 100
KERNELS = "kernel-*"
NONE = "No CPU has been measured with this code yet: `make figures`.\n"
Measured = dict[str, Document]  # all results of a CPU, by the name of the file
# for each kind of result, its tables; "bulkmm show" has more
SECTIONS: dict[str, tuple[str, Callable[[list[Document]], Iterable[Sheet]]]] = {
    "Each kernel's own code and the module's": (
        KERNELS,
        lambda held: [table.kernels(held, ways=table.OURS)],
    ),
    "Kernel after kernel": ("history", lambda held: [history.sheet(*held)]),
    "Populate": ("populate", lambda held: table.tables(held)[:1]),
    "The core": ("bench", lambda held: grid.by_size(*held)),
}


def results(place: Path = RESULTS) -> dict[str, Measured]:
    """Return the results of each CPU by the name of its folder."""
    found: dict[str, Measured] = {}
    for file in sorted(place.glob("*/*.json")):
        found.setdefault(file.parent.name, {})[file.stem] = Document.read(file)
    return found


def those(measured: Measured, pattern: str) -> list[Document]:
    """Return the results whose names match a pattern."""
    return [one for name, one in measured.items() if fnmatch(name, pattern)]


def take(file: Path, place: Path = RESULTS) -> Path:
    """Put a result into the folder of its CPU; return where it is."""
    document = submit.anonymous(Document.read(file))
    if (few := document.run.get("processes", 0)) < submit.LEAST:
        raise BulkmmError(f"{file}: n = {few}, {submit.LEAST} needed for an interval")
    name = machine.cpu_name(document.machine["cpu"])
    if not re.fullmatch(r"\w[\w-]*", name):
        raise BulkmmError(f"{file}: the CPU is no name of a folder: {name}")
    to = place / name / submit.file_name(document)
    to.parent.mkdir(exist_ok=True)
    document.write(to)
    return to


def page(text: str, held: dict[str, Measured]) -> str:
    """Return docs/figures.md with the figures of these CPUs."""
    lines = [line for name, measured in held.items() for line in cpu(name, measured)]
    made = "\n".join(["", *lines]) if lines else NONE
    return GENERATED.sub(lambda _: made, text)


def cpu(name: str, measured: Measured) -> Iterator[str]:
    """Return the section of a CPU."""
    its = next(iter(measured.values())).machine
    yield from (f"### {its['cpu']['model']} ({name})", "")
    caches = ", ".join(f"{n} {size}" for n, size in its["cpu"]["caches"].items())
    governor = its["cpu"].get("governor") or "unknown"
    said = f"{its['cpu']['cores']} CPUs, {its.get('numa_nodes')} memory node(s); caches"
    yield from wrapped(f"{said} {caches}; frequency governor: {governor}.")
    for title, (pattern, sheets) in SECTIONS.items():
        if shown := those(measured, pattern):
            yield from (f"#### {title}", "")
            for sheet in sheets(shown):
                yield from sheet.markdown()
            for one in shown:
                yield from wrapped(about(one))
    yield from ("#### Goals that are not met", "")
    yield from missed(measured)


def about(document: Document) -> str:
    """Return what is to be known of a result's figures."""
    if document.run.get("scenario") == submit.HISTORY:
        return " ".join(history.notes(document)[:-1])  # the page has the legend
    return " ".join([*grid.controls(document), *facts.footnotes(document)])


def missed(measured: Measured) -> Iterator[str]:
    """Return the goals that are not met, and how many there are."""
    rows, said = [], []
    for name, document in measured.items():
        if every := goals.sheet(document).rows:
            rows += [(name, *row) for row in every if row[2].startswith("not")]
            met = sum(row[2].startswith("met") for row in every)
            said.append(f"{name} {met} of {len(every)}")
    yield from Sheet(("result", *goals.HEADINGS), rows).markdown()
    yield from wrapped(f"Met: {', '.join(said)}.")


def wrapped(line: str) -> Iterator[str]:
    """Return a paragraph of the page's width."""
    yield from textwrap.wrap(line, WIDTH, break_on_hyphens=False)
    yield ""


def ratios(held: dict[str, Measured]) -> str:
    """Return what "bulkmm worth" knows of each CPU, by kernel series."""
    found = {
        name: {
            needs.series(one.machine["kernel"]): {
                kind: asdict(figure) for kind, figure in gain.of(one).items()
            }
            for one in kernels
        }
        for name, measured in held.items()
        if (kernels := those(measured, KERNELS))
    }
    text = json.dumps(found, indent=1, sort_keys=True)
    # a line for each kind of calls
    return re.sub(r"\{[^{}]+\}", lambda one: " ".join(one[0].split()), text) + "\n"


def readme(text: str, held: dict[str, Measured]) -> str:
    """Return README.md with the figures of the CPU that it names."""

    def made(found: re.Match[str]) -> str:
        begin, cpu = found.groups()
        if kernels := those(held.get(cpu, {}), KERNELS):
            return "\n".join([begin.rstrip(), *headlines(kernels), ""])
        raise BulkmmError(f"README.md names {cpu}, which is not in results")

    return FIGURES.sub(made, text)


def headlines(kernels: list[Document]) -> Iterator[str]:
    """Return the table of the README and the lines below it."""
    yield from table.headlines(kernels).markdown()
    releases = ", ".join(str(one.machine["kernel"]) for one in kernels)
    said = (
        f"{facts.cpu_name(kernels[0])}; {releases}; {kernels[0].run['processes']} "
        "processes, medians; ~ not proven, ! unstable. ¹ Calculated from the GB/s of "
        "this CPU: one thread, and nothing around it. Everything else is measured. "
        "[Every figure](docs/figures.md), with intervals and how near the CPU's limit."
    )
    yield from textwrap.wrap(said, WIDTH, break_on_hyphens=False)


def main() -> None:
    """Write both pages, or print where this machine's result belongs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--folder", action="store_true", help="print the folder of this CPU, no more"
    )
    parser.add_argument(
        "--take",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="put results that somebody sent into the folder of their CPU first",
    )
    try:
        args = parser.parse_args()
        for file in args.take or ():
            take(file)
        if args.folder:
            print(RESULTS.relative_to(ROOT) / machine.cpu_name())
            return
        held = results()
        for file, make in ((PAGE, page), (README, readme)):
            file.write_text(make(file.read_text(encoding="utf-8"), held), "utf-8")
        gain.KEPT.write_text(ratios(held), "utf-8")
    except (OSError, BulkmmError) as error:
        sys.exit(f"figures: {error}")


if __name__ == "__main__":
    main()
