# SPDX-License-Identifier: GPL-2.0-only
"""What ``bulkmm worth`` found: as a document, and as a screen of text."""

import json
import reprlib
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bulkmm.control import text
from bulkmm.control.record import Record
from bulkmm.errors import BulkmmError
from bulkmm.sheet import Sheet
from bulkmm.worth import gain
from bulkmm.worth.functions import INSTEAD, Function
from bulkmm.worth.gain import Early, Known
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
HEADINGS = ("path", "function", "calls", "time", "of a CPU", "faster", "saves")
KIND: Literal["worth"] = "worth"
Span = tuple[float, float]  # at least, at most


@dataclass(frozen=True)
class Row:
    """What one function did; seconds are those of calls that the module would serve."""

    path: str
    function: str
    served: bool  # a path of the module hooks it
    calls: int
    too_small: int  # of these, of one page, which are left to the kernel
    timed: int  # more in progress than can be timed at once are only counted
    seconds: float
    cpu_share: float
    ratio: Span | None  # None: not measured on any CPU, or no path serves it
    saved_seconds: Span | None  # None: as above


@dataclass(frozen=True)
class Compared:
    """A function without the module, and with it; None: it was not called."""

    path: str
    function: str
    expected: Span | None
    before_ns: float | None  # a call
    now_ns: float | None
    ratio: float | None


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
    compared: list[Compared]
    verdict: str


def row(one: Function, counts: Counts, known: Known, spent: float) -> Row:
    """Return the row of a function: the times of its calls by size, scaled to all."""
    sums = [s for s in counts.sums if s.function == one.name]
    calls, timed = counts.calls.get(one.name, 0), sum(s.calls for s in sums)
    scale = max(calls / timed, 1.0) if timed else 0.0
    large = [s for s in sums if gain.served(one, s.bits)]
    seconds = sum(s.ns for s in large) * scale / 1e9
    pages = min(timed * scale, counts.huge_pages)
    spans = [
        (
            min(s.ns * scale / 1e9, gain.work(known, one, s.calls * pages / timed)),
            gain.span(known, one, s.bits),
        )
        for s in large
    ]
    saved = ratio = None
    if found := [(t, span) for t, span in spans if span]:
        saved = tuple(
            round(sum(gain.saved(t, span[i]) for t, span in found), 6) for i in (0, 1)
        )
        ratios = [span for _, span in found]
        ratio = min(r for r, _ in ratios), max(r for _, r in ratios)
    elif span := gain.span(known, one, gain.ONE_MIB + 1):
        ratio = span
    return Row(
        path=one.path,
        function=one.name,
        served=one.served,
        calls=calls,
        too_small=sum(s.calls for s in sums) - sum(s.calls for s in large),
        timed=timed,
        seconds=round(seconds, 9),
        cpu_share=round(seconds / spent, 6) if spent else 0.0,
        ratio=ratio,
        saved_seconds=saved,  # type: ignore[arg-type]
    )


def verdict(rows: list[Row], early: list[Early], spent: float) -> str:
    """Return one sentence: load it, try it, or not needed."""
    load: list[str] = []
    perhaps: list[str] = []
    least = WORTH_IT * spent
    rows = [one for one in rows if one.served]
    for path in dict.fromkeys(one.path for one in rows):
        mine = [one for one in rows if one.path == path]
        low, high = (sum((r.saved_seconds or (0, 0))[i] for r in mine) for i in (0, 1))
        done, part = sum(one.seconds for one in mine), _span((low, high))
        if high < least:
            if sum(r.seconds for r in mine if r.saved_seconds is None) < least:
                continue
            part = "an unknown part"  # no figure says that it would be little
        said = f"{path} {part} of {_s(done)} of {DOES.get(path, path)}"
        (load if low >= least else perhaps).append(said)
    idle = [p for p in dict.fromkeys(r.path for r in rows) if not _calls(rows, p)]
    said = f"load it: in {_s(spent)} it would save {'; '.join(load)}" if load else ""
    if perhaps:
        word = "perhaps" if load else "try it: it may save"
        said += f"{'; ' if load else ''}{word} {'; '.join(perhaps)}"
    later = sum(one.saved_seconds or 0 for one in early)
    if not said:
        said = f"not needed for what ran in {_s(spent)}"
        said += ": it would save less than 1 % of a CPU" if _calls(rows, "") else ""
        if later >= 1:
            said += f"; but what is listed below would take {_s(later)} less"
    return f"{said}. Nothing called {', '.join(idle)}." if idle else f"{said}."


def _calls(rows: list[Row], path: str) -> int:
    return sum(one.calls for one in rows if path in ("", one.path))


def compare(earlier: Worth, rows: list[Row]) -> list[Compared]:
    """Return what was expected of each function against what it takes now."""
    then = {one.function: one for one in earlier.functions}
    found = []
    for one in rows:
        old = then.get(one.function)
        expected, before, now = old.ratio if old else None, _each(old), _each(one)
        ratio = before / now if before and now else None
        row = Compared(one.path, one.function, expected, before, now, ratio)
        found.append(row)
    return found


