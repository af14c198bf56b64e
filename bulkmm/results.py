# SPDX-License-Identifier: GPL-2.0-only
"""The result document: the JSON output of a lab or bench run.

Schema version 1. ``samples`` in a bench are independent: the medians of processes,
whose single times are ``raw``. In the lab they are the visits of one boot.
``ratios`` are always time of the base / time of the variant, so above 1 is faster
than the base; with a unit of work, work of the base / work of the variant.
``ci95`` of either is a 95 % interval only if n is large enough: see ``spread_of``.
"""

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, cast

from bulkmm import files
from bulkmm.errors import BulkmmError, UsageError

SCHEMA_VERSION = 1
INTERVAL, RANGE = "95 %", "range"
INTERVAL_LEAST = 6  # samples: no interval of fewer covers 95 %
CONTROLLED_LEAST = 3  # processes that can prove something with a control
HANDFUL = 5  # ratios shown side by side without a correction
ALPHA = 0.05  # chance of any false positive among proven ratios
# unit of a sample: a time, or an emulated guest's work
NS, INSTRUCTIONS, STORES = UNITS = ("ns", "instructions", "stores")
ACCELERATORS = ("native", "KVM", "TCG")


def spread_of(n: int) -> str:
    """Return the meaning of ``ci95`` for n samples; "" for one, without spread."""
    if n == 1:
        return ""
    # 0: a ratio written before n was recorded
    return INTERVAL if n == 0 or n >= INTERVAL_LEAST else RANGE


def _chance(n: int) -> float:
    """Return the chance that n processes prove a ratio falsely (see stats)."""
    return 2.0 ** (1 - n) / math.comb(2 * n, n)


