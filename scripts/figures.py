# SPDX-License-Identifier: GPL-2.0-only
"""Write the native figures of docs/figures.md and README.md from results/."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from msgspec.structs import replace

from bulkmm import facts as known
from bulkmm import grid, machine, table
from bulkmm.bench import goals, submit
from bulkmm.control import needs
from bulkmm.control import text as words
from bulkmm.errors import BulkmmError
from bulkmm.lab.commands.page import GENERATED
from bulkmm.native import history
from bulkmm.results import INTERVAL, Document, spread_of
from bulkmm.sheet import Sheet
from bulkmm.worth import gain

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
HOTPLUG = ROOT / "docs" / "hotplug.md"
# Text between these marks is generated, for the CPU that they name.
FIGURES = re.compile(
    r"(?P<begin><!-- (?P<what>waits|figures): begin (?P<cpu>\S+) -->\n)"
    r".*?(?=<!-- (?P=what): end -->)",
    re.DOTALL,
)
TITLES = {
    "memmap": "Stamping",
    "clear": "Clearing",
    "copy": "Copying",
    "first-use": "First use",
}
WIDTH = 100
KERNEL = "Linux"
POPULATE, HISTORY = "populate.json", "history.json"
NONE = "No CPU has been measured with this code yet: `make figures`.\n"


@dataclass(frozen=True)
class Measured:
    """All results of a CPU."""

    bench: Document
    kernels: list[Document] = field(default_factory=list)  # one per kernel
    populate: Document | None = None
    history: Document | None = None


def results(place: Path = RESULTS) -> dict[str, Measured]:
    """Return the results of each CPU by the name of its folder."""
    return {
        file.parent.name: Measured(
            Document.read(file),
            [Document.read(one) for one in sorted(file.parent.glob("kernel-*.json"))],
            *(_read(file.with_name(name)) for name in (POPULATE, HISTORY)),
        )
        for file in sorted(place.glob("*/bench.json"))
    }


def _read(file: Path) -> Document | None:
    return Document.read(file) if file.exists() else None


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
    document = measured.bench
    yield from (f"### {document.machine['cpu']['model']} ({name})", "")
    if kernels := measured.kernels:
        yield from ("#### Each kernel's own code and the module's", "")
        yield from table.kernels(kernels, ways=table.OURS).markdown()
        yield from bullets([about(one) for one in kernels])
    if measured.history:
        yield from ("#### Kernel after kernel", "")
        yield from history.sheet(measured.history).markdown()
        yield from bullets(history.notes(measured.history))
    if pools := measured.populate:
        yield from ("#### Populate", "")
        yield from shown(pools, known.footnotes(pools))
        yield from goals.sheet(pools).markdown()
    yield from ("#### The core", "")
    yield from bullets([*facts(document), *known.footnotes(document)])
    for kind, title in TITLES.items():
        if (of := part(document, kind)).results:
            yield from (f"#### {title}", "")
            yield from shown(of, [])
    yield from ("#### Goals", "")
    yield from goals.sheet(document).markdown()


def about(kernel: Document) -> str:
    """Return what is to be known of a kernel's figures, and the goals they miss."""
    said = [line.removesuffix(".") for line in grid.controls(kernel)]
    said += [line.removesuffix(".") for line in known.footnotes(kernel)]
    if missed := [line.partition(": ")[2] for line in goals.missed(kernel)]:
        said.append(f"Goals not met: {'; '.join(missed)}")
    return ". ".join(said) + "."


def shown(document: Document, footnotes: list[str]) -> Iterator[str]:
    """Return the tables of a document, and the lines below them."""
    for one in table.tables([document]):
        yield from one.markdown()
    yield from bullets(
        [*grid.controls(document), *table.meanings(document), *footnotes]
    )


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
    governor = held.get("governor") or "unknown"
    said = f"{held['cores']} CPUs, {nodes} memory node(s); caches {caches}"
    return [f"{said}; frequency governor: {governor}."]


def part(document: Document, kind: str) -> Document:
    """Return a document's part for one subject."""
    return replace(
        document,
        results=[r for r in document.results if grid.kind(r.scenario) == kind],
        ratios=[r for r in document.ratios if grid.kind(r.scenario) == kind],
    )


