# SPDX-License-Identifier: GPL-2.0-only
"""Results of "bench kernel" as what people wait for: README, terminal and page.

A line is a sentence, and what the kernel's function takes for it: the kernel's own code
and the module's, on the CPU at hand; and the least and the most on all CPUs measured.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bulkmm.control import requirements
from bulkmm.control.format import format_duration, format_size
from bulkmm.results import conditions, host, job_words, result_tables, size_grid
from bulkmm.results.conditions import DASH
from bulkmm.results.model import Document, Ratio, Result
from bulkmm.results.result_tables import MODULE_ARMS, TIMES
from bulkmm.results.table import Table, print_lines
from bulkmm.shell.size import GIB, MIB
from bulkmm.worth import gain
from bulkmm.worth.gain import GainsJson

# made from results/ by scripts/figures.py
WHOLE_FILE = Path(__file__).with_name("whole.json")
ARMS = MODULE_ARMS[:2]
LOSS = 0.98  # of the kernel's own speed: below, a scenario is named as slower


class Headline(NamedTuple):
    """A sentence, and the results that it is about."""

    title: str
    fields: dict[str, Any]  # of the results
    kind: str  # of worth's figures, and the scenario's place there
    place: int
    calculated: int = 0  # bytes, if the time is calculated from the rate measured
    # processes that did all of it, by their way in "bench populate"
    processes: tuple[tuple[str, str], ...] = ()
    # of what the function did for these, if not "fields"
    whole: dict[str, Any] | None = None


COLD = {"placement": "", "use": ""}
CLEAR = {"operation": "clear", "memory": "thp", "size": 2 * MIB, "placement": ""}
DEVICE = {"operation": "memmap", **COLD}
# folio_zero_user() is measured with pages that are called "thp": it does the same to
# hugetlb pages, and is all that clears those
POPULATE = {**CLEAR, "use": "populate"}
HEADLINES = (
    Headline(
        "a guest starts, a pinned pool is filled: 64 GiB, hugetlb ¹",
        *(POPULATE, "clear", 1, 64 * GIB),
        (
            ("qemu-1", "QEMU's prealloc, one thread,"),
            ("qemu-2", "with two threads"),
            ("bulkmm-2", "libbulkmm with two threads"),
        ),
    ),
    Headline(
        "64 GiB of hugetlb pages are touched, one by one ¹",
        *({**CLEAR, "use": ""}, "clear", 0, 64 * GIB),
        (("touch", "touching each page's first byte (above: any of its bytes)"),),
        whole=POPULATE,  # these begin at the first byte as well
    ),
    Headline(
        "a device of {} comes up, fsdax",
        *({**DEVICE, "memory": "pmem-fsdax"}, "memmap", 1),
    ),
    Headline(
        "a device of {} comes up, devdax 2 MiB",
        *({**DEVICE, "memory": "pmem-devdax"}, "memmap", 0),
    ),
    Headline(
        "8 GiB of hugetlb pages are written after fork() ¹",
        *({"operation": "copy", "size": 2 * MIB, **COLD}, "copy", 2, 8 * GIB),
        (("fork", "writing after fork()"),),
    ),
    Headline(
        "a driver maps a buffer of {} in blocks of 1 MiB",
        *({"operation": "vmap", "memory": "order8", **COLD}, gain.LARGE, 1),
    ),
)
SCOPE = (
    "Each time is of the kernel's function alone, in one thread; what is around it "
    "takes as long as before."
)


# see HEADLINES: what is measured is called thp
NO_POOL = "in 2 MiB pages of no pool: hugetlb has the same functions"


def match_headline(result: Result) -> Headline | None:
    """Return the sentence that a result is about."""
    return next((line for line in HEADLINES if result.matches(line.fields)), None)


def make_tables(documents: Sequence[Document]) -> Iterator[Table]:
    """Yield a table for each CPU: a row for each sentence, a column for each kernel.

    One kernel's times and ratios have columns of their own. None: these are not results
    of a kernel's own code beside the module's.
    """
    by_cpu: dict[str, list[Document]] = {}
    for document in filter(_is_of_module, documents):
        by_cpu.setdefault(conditions.describe_cpu(document), []).append(document)
    for cpu, kernels in by_cpu.items():
        if rows := list(_make_rows(kernels)):
            yield Table(_list_headings(cpu, kernels), rows)


def _list_headings(cpu: str, documents: Sequence[Document]) -> list[str]:
    names = [f"Linux {_name_series(document)}" for document in documents]
    if len(documents) > 1:
        return [cpu, *(f"{name}: stock → bulkmm" for name in names), "CPUs"]
    return [f"{cpu}, {names[0]}", "stock", "bulkmm", "faster", "CPUs"]


def _make_rows(documents: Sequence[Document]) -> Iterator[list[str]]:
    """Yield the rows of a CPU's table."""
    leading = list(_lead(documents))
    calculated = {r.scenario: line.calculated or r.bytes for line, r in leading}
    whole = result_tables.make_kernel_table([*documents], ARMS, calculated)
    cells = {row[0]: row[2:] for row in reversed(whole.rows)}
    figures = _read_cpus(documents)
    for line, result in leading:
        if entries := cells.get(result.scenario):
            texts = [_strip_spread(text) for text in entries]
            if len(documents) > 1:
                pairs = zip(texts[::2], texts[1::2], strict=True)
                texts = [", ".join(filter(None, pair)) for pair in pairs]
            else:
                texts = [*texts[0].split(" → "), texts[1]]
            title = line.title.format(format_size(result.size))
            yield [title, *texts, _format_span(line, figures)]


