# SPDX-License-Identifier: GPL-2.0-only
"""The two sides of a comparison: the results of each build, a sample per file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bulkmm import facts, stats
from bulkmm.errors import UsageError
from bulkmm.results import STORES, Document, Result

Key = tuple[str, str]  # scenario, variant

UNKNOWN = "unknown"
DASHES = "--"


@dataclass(frozen=True)
class Side:
    """The results of one build; each file is a sample."""

    letter: str
    names: list[str]
    documents: list[Document]

    @classmethod
    def read(cls, letter: str, names: list[str]) -> Self:
        """Return the results in some files."""
        documents = [Document.read(Path(name)) for name in names]
        for i, one in enumerate(documents):
            before = [other.results for other in documents[:i] if other.results]
            if one.results in before:
                raise UsageError(f"{names[i]} is a copy of a file beside it")
        return cls(letter, names, documents)

    def arms(self) -> dict[Key, list[Result]]:
        """Return the arms that every file has, by key."""
        found: dict[Key, list[Result]] = {}
        for document in self.documents:
            for one in document.printed().results:
                if one.unit != STORES:
                    found.setdefault((one.scenario, one.variant), []).append(one)
        return {k: held for k, held in found.items() if len(held) == len(self.names)}

    def revisions(self) -> list[str]:
        """Return what was measured."""
        known = (one.machine.get("revision") or UNKNOWN for one in self.documents)
        return list(dict.fromkeys(map(str, known)))

    def said(self) -> str:
        """Return the names of the files, or of the first and the last of many."""
        first, *_, last = (self.names[0], *self.names)
        return first if first == last else f"{first} … {last} ({len(self.names)} files)"


def read(words: Sequence[str]) -> tuple[Side, Side]:
    """Return the sides that a command's arguments name."""
    before, after = split(words)
    return Side.read("A", before), Side.read("B", after)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files of each side."""
    dashes = [i for i, word in enumerate(words) if word == DASHES]
    if not dashes and len(words) == 2:  # noqa: PLR2004 - one per side
        dashes, words = [1], [words[0], DASHES, words[1]]
    if len(dashes) != 1 or not 0 < dashes[0] < len(words) - 1:
        how = "as in: bulkmm compare A*.json -- B*.json"
        raise UsageError(f"give files before and after, parted by one --, {how}")
    before, after = list(words[: dashes[0]]), list(words[dashes[0] + 1 :])
    for side in (before, after):
        seen: set[Path] = set()
        for name in side:
            if (place := Path(name).resolve()) in seen:
                raise UsageError(f"{name} is given twice: a file is one sample")
            seen.add(place)
    return before, after


def by_file(arms: list[Result]) -> Result:
    """Return an arm with one sample per file: its median."""
    one = arms[0]
    medians = [arm.median for arm in arms]
    return stats.summarise(one.scenario, one.variant, one.unit, one.bytes, medians)


def refuse_emulation(before: Side, after: Side) -> None:
    """Reject comparing times of hardware with others."""
    emulated, native = (
        [
            (name, document)
            for side in (before, after)
            for name, document in zip(side.names, side.documents, strict=True)
            if document.emulated is kind
        ]
        for kind in (True, False)
    )
    if emulated and native:
        said = f"{emulated[0][0]} is emulated (TCG), {native[0][0]} is not"
        raise UsageError(f"{said}: emulated time does not compare with real time")
    for name, document in emulated:
        if not document.counted:
            said = "emulated times do not compare, and no work was counted"
            raise UsageError(f"{name}: {said}")


def warnings(before: Side, after: Side) -> list[str]:
    """Return differences of the machines, and outputs that were wrong."""
    held = [list(map(facts.facts, side.documents)) for side in (before, after)]
    found = []
    for what in {what: 1 for side in held for one in side for what in one}:
        known = [dict.fromkeys(one.get(what, UNKNOWN) for one in side) for side in held]
        if len({*known[0], *known[1]}) > 1:
            a, b = (", ".join(values) for values in known)
            found.append(f"different {what}: {a} in A, {b} in B")
    for side in (before, after):
        for name, document in zip(side.names, side.documents, strict=True):
            if failed := ", ".join(check.name for check in document.failed):
                found.append(f"{name}: checks failed: {failed}")
    return found
