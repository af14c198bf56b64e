# SPDX-License-Identifier: GPL-2.0-only
"""What ``bulkmm worth`` found: as a document, and as a screen of text."""

import json
import reprlib
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bulkmm.control.format import format_duration, split_columns
from bulkmm.control.json_output import Record
from bulkmm.results.table import Table
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.width import wrap_line, wrap_lines
from bulkmm.worth import gain
from bulkmm.worth.functions import INSTEAD, Function
from bulkmm.worth.gain import Early, Figures
from bulkmm.worth.probes import Counts

COST_NS = 3000  # of a call: 9,000 instructions (test_worth_guest.py), three per ns
WORTH_IT = 0.01  # of one CPU's time
DOES = {
    "memmap": "initialising struct pages",
    "clear": "zeroing huge pages",
    "alloc": "faults of huge pages that the allocator zeroes",
    "vmap": "mapping pages and ranges",
    "hotplug": "walking zones",
    "copy": "copying huge pages",
}
KEYS = ("path", "function")
HEADINGS = (*KEYS, "calls", "time", "CPU", "faster", "saves")
COMPARISON_HEADINGS = (*KEYS, "expected", "measured", "a call before", "now")
# why no ratio is kept
UNRATED = {
    "hotplug": "what hotplug saves grows with the square of the memory that is there, "
    "so no ratio is kept"
}
ADDED = {"serving"}  # members that results of earlier versions lack
OFF = "(off)"
# below a comparison
SPREAD = (
    "measured: the mean of the calls of one run each; without an interval, since only "
    "sums are counted"
)
NOT_OURS = f"{OFF}: the path is off, so this is chance and not the module's doing"
TIMES, TO = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
KIND: Literal["worth"] = "worth"
Span = tuple[float, float]  # at least, at most


@dataclass(frozen=True)
class Row:
    """What one function did; seconds are those of calls that the module would serve."""

    path: str
    function: str
    served: bool  # a path of the module hooks it
    calls: int
    too_small: int  # of these, of one page, which the module does not serve
    timed: int  # more in progress than can be timed at once are only counted
    seconds: float
    cpu_share: float
    ratio: Span | None  # None: not measured on any CPU, or no path serves it
    saved_seconds: Span | None  # None: as above, or the path is on


@dataclass(frozen=True)
class Comparison:
    """A function without the module, and with it; None: it was not called."""

    path: str
    function: str
    expected: Span | None
    before_ns: float | None  # a call
    now_ns: float | None
    ratio: float | None
    serving: bool = False  # the path is on: the module's doing


@dataclass(frozen=True, kw_only=True)
class Worth(Record):
    """Printed by worth: what was counted, and what the module would save of it."""

    kind: Literal["worth"] = KIND
    kernel: str
    cpu: str
    module: bool  # loaded while this was counted
    command: list[str]
    seconds: float
    ratios_from: str
    functions: list[Row]
    not_counted: list[str]  # functions that this kernel lacks, and why
    before: list[Early]
    cost_seconds: float
    compared: list[Comparison]
    verdict: str


def make_row(
    function: Function, counts: Counts, figures: Figures, duration: float
) -> Row:
    """Return the row of a function: the times of its calls by size, scaled to all."""
    sums = [s for s in counts.sums if s.function == function.name]
    calls, timed = counts.calls.get(function.name, 0), sum(s.calls for s in sums)
    scale = max(calls / timed, 1.0) if timed else 0.0
    large = [s for s in sums if gain.is_served(function, s.bits)]
    seconds = sum(s.ns for s in large) * scale / 1e9
    pages = min(timed * scale, counts.huge_pages)
    spans = [
        (
            min(
                s.ns * scale / 1e9,
                gain.estimate_work(figures, function, s.calls * pages / timed),
            ),
            gain.find_span(figures, function, s.bits),
        )
        for s in large
    ]
    saved = ratio = None
    if known_spans := [(t, span) for t, span in spans if span]:
        saved = tuple(
            round(sum(gain.compute_saving(t, span[i]) for t, span in known_spans), 6)
            for i in (0, 1)
        )
        ratios = [span for _, span in known_spans]
        ratio = min(r for r, _ in ratios), max(r for _, r in ratios)
    elif span := gain.find_span(figures, function, gain.ONE_MIB + 1):
        ratio = span
    return Row(
        path=function.path,
        function=function.name,
        served=function.is_hooked,
        calls=calls,
        too_small=sum(s.calls for s in sums) - sum(s.calls for s in large),
        timed=timed,
        seconds=round(seconds, 9),
        cpu_share=round(seconds / duration, 6) if duration else 0.0,
        ratio=ratio,
        saved_seconds=saved,  # type: ignore[arg-type]
    )