def _read_cpus(documents: Sequence[Document]) -> list[list[GainsJson]]:
    """Return the kept figures of each CPU for the kernels of these documents."""
    series = [_name_series(document) for document in documents]
    return [
        [by_series[name] for name in series if name in by_series]
        for by_series in gain.read_cpus().values()
    ]


def _name_series(document: Document) -> str:
    return requirements.series_of(conditions.get_kernel(document))


def _is_of_module(document: Document) -> bool:
    """Return whether a result is of a kernel's own code beside the module's."""
    return size_grid.is_of_kernel(document) and size_grid.AGAINST not in document.run


def _lead(documents: Sequence[Document]) -> Iterator[tuple[Headline, Result]]:
    """Yield the sentences in order, each with the newest kernel's scenario."""
    results = {r.scenario: r for d in reversed(documents) for r in d.results}
    for line in HEADLINES:
        for result in results.values():
            if result.matches(line.fields):
                yield line, result


def _strip_spread(cell: str) -> str:
    """Return a ratio and its marks, without interval and limit."""
    return re.sub(r" [(\[].*?[)\]]|;.*", "", cell)


def _format_span(line: Headline, cpus: Sequence[Sequence[GainsJson]]) -> str:
    """Return the least and the most on the CPUs with figures, and their number.

    ``cpus``: the kept figures of each, by kernel.
    """
    whole = len(gain.SCENARIOS[line.kind])
    lists = [
        [kernel.get(line.kind, {}).get("ratios", ()) for kernel in kernels]
        for kernels in cpus
    ]
    spans = [
        [ratios[line.place] for ratios in kernels if len(ratios) == whole]
        for kernels in lists
    ]
    ratios = [ratio for span in spans for ratio in span]
    return f"{_format_range(ratios)} ({sum(map(bool, spans))})" if ratios else ""


def list_ratios(document: Document) -> Iterator[tuple[str, Ratio]]:
    """Yield the sentences of a kernel's own code beside the module's, with ratios."""
    for line, result in _lead([document]) if _is_of_module(document) else ():
        for ratio in document.ratios:
            names = (ratio.scenario, ratio.base)
            if names == (result.scenario, size_grid.STOCK) and ratio.variant in ARMS:
                yield line.title.format(format_size(result.size)), ratio


def describe_scope(documents: Sequence[Document]) -> str:
    """Return what the rows are of, and how much each was measured with."""
    rows = [one for document in documents for one in _lead([document])]
    texts = [SCOPE, *describe_amounts(documents)]
    if any(_format_span(line, _read_cpus(documents)) for line, _ in rows):
        devices = any(line.kind == "memmap" for line, _ in rows)
        texts.append(
            "The last column has the least and the most median of the kernels in this "
            f"table{', for devices of 100 GiB' if devices else ''} (1.00: a CPU where "
            "no gain was proven), and on how many CPUs. Your run may be outside the "
            "span. Devices and mappings gain more with Safe RET than with plain "
            "returns: each return of a function called for a page is mispredicted "
            "there."
        )
    return " ".join(texts)


def describe_amounts(documents: Sequence[Document]) -> Iterator[str]:
    """Yield what the times of large amounts are calculated from, if there are any."""
    rows = [one for document in documents for one in _lead([document])]
    if amounts := sorted({result.bytes for line, result in rows if line.calculated}):
        ends = dict.fromkeys((amounts[0], amounts[-1]))
        amount = DASH.join(map(format_size, ends))
        yield f"¹ Calculated from {amount} {NO_POOL}."