def _is_number(value: object) -> bool:
    """Return whether this is a finite number >= 0, like times and sizes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0


def _check_spread(name: str, value: object, ci95: object) -> None:
    """Raise ValueError unless the median is a number and ``ci95`` a pair."""
    if not isinstance(ci95, list | tuple) or len(ci95) != 2:  # noqa: PLR2004
        raise ValueError(f"{name}: ci95 is no pair")
    if not all(map(_is_number, (value, *ci95))):
        raise ValueError(f"{name}: a median, ratio or end is no number of at least 0")


# Shapes of the optional members read from a document's machine and run: a type, a
# list of one shape, the shapes of a list's elements, or of members by name.
MACHINE: dict[str, Any] = {
    "cpu": {"affinity": [int], "mitigations": {}},
    "guest": {},
}
RUN: dict[str, Any] = {
    "load": (float, float),
    "steal": float,
    "bytes": float,
    "huge_bytes": float,
    "picks": {"*": {"*": str}},
    "breakdown": [{"operation": str, "variant": str, "ns": float}],
}


def _fits(held: object, shape: Any) -> bool:  # noqa: ANN401 - see MACHINE
    """Return whether a value has a shape; members without a shape are ignored."""
    if isinstance(shape, dict):
        return isinstance(held, dict) and all(
            _fits(value, shape.get(name, shape.get("*", object)))
            for name, value in held.items()
        )
    if isinstance(shape, list):
        return isinstance(held, list) and all(_fits(one, shape[0]) for one in held)
    if isinstance(shape, tuple):
        many = isinstance(held, list) and len(held) == len(shape)
        return many and all(map(_fits, cast("list[Any]", held), shape))
    return _is_number(held) if shape is float else isinstance(held, shape)


def _check_members(what: str, held: dict[str, Any], shapes: dict[str, Any]) -> None:
    """Raise ValueError if a present member has the wrong shape."""
    for name in held.keys() & shapes:
        if not isinstance(held[name], dict) and isinstance(shapes[name], dict):
            raise ValueError(f"{what}: {name} is no object")  # noqa: TRY004
        if not _fits(held[name], shapes[name]):
            raise ValueError(f"{what}: {name} is not as bulkmm writes it")


@dataclass
class Result:
    """One arm of one scenario, with all samples in order of measurement."""

    scenario: str
    variant: str
    unit: str  # of UNITS
    bytes: int  # bytes written by one operation
    samples: list[float]
    median: float
    ci95: tuple[float, float]  # see spread_of()
    raw: list[list[int]] = field(default_factory=list)  # by process, by round
    cv: float | None = None  # coefficient of variation of the samples

    @property
    def spread(self) -> str:
        """Return the meaning of ``ci95``."""
        return spread_of(len(self.samples))

    def check(self) -> None:
        """Raise ValueError if a name, a size or a time is invalid."""
        name = f"{self.scenario}, {self.variant}"
        if not (isinstance(self.scenario, str) and isinstance(self.variant, str)):
            raise ValueError(f"{name}: a name is no text")  # noqa: TRY004
        if self.unit not in UNITS or not _is_number(self.bytes):
            units = ", ".join(UNITS)
            raise ValueError(f"{name}: unit is none of {units}, or bytes is no number")
        if not isinstance(self.samples, list) or not self.samples:
            raise ValueError(f"{name}: no samples")
        if not all(map(_is_number, self.samples)):
            raise ValueError(f"{name}: a sample is no number of at least 0")
        _check_spread(name, self.median, self.ci95)
        if not _fits(self.raw, [[float]]) or len(self.raw) not in (
            0,
            len(self.samples),
        ):
            raise ValueError(f"{name}: raw has not a list of times for each sample")
        if self.cv is not None and not _is_number(self.cv):
            raise ValueError(f"{name}: cv is no number of at least 0")


@dataclass
class Ratio:
    """Time, or work, of the base divided by that of the variant."""

    scenario: str
    base: str
    variant: str
    ratio: float
    ci95: tuple[float, float]  # see spread_of()
    significant: bool
    n: int = 0  # independent samples, or pairs of them; 0: unknown
    unstable: bool = False  # the A/A control moved by more
    unit: str = NS

    @property
    def spread(self) -> str:
        """Return the meaning of ``ci95``."""
        return spread_of(self.n)

    def check(self) -> None:
        """Raise ValueError if a name or a number is invalid."""
        name = f"{self.scenario}, {self.base} / {self.variant}"
        names = [self.scenario, self.base, self.variant, self.unit]
        if not _fits(names, [str]) or self.unit not in UNITS:
            raise ValueError(f"{name}: a name is no text, or the unit not known")
        _check_spread(name, self.ratio, self.ci95)
        if not (isinstance(self.n, int) and self.n >= 0):
            raise ValueError(f"{name}: n is no number of at least 0")
        if not _fits([self.significant, self.unstable], [bool]):
            raise ValueError(f"{name}: significant or unstable is not true or false")


Measured = tuple[list[Result], list[Ratio]]


@dataclass
class Check:
    """A correctness check: name, verdict, and details."""

    name: str
    ok: bool
    detail: str

    def check(self) -> None:
        """Raise ValueError if a member has the wrong type."""
        if not _fits([self.name, self.ok, self.detail], (str, bool, str)):
            raise ValueError(f"check {self.name}: not two texts and true or false")


def _corrected(ratios: list[Ratio]) -> list[Ratio]:
    """Return ratios, clearing "proven" of those shown beside too many others.

    Scenarios of one kind share a table, with a cell for each variant. From
    INTERVAL_LEAST processes on, ratios were judged together when measured.
    """
    cells = {(r.scenario, r.variant) for r in ratios if ":" not in r.base + r.variant}
    beside = Counter(scenario.partition("-")[0] for scenario, _ in cells)

    def too_many(ratio: Ratio) -> bool:
        many = beside[ratio.scenario.partition("-")[0]]
        few = 0 < ratio.n < INTERVAL_LEAST
        return few and many > HANDFUL and _chance(ratio.n) * many > ALPHA

    return [replace(r, significant=False) if too_many(r) else r for r in ratios]


def _lines(held: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    """Return a member of a document: its rows without empty fields."""
    if not isinstance(held, list):
        return json.dumps(held, separators=(",", ":"))
    full = [{k: v for k, v in row.items() if v not in ([], None)} for row in held]
    return "[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in full) + "]"


@dataclass
class Document:
    """The complete result of one run."""

    machine: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    @property
    def emulated(self) -> bool:
        """Return whether it was emulated, so its times are not of hardware."""
        return self.machine.get("accelerator") == "TCG"

    @property
    def counted(self) -> bool:
        """Return whether work is printed instead of times."""
        return self.emulated and any(r.unit == INSTRUCTIONS for r in self.results)

    @property
    def scenarios(self) -> list[str]:
        """Return its scenarios, in order of measurement."""
        return list(dict.fromkeys(result.scenario for result in self.results))

    @property
    def failed(self) -> list[Check]:
        """Return the failed checks."""
        return [check for check in self.checks if not check.ok]

    @property
    def verdict(self) -> str:
        """Return the verdict of its checks."""
        many = len(self.checks)
        said = "FAILED" if self.failed else "passed"
        return f"{said} {many - len(self.failed)} of {many}"

    def printed(self) -> Self:
        """Return the part that is printed: work if emulated, else times.

        If no work was counted, emulated times remain, but not their ratios.
        """
        units = (INSTRUCTIONS, STORES) if self.counted else (NS,)
        rated = units if self.counted or not self.emulated else ()
        ratios = [r for r in self.ratios if r.unit in rated]
        return replace(
            self,
            results=[r for r in self.results if r.unit in units],
            ratios=_corrected(ratios),
        )

    def to_json(self) -> str:
        """Return the document as JSON, one line per row, keys in a stable order."""
        ordered = {"schema_version": self.schema_version, **asdict(self)}
        members = (f'"{name}":{_lines(held)}' for name, held in ordered.items())
        return "{" + ",\n".join(members) + "}\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the document in a file; raise an error that explains invalid ones."""
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            if held["schema_version"] != SCHEMA_VERSION:
                version = held["schema_version"]
                raise BulkmmError(f"{path}: schema version {version} is not known")
            document = cls(
                machine=held["machine"],
                results=[Result(**r) for r in held["results"]],
                ratios=[Ratio(**r) for r in held["ratios"]],
                checks=[Check(**c) for c in held["checks"]],
                run=held["run"],
            )
            document.check()
        except OSError as error:
            raise BulkmmError(f"{path}: {error.strerror}") from error
        except KeyError as error:
            message = f"{path}: not a bulkmm result: {error} is missing"
            raise BulkmmError(message) from error
        except (ValueError, TypeError) as error:
            raise BulkmmError(f"{path}: not a bulkmm result: {error}") from error
        return document

    @classmethod
    def read_all(cls, paths: list[Path]) -> list[Self]:
        """Return the documents in files; raise if one is given twice."""
        if len({*paths}) < len(paths):
            raise UsageError("a result is given twice")
        return [cls.read(path) for path in paths]

    def check(self) -> None:
        """Raise ValueError for wrong values that only a file read can contain."""
        if not (isinstance(self.machine, dict) and isinstance(self.run, dict)):
            raise ValueError("machine or run is no object")  # noqa: TRY004
        known = self.machine.get("accelerator")
        if known not in ACCELERATORS:
            raise ValueError(f"accelerator {known!r} is not known")
        _check_members("machine", self.machine, MACHINE)
        _check_members("run", self.run, RUN)
        for ratio in self.ratios:
            ratio.check()
        for check in self.checks:
            check.check()
        seen = set()
        for result in self.results:
            result.check()
            key = result.scenario, result.variant, result.unit
            if key in seen:
                raise ValueError(f"{', '.join(key[:2])} is there twice")
            seen.add(key)

    def write(self, path: Path) -> None:
        """Write the document atomically."""
        files.write(path, self.to_json(), "the result")