def _each(one: Row | None) -> float | None:
    """Return the time of a call that the module serves: those timed, not scaled."""
    if not one or one.timed <= one.too_small:
        return None
    scale = max(one.calls / one.timed, 1.0)
    return one.seconds / scale / (one.timed - one.too_small) * 1e9


def read(file: Path) -> Worth:
    """Return the result in a file."""
    try:
        found: Worth = _as(Worth, json.loads(file.read_text(encoding="utf-8")), "")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BulkmmError(f"{file}: not a result of bulkmm worth: {error}") from error
    return found


def _as(kind: Any, held: Any, name: str) -> Any:  # noqa: ANN401
    """Return what JSON says as a type; later versions may have further members."""
    if hasattr(kind, "__dataclass_fields__"):
        types = get_type_hints(kind).items()
        return kind(**{one: _as(its, held[one], one) for one, its in types})
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is UnionType:
        return None if held is None else _as(inner[0], held, name)
    if origin in (list, tuple) and isinstance(held, list):
        kinds = inner if origin is tuple else inner * len(held)
        return origin(_as(*one, name) for one in zip(kinds, held, strict=True))
    accepted = (int, float) if kind is float else origin
    if held in inner if origin is Literal else isinstance(held, accepted):
        return held
    raise ValueError(f"{name} {reprlib.repr(held)}")


def _s(seconds: float) -> str:
    return text.duration(seconds * 1e9)


def _span(span: Span, unit: str = "") -> str:
    """Return a span of seconds, or of ratios; one figure if both ends read the same."""
    ends = [f"{end:.2f}{unit}" if unit else _s(end) for end in span]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def sheet(found: Worth) -> Sheet:
    """Return the table."""
    rows = [
        (
            one.path if one.served else f"({one.path})",
            one.function,
            f"{one.calls:,}",
            _s(one.seconds) if one.seconds else "",
            f"{one.cpu_share:.1%}" if one.seconds else "",
            _faster(one),
            _span(one.saved_seconds) if one.saved_seconds else "",
        )
        for one in found.functions
    ]
    return Sheet(HEADINGS, rows, HEADINGS[2:])


def _faster(one: Row) -> str:
    if one.ratio:
        return _span(one.ratio, "\N{MULTIPLICATION SIGN}")
    return "?" if one.served else ""


def notes(found: Worth) -> list[str]:
    """Return the lines below the table: what happened before, and what it means."""
    said = [*map(_early, found.before)]
    said += [f"faster: {found.ratios_from}; the least and the most that calls may gain"]
    if not all(one.served for one in found.functions):
        said.append("(path): for information, no path of this build serves it")
    if any(one.function in INSTEAD.values() and one.calls for one in found.functions):
        said.append(
            "alloc: what is saved is a part of each fault's clearing, not of all of it"
        )
    said += [f"not counted: {why}" for why in found.not_counted]
    small = sum(one.too_small for one in found.functions)
    if small:
        said.append(f"{small:,} calls of one page are left out: the module leaves them")
    untimed = sum(max(one.calls - one.timed, 0) for one in found.functions)
    if untimed:
        said.append(f"{untimed:,} calls were counted and not timed; times are scaled")
    calls = _calls(found.functions, "")
    many = f"{calls:,} calls at about {text.duration(COST_NS)}"
    return [*said, f"counting took {_s(found.cost_seconds)}: {many}"]


def where(found: Worth) -> str:
    """Return what was counted: for how long, on what."""
    during = f" while {found.command[0]} ran" if found.command else ""
    loaded = ", module loaded" if found.module else ""
    machine = f"on Linux {found.kernel}, {found.cpu}{loaded}"
    return f"{_s(found.seconds)}{during} {machine}"


def _early(one: Early) -> str:
    said = f"before: {one.says}"
    if one.seconds is None or one.saved_seconds is None:
        return said
    less = f"{_s(one.saved_seconds)} less with path {one.path}"
    return f"{said}: about {_s(one.seconds)} (calculated), {less}"


def lines(found: Worth) -> list[str]:
    """Return the screen: verdict, table, notes, and a comparison if there is one."""
    shown = text.columns([HEADINGS, *sheet(found).rows])
    said = [found.verdict, "", where(found), "", *shown, "", *notes(found)]
    if found.compared:
        heads = ("path", "function", "expected", "measured", "a call before", "now")
        said += ["", *text.columns([heads, *map(_compared, found.compared)])]
    return said


def _compared(one: Compared) -> tuple[str, ...]:
    times = "\N{MULTIPLICATION SIGN}"
    return (
        one.path,
        one.function,
        _span(one.expected, times) if one.expected else "?",
        f"{one.ratio:.2f}{times}" if one.ratio else "not called",
        *("" if t is None else text.duration(t) for t in (one.before_ns, one.now_ns)),
    )
