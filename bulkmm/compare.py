# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm compare``: tell if anything got slower between two results."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bulkmm import options
from bulkmm.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from pathlib import Path

    from bulkmm.results import Document, Result
    from bulkmm.verdict import Cell

    Key = tuple[str, str]  # scenario, variant

THRESHOLD = "5%"
SCHEMA_VERSION = 1
UNKNOWN = "unknown"
PROOF = (
    "the whole interval or range is beyond it, and so says Mann-Whitney at 5 %, "
    "corrected for the number of cells by Holm's method"
)
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def add_parser(sub: options.Subparsers[Any]) -> None:
    """Add ``compare`` to the parser of the whole command."""
    compare = options.add(
        sub,
        "compare",
        "tell if one result is slower than another",
        """Compare two results arm by arm. An arm is slower if the whole 95 % interval
        of the ratio of medians lies beyond the threshold and a Mann-Whitney test,
        corrected for the number of arms, says so too.""",
        run="bulkmm.compare:run_compare",
        example="bulkmm compare a.json b.json --threshold 5%",
    )
    table = """
        before:A.json  read before
        after:B.json  read after
        --threshold T  allow so much more time, as 5%% or 0.05 (default: 5%%)
        --json  print the comparison as JSON, and errors too
        """
    options.take(compare, table, threshold=THRESHOLD)


def run_compare(args: argparse.Namespace) -> int:
    """Compare; the exit code says if something is proven to be slower."""
    from bulkmm import verdict  # noqa: PLC0415 - keeps --help fast

    threshold = parse_threshold(args.threshold)
    compared = compare(File.read(args.before), File.read(args.after), threshold)
    if args.json:
        print(json.dumps(as_json(compared), indent=1))
    else:
        print_comparison(compared)
    slower = sum(cell.verdict == verdict.SLOWER for cell in compared.cells)
    if slower:
        what = f"slower by more than {compared.percent}"
        sys.stderr.write(f"bulkmm: {slower} of {len(compared.cells)} {what}\n")
    return Exit.VERDICT if slower else Exit.OK


