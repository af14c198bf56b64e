# SPDX-License-Identifier: GPL-2.0-only
"""The comparison of two sides: verdicts, as a table or as JSON."""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bulkmm import facts, sides, table, verdict
from bulkmm.compare import parse_threshold
from bulkmm.control import text
from bulkmm.errors import Exit, UsageError
from bulkmm.results import ALPHA, Result
from bulkmm.sheet import Sheet, print_lines
from bulkmm.sides import Key, Side
from bulkmm.verdict import Cell

SCHEMA_VERSION = 2
PROOF = (
    "slower, faster: the whole interval or range is beyond {percent}, and files dealt "
    "to the sides by chance change no arm as much in 95 % of the ways to deal them"
)


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sides."""

    before: Side
    after: Side
    threshold: float
    cells: list[Cell]
    only: tuple[list[Key], list[Key]]  # in before, in after
    unlike: dict[Key, str]  # why no ratio is made

    @property
    def sides(self) -> tuple[Side, Side]:
        """Return both sides."""
        return self.before, self.after

    @property
    def percent(self) -> str:
        """Return the threshold as text."""
        return f"{self.threshold * 100:g} %"


def compare(before: Side, after: Side, threshold: float) -> Comparison:
    """Compare two sides; raise if they have nothing in common."""
    sides.refuse_emulation(before, after)
    old, new = before.arms(), after.arms()
    common = [key for key in old if key in new]
    names = f"{before.said()} and {after.said()}"
    if not common:
        raise UsageError(f"{names} have no scenario and variant in common")
    unlike = {key: why for key in common if (why := _unlike(old[key], new[key]))}
    like = [key for key in common if key not in unlike]
    if not like:
        key, why = next(iter(unlike.items()))
        raise UsageError(f"nothing in {names} compares: {', '.join(key)}: {why}")
    pairs = [(sides.by_file(old[key]), sides.by_file(new[key])) for key in like]
    return Comparison(
        before=before,
        after=after,
        threshold=threshold,
        cells=verdict.judge(pairs, threshold),
        only=(
            [key for key in old if key not in new],
            [key for key in new if key not in old],
        ),
        unlike=unlike,
    )


def _unlike(old: list[Result], new: list[Result]) -> str | None:
    """Return why the ratio of two arms would be meaningless, if so."""
    if len({arm.bytes for arm in (*old, *new)}) > 1:
        sizes = ({text.size(arm.bytes): 1 for arm in side} for side in (old, new))
        return "{} in A, {} in B".format(*map(" or ".join, sizes))
    if not all(arm.median for arm in (*old, *new)):
        return "a median of no time"
    return None


def run_compare(args: argparse.Namespace) -> int:
    """Compare; the exit code tells whether something is proven slower."""
    threshold = parse_threshold(args.threshold)
    compared = compare(*sides.read(list(map(str, args.files))), threshold)
    if args.json:
        print(json.dumps(to_json(compared), indent=1))
    else:
        print_comparison(compared)
    slower = sum(cell.verdict == verdict.SLOWER for cell in compared.cells)
    if slower:
        what = f"slower by more than {compared.percent}"
        sys.stderr.write(f"bulkmm: {slower} of {len(compared.cells)} {what}\n")
    return Exit.VERDICT if slower else Exit.OK


def to_json(compared: Comparison) -> dict[str, Any]:
    """Return the table's content and the p-values."""
    before, after = (_keys_json(keys) for keys in compared.only)
    return {
        "schema_version": SCHEMA_VERSION,
        "before": _described(compared.before),
        "after": _described(compared.after),
        "threshold": compared.threshold,
        "alpha": ALPHA,
        "correction": "max-T",
        "warnings": sides.warnings(*compared.sides),
        "cells": [_cell_json(cell) for cell in compared.cells],
        "only_in_before": before,
        "only_in_after": after,
        "not_comparable": [
            {**_keys_json([key])[0], "why": why} for key, why in compared.unlike.items()
        ],
    }


def _described(side: Side) -> dict[str, Any]:
    return {"files": side.names, "revisions": side.revisions()}


def _keys_json(keys: Iterable[Key]) -> list[dict[str, str]]:
    return [{"scenario": scenario, "variant": variant} for scenario, variant in keys]


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "scenario": cell.before.scenario,
        "variant": cell.before.variant,
        "verdict": cell.verdict,
        "unit": cell.before.unit,
        "ratio": cell.ratio.ratio,
        "spread": cell.ratio.spread,
        "ci95": list(cell.ratio.ci95),
        "median_before": cell.before.median,
        "median_after": cell.after.median,
        "p": cell.p,
    }


def print_comparison(compared: Comparison) -> None:
    """Print the warnings, the table, and what it omits."""
    work = compared.before.documents[0].counted
    gain = "fewer" if work else "faster"
    medians = ("A instructions", "B instructions") if work else ("A", "B")
    print_lines(_heading(compared))
    print_lines(f"warning: {line}" for line in sides.warnings(*compared.sides))
    rows = [_row(cell) for cell in compared.cells]
    Sheet(("scenario", "variant", *medians, gain, ""), rows, medians).print()
    print_lines(_under(compared))


def _heading(compared: Comparison) -> list[str]:
    lines = []
    for side in compared.sides:
        revisions = ", ".join(side.revisions())
        lines.append(f"{side.letter}: {side.said()}, revision {revisions}")
        lines.append(f"   {facts.footnotes(side.documents[0])[0]}")
    return lines


def _row(cell: Cell) -> tuple[str, ...]:
    return (
        cell.before.scenario,
        cell.before.variant,
        table.value(cell.before.median, cell.before.unit),
        table.value(cell.after.median, cell.after.unit),
        table.factor(cell.ratio),
        "" if cell.verdict == verdict.UNPROVEN else cell.verdict,
    )


def _under(compared: Comparison) -> list[str]:
    lines = [
        _meaning(compared),
        PROOF.format(percent=compared.percent),
        "~ neither is proven",
        table.BRACKETS,
    ]
    lines += _too_few(compared)
    for side, keys in zip(compared.sides, compared.only, strict=True):
        if keys:
            lines.append(f"only in {side.letter}: {_named(keys)}")
    for key, why in compared.unlike.items():
        lines.append(f"not compared: {', '.join(key)}: {why}")
    if compared.before.documents[0].counted:
        lines.append(facts.COUNTED)
    return lines


def _meaning(compared: Comparison) -> str:
    if compared.before.documents[0].counted:
        return (
            "fewer = share of the instructions of A that is gone in B: below 0, B does "
            "more, which counts as slower"
        )
    return "faster = time of A / time of B: below 1, B is slower"


def _too_few(compared: Comparison) -> list[str]:
    n, m = (len(side.names) for side in compared.sides)
    if verdict.smallest_p(n, m) <= ALPHA:
        return []
    need = verdict.files_needed()
    said = f"{n} and {m} files prove nothing: a file is one sample; run each build"
    return [f"{said} {need} times or more, in turn, and give all the files"]


def _named(keys: Iterable[Key]) -> str:
    """Yield the arms grouped by scenario."""
    groups: dict[str, list[str]] = {}
    for scenario, variant in keys:
        groups.setdefault(scenario, []).append(variant)
    return "; ".join(f"{name}: {', '.join(them)}" for name, them in groups.items())
