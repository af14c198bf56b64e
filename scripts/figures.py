# SPDX-License-Identifier: GPL-2.0-only
"""Write the native figures of docs/figures.md and README.md from results/."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path

from bulkmm import facts, grid, machine, table
from bulkmm.bench import goals, submit
from bulkmm.control import needs, text
from bulkmm.errors import BulkmmError
from bulkmm.native import history
from bulkmm.results import INTERVAL, Document, spread_of
from bulkmm.sheet import Sheet
from bulkmm.worth import gain

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
# Text between these marks is generated; in the README, for the CPU that it names.
GENERATED = re.compile(
    r"(?<=<!-- generated: begin -->\n).*?(?=<!-- generated: end -->)", re.DOTALL
)
FIGURES = re.compile(
    r"(?P<begin><!-- (?P<what>waits|figures): begin (?P<cpu>\S+) -->\n)"
    r".*?(?=<!-- (?P=what): end -->)",
    re.DOTALL,
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
        if goals_of_it := goals.sheet(document).rows:
            rows += [(name, *row) for row in goals_of_it if row[2].startswith("not")]
            met = sum(row[2].startswith("met") for row in goals_of_it)
            said.append(f"{name} {met} of {len(goals_of_it)}")
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
                scenario: asdict(figure) for scenario, figure in gain.of(one).items()
            }
            for one in kernels
        }
        for name, measured in held.items()
        if (kernels := those(measured, KERNELS))
    }
    said = json.dumps(found, indent=1, sort_keys=True)
    # a line for each scenario
    return re.sub(r"\{[^{}]+\}", lambda one: " ".join(one[0].split()), said) + "\n"


def readme(text: str, held: dict[str, Measured]) -> str:
    """Return README.md with the figures of the CPU that it names."""

    def made(found: re.Match[str]) -> str:
        kernels = those(held.get(found["cpu"], {}), KERNELS)
        if not kernels:
            raise BulkmmError(
                f"README.md names {found['cpu']}, which is not in results"
            )
        make = waits if found["what"] == "waits" else headlines
        return found["begin"] + "\n".join(make(kernels)) + "\n"

    return FIGURES.sub(made, text)


@dataclass(frozen=True)
class Job:
    """Something that people wait for: work of a scenario, in bytes of its kind."""

    what: str
    scenario: str
    path: str
    calculated: int = 0  # bytes, from the scenario's rate; 0: measured as it is


JOBS = (
    Job(
        "a guest starts: 64 GiB of huge pages are populated",
        *("thp-2m-populate", "clear", 64 << 30),
    ),
    Job("a device of 100 GiB comes up", "pmem-fsdax-100g", "memmap"),
    Job(
        "a process with 8 GiB of hugetlb pages writes after fork()",
        *("copy-2m", "copy", 8 << 30),
    ),
)


def waits(kernels: list[Document]) -> Iterator[str]:
    """Return the table of what people wait for, and the lines below it."""
    headings = ["what takes long", "path"]
    for one in kernels:
        headings += [f"Linux {needs.series(one.machine['kernel'])}", "with bulkmm"]
    rows = [
        [f"{job.what}{' ¹' if job.calculated else ''}", f"`{job.path}`", *cells]
        for job in JOBS
        if any(cells := [cell for one in kernels for cell in _times(job, one)])
    ]
    yield from Sheet(headings, rows).markdown()
    said = "¹ Calculated from the GB/s of this CPU: one thread, and nothing around it."
    yield from textwrap.wrap(f"{said} Everything else is measured.", WIDTH)


def _times(job: Job, document: Document) -> list[str]:
    """Return the time of the kernel's own code, and the module's."""
    arms = [document.arms.get((job.scenario, v)) for v in ("stock", "bulkmm")]
    return [
        text.duration(one.median * (job.calculated or one.bytes) / one.bytes)
        if one and all(arms)
        else ""
        for one in arms
    ]


def headlines(kernels: list[Document]) -> Iterator[str]:
    """Return the table of the README and the lines below it."""
    yield from table.headlines(kernels).markdown()
    releases = ", ".join(str(one.machine["kernel"]) for one in kernels)
    count = kernels[0].run["processes"]
    spread = "(95 % interval)" if spread_of(count) == INTERVAL else "[range]"
    said = (
        f"{facts.cpu_name(kernels[0])}; {releases}; {count} processes; {spread}, "
        "~ not proven, ! unstable. Of limit: of the speed of the CPU's fastest stores "
        "of the same bytes. [Every figure](docs/figures.md)."
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