def state_verdict(rows: list[Row], early: list[Early], duration: float) -> str:
    """Return one sentence: load it, try it, or not needed."""
    load: list[str] = []
    perhaps: list[str] = []
    least = WORTH_IT * duration
    rows = [one for one in rows if one.served]
    for path in dict.fromkeys(one.path for one in rows):
        path_rows = [one for one in rows if one.path == path]
        low, high = (
            sum((r.saved_seconds or (0, 0))[i] for r in path_rows) for i in (0, 1)
        )
        seconds, part = sum(one.seconds for one in path_rows), format_span((low, high))
        if high < least:
            if sum(r.seconds for r in path_rows if r.saved_seconds is None) < least:
                continue
            part = "an unknown part"  # no figure says that it would be little
        clause = f"{path} {part} of {_s(seconds)} of {DOES.get(path, path)}"
        (load if low >= least else perhaps).append(clause)
    idle = [p for p in dict.fromkeys(r.path for r in rows) if not _calls(rows, p)]
    sentence = (
        f"load it: in {_s(duration)} it would save {'; '.join(load)}" if load else ""
    )
    if perhaps:
        word = "perhaps" if load else "try it: it may save"
        sentence += f"{'; ' if load else ''}{word} {'; '.join(perhaps)}"
    later = sum(one.saved_seconds or 0 for one in early)
    if not sentence:
        sentence = f"not needed for what ran in {_s(duration)}"
        sentence += ": it would save less than 1 % of a CPU" if _calls(rows, "") else ""
        if later >= 1:
            sentence += f"; but what is listed below would take {_s(later)} less"
    return f"{sentence}. Nothing called {', '.join(idle)}." if idle else f"{sentence}."


def _calls(rows: list[Row], path: str) -> int:
    return sum(one.calls for one in rows if path in ("", one.path))


def state_loaded(on: list[str], comparisons: list[Comparison]) -> str:
    """Return what holds instead of a verdict once the module is loaded."""
    sentence = (
        f"the module is loaded, and on: {', '.join(on) or 'no path'}. What these serve "
        'is saved already: "saves" is what the others would'
    )
    if not comparisons:
        return f"{sentence}."
    ratios = [
        f"{c.function} {c.ratio:.2f}{TIMES}"
        for c in comparisons
        if c.ratio and c.serving
    ]
    text = ", ".join(ratios) or "no function of theirs was called both times"
    return f"{sentence}. A call of theirs, measured against before: {text}."


def without_saving(row: Row, on: list[str]) -> Row:
    """Return a row, without what is saved already if its path is on."""
    return replace(row, saved_seconds=None) if row.path in on else row


def compare_results(earlier: Worth, rows: list[Row], on: list[str]) -> list[Comparison]:
    """Return what was expected of each function against what it takes now.

    What paths that are off do not serve may differ as well: then it is chance.
    """
    then = {one.function: one for one in earlier.functions}
    comparisons = []
    for current in rows:
        old = then.get(current.function)
        expected, before, now = (
            old.ratio if old else None,
            _time_call(old),
            _time_call(current),
        )
        ratio = before / now if before and now else None
        serving = current.served and current.path in on
        names = current.path, current.function
        comparisons.append(Comparison(*names, expected, before, now, ratio, serving))
    return comparisons


def _time_call(entry: Row | None) -> float | None:
    """Return the time of a call that the module serves: those timed, not scaled."""
    if not entry or entry.timed <= entry.too_small:
        return None
    scale = max(entry.calls / entry.timed, 1.0)
    return entry.seconds / scale / (entry.timed - entry.too_small) * 1e9


