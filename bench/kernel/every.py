# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab kernels``: check the kernels of the archive natively.

Nothing is booted: see bench.kernel. A kernel that fails gets a row saying so.
"""

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from pathlib import Path

from bench.kernel import measure
from bench.kernel.archive import Archive, Offer, select_newest
from bulkmm.control import requirements
from bulkmm.results import conditions, result_tables, stats
from bulkmm.results.model import Document
from bulkmm.results.table import Table, print_lines
from bulkmm.shell import files
from bulkmm.shell.errors import BulkmmError, Exit, UsageError
from bulkmm.shell.progress import Progress
from lab.choices import compile_pattern, need_places
from lab.commands import page
from lab.machine import build, cached, root
from lab.machine.arch import X86_64
from lab.machine.kernels import Kernel, split_release
from lab.paths import (
    PROJECT,
    content_key,
    lock_cache,
    make_scratch,
    need_sources,
    protect_cache,
)

SIZES = {
    "memmap": 3 << 30,
    "clear": 128 << 20,
    "copy": 64 << 20,
    "vmap": 100 << 20,
}
BASE = "stock"
# older kernels lack the functions of these paths, or have them with other types
SINCE = {"alloc": "7.2", "prezero": "6.12"}
HEADINGS = ("kernel", "module", "prototypes", *SIZES)


@dataclass
class Row:
    """The results for one kernel."""

    release: str
    key: str  # of the sources it was made from
    module: str = "built"
    prototypes: str = ""
    paths: dict[str, str] = field(default_factory=dict)
    # by its BTF: structs, and the prototypes of functions hooked or called
    types: dict[str, int | str] = field(default_factory=dict)
    ok: bool = True
    cpu: str = ""

    def cells(self) -> list[str]:
        """Return the row's cells in heading order."""
        paths = (self.paths.get(name, "") for name in SIZES)
        cells = (self.release, self.module, self.prototypes, *paths)
        return [cell.replace("|", "/") for cell in cells]  # which would end a cell


def check_archive(args: argparse.Namespace) -> int:
    """Check the kernels of the archive one after the other."""
    need_places(args)
    if args.count is not None and args.count < 1:
        raise UsageError(f"--count {args.count}: give 1 or more")
    if args.only and args.all:
        raise UsageError("--only searches all releases: give it without --all")
    pattern = compile_pattern(args.only)
    need_sources()
    cached.need_root()
    progress = Progress()
    with ExitStack() as stack:
        with lock_cache(progress) as cache:
            archive = Archive(root.ensure_root(cache, progress))
            archive.update(progress)
            offers = archive.offers()
            stack.enter_context(protect_cache(cache))  # until the last was looked at
        candidates = offers if args.only or args.all else select_newest(offers)
        selected = [one for one in candidates if pattern.search(one.release)]
        if not selected:
            raise UsageError(
                f"--only {args.only} is in no release, such as {offers[0].release}"
            )
        selection = selected[: args.count]
        return _check_kernels(args, archive, selection, len(offers), progress)


def _check_kernels(
    args: argparse.Namespace,
    archive: Archive,
    selection: list[Offer],
    offered: int,
    progress: Progress,
) -> int:
    if args.list:
        for offer in selection:
            print(offer.release, "" if offer.headers else "(no headers)")
        return Exit.OK
    rows: list[Row] = []
    whole: dict[str, Row] = {}
    if args.output and not args.all:  # beside what is there of other releases
        whole = {row.release: row for row in read_rows(page.read_part(args.output))}
    with make_scratch("bulkmm-kernels-") as scratch_dir:
        to = args.json_dir or scratch_dir
        for offer in progress.count_items("kernel", selection, attrgetter("release")):
            row = read_row(offer, to) if args.resume else None
            rows.append(row or look_at(archive, offer, to, progress))
            whole[offer.release] = rows[-1]
            if args.output:  # keeps partial results if interrupted
                page.write_page(args.output, format_markdown(whole.values(), offered))
    Table(HEADINGS, [row.cells() for row in rows]).print()
    print_lines(list_updates(rows))
    print(summarise_rows(rows, offered))
    return Exit.OK if all(row.ok for row in rows) else Exit.VERDICT


def hash_sources() -> str:
    """Return a hash of the sources of module, harness and judges."""
    native = [*(PROJECT / "bench").glob("*/*.[ch]")]
    python = [*(PROJECT / "bench" / "kernel").glob("*.py"), Path(__file__)]
    python.append(Path(stats.__file__))
    return content_key([*build.list_sources(), *native, *python])


def read_row(offer: Offer, to: Path) -> Row | None:
    """Return the row of an earlier run, if the sources are the same."""
    record = files.read_json(to / f"{offer.release}.json")
    if record.get("key") != hash_sources():
        return None
    row = Row(**record)
    return row if row.ok else None


def read_rows(markdown: str) -> Iterator[Row]:
    """Yield the rows of a page, without what only files have: key and types."""
    match = re.search(r"^CPU: (.*)\.$", markdown, re.MULTILINE)
    cpu = match[1] if match else ""
    rows = page.read_rows(markdown, HEADINGS)
    next(rows, None)
    for release, module, prototypes, *cells in rows:
        paths = dict(zip(SIZES, cells, strict=True))
        row = Row(release.strip("`"), "", module, prototypes, paths, cpu=cpu)
        row.ok = not any(cell.startswith("FAILED") for cell in row.cells()) and all(
            finding.startswith(("all ", "without "))
            for finding in prototypes.split("; ")
        )
        yield row