def parse_threshold(text: str) -> float:
    """Return the fraction that ``5%`` or ``0.05`` means."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?(%?)", text.strip())
    if found:
        value = float(found[1]) / (100 if found[2] else 1)
        # A bare 5 would be 500 %: more likely a forgotten sign than a wish.
        if value < 1 or (value == 1 and found[2]):
            return value
    accepted = "give 0% to 100%, or a fraction below 1, as in 5% or 0.05"
    raise UsageError(f"bad threshold {text!r}: {accepted}")


@dataclass(frozen=True)
class File:
    """A result and the name it is spoken of by."""

    name: str
    document: Document

    @classmethod
    def read(cls, path: Path) -> File:
        """Return the result in a file."""
        from bulkmm.results import Document  # noqa: PLC0415 - keeps --help fast

        return cls(str(path), Document.read(path))

    def arms(self) -> dict[Key, Result]:
        """Return the arms by what they are called."""
        arms = (r for r in self.document.printed().results if r.unit != "stores")
        return {(r.scenario, r.variant): r for r in arms}


@dataclass(frozen=True)
class Comparison:
    """All that is to be said of two results."""

    before: File
    after: File
    threshold: float
    cells: list[Cell]
    warnings: list[str]
    only: dict[str, list[Key]] = field(default_factory=dict)  # by file
    unlike: dict[Key, str] = field(default_factory=dict)  # why no ratio is made

    @property
    def percent(self) -> str:
        """Return the threshold as it is spoken of."""
        return f"{self.threshold * 100:g} %"


def compare(before: File, after: File, threshold: float) -> Comparison:
    """Compare two results; raise an error if they have nothing in common."""
    from bulkmm import verdict  # noqa: PLC0415 - keeps --help fast

    _refuse_emulation(before, after)
    old, new = before.arms(), after.arms()
    common = [key for key in old if key in new]
    if not common:
        names = f"{before.name} and {after.name}"
        raise UsageError(f"{names} have no scenario and variant in common")
    unlike = {key: why for key in common if (why := _unlike(old[key], new[key]))}
    like = [key for key in common if key not in unlike]
    if not like:
        key, why = next(iter(unlike.items()))
        names = f"{before.name} and {after.name}"
        raise UsageError(f"nothing in {names} compares: {', '.join(key)}: {why}")
    return Comparison(
        before=before,
        after=after,
        threshold=threshold,
        cells=verdict.judge([(old[key], new[key]) for key in like], threshold),
        warnings=warnings(before, after),
        only={
            before.name: [key for key in old if key not in new],
            after.name: [key for key in new if key not in old],
        },
        unlike=unlike,
    )


def _refuse_emulation(before: File, after: File) -> None:
    from bulkmm.table import where  # noqa: PLC0415 - keeps --help fast

    kinds = [where(file.document) for file in (before, after)]
    if (kinds[0] == "TCG") != (kinds[1] == "TCG"):
        said = f"{before.name} is {kinds[0]}, {after.name} is {kinds[1]}"
        raise UsageError(f"{said}: emulated time does not compare with real time")
    for file in (before, after):
        if file.document.emulated and not file.document.counted:
            said = "emulated times do not compare, and no work was counted"
            raise UsageError(f"{file.name}: {said}")


def _unlike(old: Result, new: Result) -> str | None:
    """Return why the ratio of two arms would mean nothing, if so."""
    if old.bytes != new.bytes:
        return f"{_size(old.bytes)} in A, {_size(new.bytes)} in B"
    if not (min(old.samples) and min(new.samples)):
        return "a sample took no time"
    return None


def _size(nbytes: int) -> str:
    for unit, name in UNITS:
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} bytes"


def warnings(before: File, after: File) -> list[str]:
    """Return what differs of the machines, and which outputs were wrong."""
    old, new = facts(before.document), facts(after.document)
    found = []
    for what in {**old, **new}:
        a, b = old.get(what, UNKNOWN), new.get(what, UNKNOWN)
        if a != b:
            found.append(f"different {what}: {a} in A, {b} in B")
    for file in (before, after):
        failed = [check.name for check in file.document.checks if not check.ok]
        if failed:
            found.append(f"{file.name}: checks failed: {', '.join(failed)}")
    return found


def facts(document: Document) -> dict[str, str]:
    """Return what is known and must be the same for times to compare."""
    machine, run = document.machine, document.run
    cpu, guest = machine.get("cpu", {}), machine.get("guest", {})
    names = ("model", "vendor", "family", "model_number", "stepping")
    facts = {
        "CPU": " ".join(str(cpu[name]) for name in names if cpu.get(name) is not None),
        "number of CPUs": cpu.get("cores"),
        "hypervisor": cpu.get("hypervisor"),
        "frequency governor": cpu.get("governor"),
        **_entries("cache", cpu.get("caches")),
        **_entries("mitigation", cpu.get("mitigations")),
        "memory": _gibibytes(machine.get("memory_bytes")),
        "kernel": machine.get("kernel"),
        "guest kernel": guest.get("kernel"),
        "accelerator": machine.get("accelerator"),
        "transparent huge page setting": machine.get("thp"),
        "share of huge pages": _share(run.get("huge_bytes"), run.get("bytes")),
        # what was asked for or chosen, such as a backend
        **_entries("run:", {k: v for k, v in run.items() if isinstance(v, str)}),
    }
    return {what: str(fact) for what, fact in facts.items() if fact not in (None, "")}


def _entries(what: str, held: object) -> dict[str, Any]:
    """Return the entries of an object, each named by what they are."""
    items = held.items() if isinstance(held, dict) else ()
    return {f"{what} {name}": value for name, value in items}


def _gibibytes(nbytes: object) -> str:
    """Return memory coarsely: kernels keep a little more or less of it."""
    return f"{nbytes / (1 << 30):.0f} GiB" if isinstance(nbytes, int) else ""


def _share(part: object, whole: object) -> str:
    """Return a share in whole percent: a page more or less is no difference."""
    if isinstance(part, int) and isinstance(whole, int) and whole > 0:
        return f"{100 * part / whole:.0f} %"
    return ""


def as_json(compared: Comparison) -> dict[str, Any]:
    """Return all that the table says, and the p-values."""
    from bulkmm import verdict  # noqa: PLC0415 - keeps --help fast

    return {
        "schema_version": SCHEMA_VERSION,
        "before": _described(compared.before),
        "after": _described(compared.after),
        "threshold": compared.threshold,
        "alpha": verdict.ALPHA,
        "correction": "holm",
        "warnings": compared.warnings,
        "cells": [_cell_json(cell) for cell in compared.cells],
        "only_in_before": _keys_json(compared.only[compared.before.name]),
        "only_in_after": _keys_json(compared.only[compared.after.name]),
        "not_comparable": [
            {**_keys_json([key])[0], "why": why} for key, why in compared.unlike.items()
        ],
    }


def _described(file: File) -> dict[str, Any]:
    machine = file.document.machine
    return {"file": file.name, "revision": machine.get("revision")}


def _keys_json(keys: Iterable[Key]) -> list[dict[str, str]]:
    return [{"scenario": scenario, "variant": variant} for scenario, variant in keys]


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "scenario": cell.before.scenario,
        "variant": cell.before.variant,
        "verdict": cell.verdict,
        "unit": cell.before.unit,
        "ratio": cell.ratio.ratio,
        "ci95": list(cell.ratio.ci95),
        "median_before": cell.before.median,
        "median_after": cell.after.median,
        "n_before": len(cell.before.samples),
        "n_after": len(cell.after.samples),
        "enough_samples": cell.enough,
        "p_slower": cell.p_slower,
        "p_faster": cell.p_faster,
    }


def print_comparison(compared: Comparison) -> None:
    """Print the warnings, the table, and what is not in it."""
    from rich import box  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415

    from bulkmm import table  # noqa: PLC0415

    console = table.screen()
    for line in (*_heading(compared), *_warned(compared.warnings)):
        console.print(line, markup=False, highlight=False)
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for name in ("scenario", "variant"):
        shown.add_column(name, overflow="fold")
    work = compared.before.document.counted
    unit, gain = ("instructions", "fewer") if work else ("ms", "faster")
    for name in (f"A {unit}", f"B {unit}", "n"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column(gain, no_wrap=True)
    shown.add_column("", no_wrap=True)
    for cell in compared.cells:
        shown.add_row(*map(table.plain, _row(cell)))
    console.print(shown)
    for line in _under(compared):
        console.print(line, markup=False, highlight=False)


def _heading(compared: Comparison) -> list[str]:
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast

    lines = []
    for letter, file in (("A", compared.before), ("B", compared.after)):
        revision = file.document.machine.get("revision") or UNKNOWN
        lines.append(f"{letter}: {file.name}, revision {revision}")
        lines.append(f"   {table.footnotes(file.document)[0]}")
    return lines


def _warned(found: list[str]) -> list[str]:
    return [f"warning: {line}" for line in found]


def _row(cell: Cell) -> tuple[str, ...]:
    from bulkmm import table, verdict  # noqa: PLC0415 - keeps --help fast

    write = table.ms if cell.before.unit == "ns" else table.count
    n = list(dict.fromkeys(str(len(arm.samples)) for arm in (cell.before, cell.after)))
    return (
        cell.before.scenario,
        cell.before.variant,
        write(cell.before.median),
        write(cell.after.median),
        "/".join(n),
        table.factor(cell.ratio) + (" few" if _is_short(cell) else ""),
        "" if cell.verdict == verdict.UNPROVEN else cell.verdict,
    )


def _under(compared: Comparison) -> list[str]:
    from bulkmm import table  # noqa: PLC0415 - keeps --help fast

    lines = [
        _meaning(compared),
        f"slower, faster: proven by more than {compared.percent}: {PROOF}",
        "~ neither is proven",
        table.BRACKETS,
    ]
    lines += _too_few(compared)
    for letter, file in (("A", compared.before), ("B", compared.after)):
        if keys := compared.only[file.name]:
            lines.append(f"only in {letter}: {_named(keys)}")
    for key, why in compared.unlike.items():
        lines.append(f"not compared: {', '.join(key)}: {why}")
    if table.where(compared.before.document) == "TCG":
        lines.append(table.COUNTED)
    return lines


def _meaning(compared: Comparison) -> str:
    if compared.before.document.counted:
        return (
            "fewer = share of the instructions of A that is gone in B: below 0, B does "
            "more, which counts as slower"
        )
    return "faster = time of A / time of B: below 1, B is slower"


def _too_few(compared: Comparison) -> list[str]:
    from bulkmm import verdict  # noqa: PLC0415 - keeps --help fast

    few = sum(_is_short(cell) for cell in compared.cells)
    if not few:
        return []
    count = len(compared.cells)
    need = verdict.samples_needed(count)
    said = (
        f"{few} of {count} cells have too few samples to prove anything among so many"
    )
    return [f"few: {said}; it takes n = {need} in each file (--rounds {need})"]


def _is_short(cell: Cell) -> bool:
    """Return if nothing is proven of a cell and nothing alone could have been."""
    from bulkmm import verdict  # noqa: PLC0415 - keeps --help fast

    return cell.verdict == verdict.UNPROVEN and not cell.enough


def _named(keys: Iterable[Key]) -> str:
    """Return the arms in groups by scenario."""
    groups: dict[str, list[str]] = {}
    for scenario, variant in keys:
        groups.setdefault(scenario, []).append(variant)
    return "; ".join(f"{name}: {', '.join(them)}" for name, them in groups.items())