def read_result(file: Path) -> Worth:
    """Return the result in a file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        _check_kind(content)
        result: Worth = _convert(Worth, content, "")
    except KeyError as error:
        raise BulkmmError(
            f"{file}: not a result of bulkmm worth: it lacks {error.args[0]}"
        ) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise BulkmmError(f"{file}: not a result of bulkmm worth: {error}") from error
    return result


def _check_kind(content: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ValueError(f'its "kind" is not "{KIND}"')


def _convert(kind: Any, value: Any, name: str) -> Any:  # noqa: ANN401
    """Return what JSON says as a type; later versions may have further members."""
    if hasattr(kind, "__dataclass_fields__"):
        types = get_type_hints(kind).items()
        names = {one for one, _ in types if one in value or one not in ADDED}
        return kind(
            **{one: _convert(of, value[one], one) for one, of in types if one in names}
        )
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is UnionType:
        return None if value is None else _convert(inner[0], value, name)
    if origin in (list, tuple) and isinstance(value, list):
        kinds = inner if origin is tuple else inner * len(value)
        return origin(_convert(*one, name) for one in zip(kinds, value, strict=True))
    accepted = (int, float) if kind is float else origin
    if value in inner if origin is Literal else isinstance(value, accepted):
        return value
    raise ValueError(f"{name} {reprlib.repr(value)}")


def _s(seconds: float) -> str:
    return format_duration(seconds * 1e9)


def format_span(span: Span) -> str:
    """Return a span of seconds; one figure if both ends read the same."""
    low, high = map(_s, span)
    return low if low == high else f"{low} to {high}"


def format_ratios(span: Span) -> str:
    """Return a span of ratios; one figure if both ends read the same."""
    ends = dict.fromkeys(f"{end:.2f}" for end in span)
    return f"{TO.join(ends)}{TIMES}"


def make_table(result: Worth) -> Table:
    """Return the table."""
    rows = [
        (
            one.path if one.served else f"({one.path})",
            one.function,
            f"{one.calls:,}",
            _s(one.seconds) if one.seconds else "",
            f"{one.cpu_share:.1%}" if one.seconds else "",
            _faster(one),
            format_span(one.saved_seconds) if one.saved_seconds else "",
        )
        for one in result.functions
    ]
    return Table(HEADINGS, rows, HEADINGS[2:])


def _faster(entry: Row) -> str:
    if entry.ratio:
        return format_ratios(entry.ratio)
    return "?" if entry.served else ""


def list_notes(result: Worth) -> list[str]:
    """Return the lines below the table: what happened before, and what it means."""
    remarks = [describe_early(work, result.ratios_from) for work in result.before]
    remarks += [
        f"faster: {result.ratios_from}; the least and the most that calls may gain"
    ]
    unknown = [one.path for one in result.functions if one.served and not one.ratio]
    remarks += [
        f"?: {UNRATED.get(path, f'no CPU has a ratio of {path}')}"
        for path in dict.fromkeys(unknown)
    ]
    if not all(one.served for one in result.functions):
        remarks.append("(path): for information, no path of this build serves it")
    if any(one.function in INSTEAD.values() and one.calls for one in result.functions):
        remarks.append(
            "alloc: what is saved is a part of each fault's clearing, not of all of it"
        )
    remarks += [f"not counted: {why}" for why in result.not_counted]
    small = sum(one.too_small for one in result.functions)
    if small:
        remarks.append(
            f"{small:,} calls of one page are left out: the module leaves them"
        )
    untimed = sum(max(one.calls - one.timed, 0) for one in result.functions)
    if untimed:
        remarks.append(
            f"{untimed:,} calls were counted and not timed; times are scaled"
        )
    calls = _calls(result.functions, "")
    many = f"{calls:,} calls at about {format_duration(COST_NS)}"
    return [*remarks, f"counting took {_s(result.cost_seconds)}: {many}"]


def describe_scope(result: Worth) -> str:
    """Return what was counted: for how long, on what."""
    during = f" while {result.command[0]} ran" if result.command else ""
    loaded = ", module loaded" if result.module else ""
    machine = f"on Linux {result.kernel}, {result.cpu}{loaded}"
    return f"{_s(result.seconds)}{during} {machine}"


def describe_early(work: Early, ratios_from: str) -> str:
    """Return the line on work that no probe has seen."""
    line = f"before: {work.says}"
    if work.seconds is None or work.saved_seconds is None:
        return line
    less = f"{_s(work.saved_seconds)} less with path {work.path}"
    owner = "another CPU's" if gain.OTHER_CPUS in ratios_from else "this CPU's"
    return f"{line}: about {_s(work.seconds)} (calculated by {owner} rate), {less}"


def format_lines(result: Worth) -> list[str]:
    """Return the screen: verdict, table, notes, and a comparison if there is one."""
    table = split_columns([HEADINGS, *make_table(result).rows], len(KEYS))
    head = [*wrap_line(result.verdict), "", *wrap_line(describe_scope(result)), ""]
    screen = [*head, *table, "", *wrap_lines(list_notes(result))]
    if result.compared:
        rows = [COMPARISON_HEADINGS, *map(_comparison_row, result.compared)]
        screen += ["", *split_columns(rows, len(KEYS))]
        if cautions := list_cautions(result.compared):
            screen += ["", *wrap_lines(cautions)]
    return screen


def list_cautions(comparisons: list[Comparison]) -> list[str]:
    """Return the lines below a comparison: what its figures do not say."""
    if not any(one.ratio for one in comparisons):
        return []
    off = any(one.ratio and not one.serving for one in comparisons)
    return [SPREAD, NOT_OURS] if off else [SPREAD]


def _format_ratio(comparison: Comparison) -> str:
    if not comparison.ratio:
        return "not called"
    chance = "" if comparison.serving else f" {OFF}"
    return f"{comparison.ratio:.2f}{TIMES}{chance}"


def _comparison_row(comparison: Comparison) -> tuple[str, ...]:
    return (
        comparison.path,
        comparison.function,
        format_ratios(comparison.expected) if comparison.expected else "?",
        _format_ratio(comparison),
        *(
            "" if t is None else format_duration(t)
            for t in (comparison.before_ns, comparison.now_ns)
        ),
    )
