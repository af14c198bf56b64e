# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm compare``: which arms provably changed between the results of two builds.

An arm is a variant of a scenario, and a file is one sample of it: times within a run
share the placement of memory and the time of day. An arm counts as slower only if
two things agree: the whole interval of the ratio of medians lies beyond the
threshold, and the change is beyond what chance does to the largest of all arms
(``stats.p_of_sides``). So one is named by mistake in 5 % of comparisons, however
many there are. Holm's method has the same bound but treats each test separately:
for a hundred arms it would take eight files per side, where this takes four.
"""

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bulkmm.control.format import format_size
from bulkmm.report import mmtests
from bulkmm.results import conditions, result_tables, stats
from bulkmm.results.model import ALPHA, Document, Key, Ratio, Result
from bulkmm.results.table import Table, print_lines
from bulkmm.shell.errors import Exit, UsageError

SLOWER, FASTER, UNPROVEN = "slower", "faster", "unproven"
SCHEMA_VERSION = 2
UNKNOWN = "unknown"
DASHES = "--"
FEW = 8  # arms that are named without --all-rows
PROOF = (
    "slower, faster: the whole interval or range is beyond {:g} %, and files dealt to "
    "the sides by chance change no arm as much in 95 % of the ways to deal them"
)


@dataclass(frozen=True)
class Side:
    """The results of one build, by file."""

    letter: str
    files: dict[str, Document]

    @property
    def arms(self) -> dict[Key, list[Result]]:
        """Return the arms that any file has, by key."""
        arms: dict[Key, list[Result]] = {}
        for document in self.files.values():
            for key, result in document.printed().arms.items():
                arms.setdefault(key, []).append(result)
        return arms

    @property
    def revisions(self) -> list[str]:
        """Return what was measured."""
        revisions = (d.machine.get("revision") or UNKNOWN for d in self.files.values())
        return list(dict.fromkeys(map(str, revisions)))

    @property
    def label(self) -> str:
        """Return the name of the file, or of the first and the last of many."""
        first, *_, last = (*self.files, *self.files)
        many = len(self.files)
        return first if many == 1 else f"{first} … {last} ({many} files)"


@dataclass(frozen=True)
class Cell:
    """One arm before and now, and what is proven of it."""

    before: Result
    after: Result
    ratio: Ratio  # time before / time after; significant if the verdict is proven
    p: float  # of a change by chance, corrected for all arms
    verdict: str


def parse_threshold(text: str) -> float:
    """Return ``5%`` or ``0.05`` as a fraction."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?(%?)", text.strip())
    if match:
        value = float(match[1]) / (100 if match[2] else 1)
        # A bare 5 would be 500 %: more likely a forgotten percent sign.
        if value < 1 or (value == 1 and match[2]):
            return value
    accepted = "give 0% to 100%, or a fraction below 1, as in 5% or 0.05"
    raise UsageError(f"bad threshold {text!r}: {accepted}")


def read_sides(words: Sequence[str]) -> tuple[Side, Side]:
    """Return the sides that a command's arguments name."""
    arguments = list(words)
    if DASHES not in arguments and len(arguments) == 2:  # noqa: PLR2004 - one per side
        arguments.insert(1, DASHES)
    at = arguments.index(DASHES) if arguments.count(DASHES) == 1 else 0
    if not 0 < at < len(arguments) - 1:
        how = "as in: bulkmm compare A*.json -- B*.json"
        raise UsageError(f"give files before and after, separated by one --, {how}")
    return _side("A", arguments[:at]), _side("B", arguments[at + 1 :])


def _side(letter: str, names: list[str]) -> Side:
    places = [Path(name).resolve() for name in names]
    for i, name in enumerate(names):
        if places[i] in places[:i]:
            raise UsageError(f"{name} is given twice: a file is one sample")
    side = Side(letter, {name: Document.read(Path(name)) for name in names})
    previous: list[list[Result]] = []
    for name, document in side.files.items():
        if document.results and document.results in previous:
            raise UsageError(f"{name} is a copy of a file beside it")
        previous.append(document.results)
    return side


def refuse_emulation(files: dict[str, Document]) -> None:
    """Reject comparing times of hardware with others."""
    emulated = [name for name, document in files.items() if document.emulated]
    native = [name for name in files if name not in emulated]
    if emulated and native:
        reason = f"{emulated[0]} is emulated (TCG), {native[0]} is not"
        raise UsageError(f"{reason}: emulated time does not compare with real time")
    for name in emulated:
        if not files[name].counts_work:
            reason = "emulated times do not compare, and no work was counted"
            raise UsageError(f"{name}: {reason}")
        if files[name].has_stores is not files[emulated[0]].has_stores:
            reason = "string instructions were counted in another way"
            raise UsageError(f"{name}, {emulated[0]}: {reason}")