def describe_whole(documents: Sequence[Document]) -> Iterator[str]:
    """Yield what was measured of whole operations, without the module.

    Those of a process are of one run, by the kernel that ran; the native bench has no
    image of that one, so beside it is the function of the nearest that it has.
    """
    whole = json.loads(WHOLE_FILE.read_text(encoding="utf-8"))
    cpus = {host.cpu_name(document.machine["cpu"]) for document in documents}
    ways = whole["cpus"].get(cpus.pop(), {}) if len(cpus) == 1 else {}
    rows = [line for line, _ in _lead(documents)]
    processes = [(line, *one) for line in rows for one in line.processes]
    texts = [
        _format_whole(line, process, ways[way])
        for line, way, process in processes
        if way in ways
    ]
    if texts:
        rates = next(iter(ways.values()))
        yield (
            f"The whole operation without the module, calculated from 1 GiB in one "
            f"kept run of this CPU on Linux {rates['series']} (in brackets the range, "
            f"then the function alone on {rates['series_of_function']}): "
            f"{', '.join(texts)}. The rest is page faults, and by how much runs differ."
        )
    elif processes:
        yield (
            "Of the whole nothing was measured on this CPU: bulkmm bench populate "
            "--kind hugetlb --reserve does."
        )
    kinds = {line.kind for line in rows}
    if "memmap" in kinds and (shares := whole["share_of_bind"]):
        span = DASH.join(dict.fromkeys(f"{share:.1%}" for share in shares))
        yield (
            f"The function is {span} of the instructions of a device's whole bind in "
            f"an emulated guest ({whole['series_of_bind']})."
        )
    if gain.LARGE in kinds:
        yield (
            "What a driver does around its mapping differs from driver to driver and "
            "was not measured."
        )


def _format_whole(line: Headline, process: str, rates: dict[str, Any]) -> str:
    """Return how long a process took for all of a line, and how long the function."""
    figures = (*rates["gb_per_s"], *filter(None, [rates.get("function")]))
    median, low, high, *function = (
        format_duration(line.calculated / r) for r in figures
    )
    return f"{process} {median} ({'; '.join([f'{low}{DASH}{high}', *function])})"


def list_notes(documents: Sequence[Document]) -> list[str]:
    """Return what the rows mean, and what is slower with the module."""
    busy = filter(None, map(conditions.describe_load, documents))
    return [
        *busy,
        describe_scope(documents),
        *describe_whole(documents),
        describe_losses(documents),
    ]


SLOWER = "Proven to be slower, of what ran"


def describe_losses(documents: Sequence[Document], lead: str = SLOWER) -> str:
    """Return what is slower with the module; nothing is proven beside other work."""
    if any(map(conditions.describe_load, documents)):
        lead = "Slower, beside other work"
    proven, unstable = (
        _list_losses(documents, unstable=mark) for mark in (False, True)
    )
    texts = [f"{lead}: {', '.join(proven) or 'none'}."]
    texts += [f"Slower, unstable: {', '.join(unstable)}."] if unstable else []
    return " ".join(texts)


def _list_losses(documents: Sequence[Document], *, unstable: bool) -> list[str]:
    """Return the jobs that are slower, each with the ratios on these kernels."""
    losses: dict[str, dict[str, float]] = {}
    for document in documents:
        jobs = {r.scenario: job_words.describe_job(r) for r in document.results}
        for ratio in document.ratios:
            is_ours = ratio.base == size_grid.STOCK and ratio.variant in ARMS
            proven = ratio.significant and ratio.unstable is unstable
            if is_ours and proven and ratio.ratio < LOSS:
                by_series = losses.setdefault(jobs[ratio.scenario], {})
                by_series[_name_series(document)] = ratio.ratio
    names = []
    for job, by_series in losses.items():
        only = "" if len(by_series) == len(documents) else f" ({', '.join(by_series)})"
        names.append(f"{job} {_format_range([*by_series.values()])}{only}")
    return names


def _format_range(ratios: Sequence[float]) -> str:
    """Return the least and the most of ratios."""
    ends = dict.fromkeys(f"{end(ratios):.2f}" for end in (min, max))
    return f"{DASH.join(ends)}{TIMES}"


def print_headlines(documents: Sequence[Document]) -> None:
    """Print the sentences and what they mean, or nothing if there are none."""
    tables = [*make_tables(documents)]
    for table in tables:
        print()
        table.print()
    if tables:
        print_lines(["", *list_notes(documents)])