def ratios(held: dict[str, Measured]) -> str:
    """Return what "bulkmm worth" knows of each CPU, by kernel series."""
    found = {
        name: {
            needs.series(one.machine["kernel"]): {
                kind: asdict(figure) for kind, figure in gain.of(one).items()
            }
            for one in measured.kernels
        }
        for name, measured in held.items()
        if measured.kernels
    }
    text = json.dumps(found, indent=1, sort_keys=True)
    # a line for each kind of calls
    return re.sub(r"\{[^{}]+\}", lambda one: " ".join(one[0].split()), text) + "\n"


def readme(text: str, held: dict[str, Measured]) -> str:
    """Return README.md with the figures of the CPU that it names."""

    def made(found: re.Match[str]) -> str:
        kernels = held[found["cpu"]].kernels if found["cpu"] in held else []
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
# a kernel's series, and what it needs without the module and with it
GROWN = re.compile(
    r"\(`hotplug-kmem-32g`, (\d+\.\d+)\..*?\n\| 64 GiB \| (\S+ M) \| (\S+ M) \|",
    re.DOTALL,
)


def waits(kernels: list[Document]) -> Iterator[str]:
    """Return the table of what people wait for, and the lines below it."""
    headings = ["what takes long", "path"]
    for one in kernels:
        headings += [f"{KERNEL} {needs.series(one.machine['kernel'])}", "with bulkmm"]
    rows = [
        [f"{job.what}{' ¹' if job.calculated else ''}", f"`{job.path}`", *cells]
        for job in JOBS
        if any(cells := [cell for one in kernels for cell in _times(job, one)])
    ]
    what = "64 GiB of memory are plugged in ²"
    rows.append([what, "`hotplug`", *(cell for one in kernels for cell in _grown(one))])
    yield from Sheet(headings, rows).markdown()
    said = (
        "¹ Calculated from the GB/s of this CPU: one thread, and nothing around it. "
        "² Counted in an emulated guest ([how](docs/hotplug.md#what-it-is-worth)): "
        "no time. Everything else is measured."
    )
    yield from textwrap.wrap(said, WIDTH, break_on_hyphens=False)
    yield ""
    yield from textwrap.wrap(bound(kernels), WIDTH, break_on_hyphens=False)


def _times(job: Job, document: Document) -> list[str]:
    """Return the time of the kernel's own code, and the module's."""
    arms = [document.arms.get((job.scenario, v)) for v in ("stock", "bulkmm")]
    return [
        words.duration(one.median * (job.calculated or one.bytes) / one.bytes)
        if one and all(arms)
        else ""
        for one in arms
    ]


def _grown(document: Document) -> list[str]:
    """Return the instructions of a hotplug, of the kernel that they were counted on."""
    grown = GROWN.search(HOTPLUG.read_text(encoding="utf-8"))
    if not grown:
        raise BulkmmError(f"{HOTPLUG.name} has no row of 64 GiB")
    series, *counts = grown.groups()
    here = needs.series(document.machine["kernel"]) == series
    return [f"{count} instructions" if here else "" for count in counts]


def bound(kernels: list[Document]) -> str:
    """Return how near the module comes to what the CPU can do."""

    def reached(scenario: str) -> str:
        shares = []
        for one in kernels:
            limit, ours = (one.arms[scenario, v] for v in ("limit", "bulkmm"))
            shares.append(100 * limit.median / ours.median)
        low, high = (f"{share:.0f}" for share in (min(shares), max(shares)))
        return f"{low} %" if low == high else f"{low} to {high} %"

    return (
        f"How near that is to the limit: struct pages are written at "
        f"{reached('pmem-fsdax-100g')}, and huge pages populated at "
        f"{reached('thp-2m-populate')}, of what the CPU's fastest stores of the same "
        "bytes do."
    )


def headlines(kernels: list[Document]) -> Iterator[str]:
    """Return the table of the README and the lines below it."""
    yield from table.headlines(kernels).markdown()
    releases = ", ".join(str(one.machine["kernel"]) for one in kernels)
    count = kernels[0].run["processes"]
    spread = "(95 % interval)" if spread_of(count) == INTERVAL else "[range]"
    said = (
        f"{known.cpu_name(kernels[0])}; {releases}; {count} processes; {spread}, "
        "~ not proven, ! unstable. [Every figure](docs/figures.md)."
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