def refuse_copies(before: Side, after: Side) -> None:
    """Reject comparing a result with itself."""
    for name, document in after.files.items():
        for base, earlier in before.files.items():
            if document.results == earlier.results:
                raise UsageError(f"{name} in B is the same result as {base} in A")


def explain_mismatch(
    old: list[Result], new: list[Result], files: tuple[int, int]
) -> str:
    """Return why the ratio of two arms would be meaningless, if so."""
    if (len(old), len(new)) != files:
        return "not in every file"
    if len({arm.bytes for arm in (*old, *new)}) > 1:
        sizes = ({format_size(arm.bytes): 1 for arm in side} for side in (old, new))
        return "{} in A, {} in B".format(*map(" or ".join, sizes))
    return "" if all(arm.median for arm in (*old, *new)) else "a median of no time"


def by_file(arms: list[Result]) -> Result:
    """Return an arm with one sample per file: its median."""
    return stats.replace_samples(arms[0], [arm.median for arm in arms])


def smallest_p(n: int, m: int) -> float:
    """Return the least p-value of ``n`` files against ``m``.

    One way to deal them has all slow ones on one side; with equally many files on
    both sides, two.
    """
    return (1 + (n == m)) / math.comb(n + m, n)


def judge_pairs(pairs: Sequence[tuple[Result, Result]], threshold: float) -> list[Cell]:
    """Return the verdict on each pair (before, after), the worst first."""
    import numpy as np

    p_values = [1.0] * len(pairs)
    if smallest_p(*(len(side.samples) for side in pairs[0])) <= ALPHA:
        sides = zip(*((a.samples, b.samples) for a, b in pairs), strict=True)
        p_values = stats.p_of_sides(*(np.log(np.asarray(side)) for side in sides))
    cells = [
        _cell(*pair, threshold, p) for pair, p in zip(pairs, p_values, strict=True)
    ]
    rank = (SLOWER, UNPROVEN, FASTER).index
    return sorted(cells, key=lambda cell: (rank(cell.verdict), cell.ratio.ratio))


def _cell(before: Result, after: Result, threshold: float, p: float) -> Cell:
    ratio = stats.compute_ratio(before, after)
    low, high = ratio.ci95
    verdict = UNPROVEN
    if p <= ALPHA and high < 1 / (1 + threshold):
        verdict = SLOWER
    elif p <= ALPHA and low > 1 + threshold:
        verdict = FASTER
    proven = verdict != UNPROVEN
    return Cell(before, after, replace(ratio, significant=proven), p, verdict)