def look_at(archive: Archive, offer: Offer, to: Path, progress: Progress) -> Row:
    """Fetch, build, run and write the row; keep only the row."""
    from bench.kernel import vmlinux

    row = Row(offer.release, hash_sources())
    # its own directory: another command may be checking kernels too
    with make_scratch("work-", archive.home) as work:
        try:
            image = work / "vmlinuz"
            with lock_cache(progress), archive.fetched((offer.image,)) as debs:
                image.write_bytes(vmlinux.boot_file(debs[0]))
            _prototypes(row, image)
            module = _module(archive, offer, row, work, progress)
            _run(row, image, module, progress)
        except BulkmmError as error:
            row.ok = False
            row.module = f"FAILED: {_summarize_error(error)}"
    text = json.dumps(asdict(row), indent=1) + "\n"
    files.write_file(to / f"{offer.release}.json", text, "the row")
    return row


def _summarize_error(error: BulkmmError) -> str:
    """Return an error's first line and, from a compiler, its first complaint."""
    first, *more = str(error).splitlines()
    complaints = [line.strip() for line in more if "error:" in line or "***" in line]
    return " ".join([first, *complaints[:1]])


def _prototypes(row: Row, image: Path) -> None:
    from bench.kernel import process

    _, types = process.read_kernel(image)
    path_table, series = (
        requirements.read_table(X86_64.name),
        requirements.series_of(row.release),
    )
    findings, names = [], 0
    for path in path_table.paths:
        against = types.list_obstacles(path, path_table.prototypes)
        without, _ = types.compare_prototypes(path.optional, path_table.prototypes)
        names += len(path.hooks) + len(path.calls)
        if against and not requirements.is_at_least(
            series, SINCE.get(path.name, series)
        ):
            findings.append(f"without {path.name}")
            continue
        row.ok &= not against
        findings += [*against, *(f"without {name}" for name in without)]
    row.prototypes = "; ".join(findings) or f"all {names}"
    prototypes = {
        one: " or ".join(types.prototypes_of(one)) for one in path_table.prototypes
    }
    row.types = {**process.describe_layout(types), **prototypes}


def _module(
    archive: Archive, offer: Offer, row: Row, work: Path, progress: Progress
) -> Path | None:
    if not offer.headers:
        row.module = "no headers"
        return None
    try:
        with lock_cache(progress), archive.installed(offer):
            kernel = Kernel(archive.root, offer.release)
            build.run_make(kernel, work / "built", [build.ANY_KERNEL])
    except BulkmmError as error:
        row.ok = False
        row.module = f"FAILED: {_summarize_error(error)}"
        return None
    return work / "built" / "module" / "bulkmm.ko"


def _run(row: Row, image: Path, module: Path | None, progress: Progress) -> None:
    from bench.kernel import process

    with process.prepare_kernel(image, module, "host", progress) as ready:
        for name, size in SIZES.items():
            job = measure.Job(image, module, rounds=1, processes=2, size=size)
            try:
                document = measure.measure_prepared(ready, job, [name])
            except BulkmmError as error:
                row.ok = False
                row.paths[name] = f"FAILED: {_summarize_error(error)}"
                continue
            row.cpu = conditions.cpu_name(document)
            row.paths[name] = _format_cell(name, document)
            row.ok &= not document.failed


def _format_cell(name: str, document: Document) -> str:
    if wrong := ", ".join(check.name for check in document.failed):
        return f"FAILED: differs: {wrong}"
    if not any(one.variant in measure.PICKED[name] for one in document.results):
        return "stock only"
    if conditions.is_busy(document):
        return "="
    ratios = [
        one.ratio
        for one in document.ratios
        if one.base == BASE and one.variant in measure.PICKED[name]
    ]
    low, high = min(ratios), max(ratios)
    return f"= {low:.2f}{conditions.DASH}{high:.2f}{result_tables.TIMES}"


def format_markdown(rows: Iterable[Row], offered: int) -> list[str]:
    """Return the generated part of the page; the run may still be incomplete."""
    rows = _sort_rows(rows)
    names = {name for row in rows for name in row.cpu.split(" and ") if name}
    cpus = " and ".join(sorted(names))
    cells = [(f"`{name}`", *rest) for name, *rest in (row.cells() for row in rows)]
    lines = Table(HEADINGS, cells).markdown()
    intro = [f"CPU: {cpus}.", summarise_rows(rows, offered)]
    return [*intro, "", *lines, ""]


def _sort_rows(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: split_release(row.release))


def list_updates(rows: Iterable[Row]) -> list[str]:
    """Return what each release has other than the one before it, line by line."""
    before: dict[tuple[str, ...], Row] = {}
    changes, unchanged = [], 0
    for row in _sort_rows(rows):
        line = (
            requirements.series_of(row.release),
            *re.findall("-(?:cloud|rt)-", row.release),
        )
        if row.types and (old := before.get(line)):
            differ = [
                f"{name} {old.types.get(name)}, then {value}"
                for name, value in row.types.items()
                if old.types.get(name) != value
            ]
            unchanged += not differ
            releases = f"{old.release}, {row.release}"
            changes += [f"{releases}: {'; '.join(differ)}"] if differ else []
        if row.types:
            before[line] = row
    return [*changes, f"pairs that do not differ: {unchanged}"]


def summarise_rows(rows: Iterable[Row], offered: int) -> str:
    """Return how many passed."""
    rows = list(rows)
    with_module = sum(row.module == "built" for row in rows)
    return (
        f"Kernels: {len(rows)} of {offered} offered; with the module: "
        f"{with_module}; without a finding: {sum(row.ok for row in rows)}."
    )