class Comparison:
    """The comparison of two sides; raises if they have nothing in common."""

    def __init__(self, before: Side, after: Side, threshold: float) -> None:
        self.sides, self.threshold = (before, after), threshold
        refuse_emulation({**before.files, **after.files})
        self.counts_work = next(iter(before.files.values())).counts_work
        old, new = before.arms, after.arms
        common = [key for key in old if key in new]
        names = f"{before.label} and {after.label}"
        if not common:
            raise UsageError(f"{names} have no scenario and variant in common")
        self.only = [k for k in old if k not in new], [k for k in new if k not in old]
        many = len(before.files), len(after.files)
        self.unlike = {
            k: why for k in common if (why := explain_mismatch(old[k], new[k], many))
        }
        like = [key for key in common if key not in self.unlike]
        if not like:
            key, why = next(iter(self.unlike.items()))
            raise UsageError(f"nothing in {names} compares: {', '.join(key)}: {why}")
        refuse_copies(before, after)
        pairs = [(by_file(old[key]), by_file(new[key])) for key in like]
        self.cells = judge_pairs(pairs, threshold)

    def warnings(self) -> Iterator[str]:
        """Return differences of the machines, and outputs that were wrong."""
        facts_by_side = [
            [*map(conditions.list_facts, side.files.values())] for side in self.sides
        ]
        for fact in {
            fact: 1 for side in facts_by_side for machine in side for fact in machine
        }:
            old, new = (
                {machine.get(fact, UNKNOWN): 1 for machine in side}
                for side in facts_by_side
            )
            if len({**old, **new}) > 1:
                yield f"different {fact}: {', '.join(old)} in A, {', '.join(new)} in B"
        for side in self.sides:
            for name, document in side.files.items():
                if failed := ", ".join(check.name for check in document.failed):
                    yield f"{name}: checks failed: {failed}"

    def json(self) -> dict[str, Any]:
        """Return the table's content and the p-values."""
        before, after = (
            {"files": [*side.files], "revisions": side.revisions} for side in self.sides
        )
        return {
            "schema_version": SCHEMA_VERSION,
            "before": before,
            "after": after,
            "threshold": self.threshold,
            "alpha": ALPHA,
            "correction": "max-T",
            "warnings": [*self.warnings()],
            "cells": [*map(_cell_json, self.cells)],
            "only_in_before": [*map(_key_json, self.only[0])],
            "only_in_after": [*map(_key_json, self.only[1])],
            "not_comparable": [
                {**_key_json(key), "why": why} for key, why in self.unlike.items()
            ],
        }

    def heading(self) -> Iterator[str]:
        """Return the lines above the table."""
        for side in self.sides:
            revisions = ", ".join(side.revisions)
            yield f"{side.letter}: {side.label}, revision {revisions}"
            yield f"   {conditions.list_footnotes(next(iter(side.files.values())))[0]}"
        yield from (f"warning: {line}" for line in self.warnings())

    def make_table(self) -> Table:
        """Return the table."""
        work = self.counts_work
        medians = ("A instructions", "B instructions") if work else ("A", "B")
        gain = "fewer" if work else "faster"
        rows = [_row(cell) for cell in self.cells]
        return Table(("scenario", "variant", *medians, gain, ""), rows, medians, 2)

    def notes(self, *, all_rows: bool) -> Iterator[str]:
        """Return the lines below the table."""
        meaning = result_tables.FEWER if self.counts_work else result_tables.FASTER
        yield f"A is the base. {meaning}"
        yield PROOF.format(self.threshold * 100)
        yield from ("~ neither is proven", result_tables.BRACKETS)
        n, m = (len(side.files) for side in self.sides)
        if smallest_p(n, m) > ALPHA:
            need = next(k for k in count(1) if smallest_p(k, k) <= ALPHA)
            note = f"{n} and {m} files prove nothing: a file is one sample; run each"
            yield f"{note} build {need} times or more, in turn, and give all the files"
        for side, keys in zip(self.sides, self.only, strict=True):
            if keys:
                yield f"only in {side.letter}: {_name_arms(keys, all_rows=all_rows)}"
        for why in dict.fromkeys(self.unlike.values()):
            keys = [key for key, reason in self.unlike.items() if reason == why]
            yield f"not compared: {_name_arms(keys, all_rows=all_rows)}: {why}"
        if self.counts_work:
            yield conditions.describe_emulation(
                next(iter(self.sides[0].files.values()))
            )


def _name_arms(keys: list[Key], *, all_rows: bool) -> str:
    """Return arms by scenario, or how many there are of them."""
    variants: dict[str, list[str]] = {}
    for scenario, variant in keys:
        variants.setdefault(scenario, []).append(variant)
    if len(keys) > FEW and not all_rows:
        counts = f"{len(keys)} variants of {len(variants)} scenarios"
        return f"{counts} (--all-rows names them)"
    return "; ".join(f"{name}: {', '.join(arms)}" for name, arms in variants.items())


def _key_json(key: Key) -> dict[str, str]:
    return dict(zip(("scenario", "variant"), key, strict=True))


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        **_key_json(cell.before.key),
        "verdict": cell.verdict,
        "unit": cell.before.unit,
        "ratio": cell.ratio.ratio,
        "spread": cell.ratio.spread,
        "ci95": list(cell.ratio.ci95),
        "median_before": cell.before.median,
        "median_after": cell.after.median,
        "p": cell.p,
    }


def _row(cell: Cell) -> tuple[str, ...]:
    return (
        cell.before.scenario,
        cell.before.variant,
        result_tables.format_value(cell.before.median, cell.before.unit),
        result_tables.format_value(cell.after.median, cell.after.unit),
        result_tables.format_ratio(cell.ratio),
        "" if cell.verdict == UNPROVEN else cell.verdict,
    )


def run_compare(args: argparse.Namespace) -> int:
    """Compare; the exit code tells whether something is proven slower."""
    if args.json and args.format == "mmtests":
        raise UsageError("--json and --format mmtests differ: give one")
    threshold = parse_threshold(args.threshold)
    comparison = Comparison(*read_sides([str(word) for word in args.files]), threshold)
    if args.json:
        print(json.dumps(comparison.json(), indent=1))
    elif args.format == "mmtests":
        before, after = (side.revisions[0] for side in comparison.sides)
        pairs = [(cell.before, cell.after) for cell in comparison.cells]
        print("\n".join(mmtests.format_comparison(pairs, (before, after))))
    else:
        print_lines(comparison.heading())
        comparison.make_table().print()
        print_lines(comparison.notes(all_rows=args.all_rows))
    slower = sum(cell.verdict == SLOWER for cell in comparison.cells)
    if slower:
        of = f"{slower} of {len(comparison.cells)}"
        message = f"bulkmm: {of} slower by more than {threshold * 100:g} %\n"
        sys.stderr.write(message)
    return Exit.VERDICT if slower else Exit.OK
