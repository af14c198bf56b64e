# SPDX-License-Identifier: GPL-2.0-only
"""The result document: the JSON output of a lab or bench run.

``bulkmm show --schema`` prints its schema, which is generated from these types.
``samples`` in a bench are independent: the medians of processes, whose single
times are ``raw``. In the lab they are the visits of one boot. ``ratios`` are
always time of the base / time of the variant, so above 1 is faster than the base;
with a unit of work, work of the base / work of the variant. ``ci95`` of either is
a 95 % interval only if n is large enough: see ``spread_of``.

``scenario`` and ``variant`` are names for people, and join ratios to results. What they
mean is in the other fields of a result; nothing reads it out of the names but
``row_names``, when the result is recorded.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Required, Self, TypedDict

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from bulkmm.shell import files
from bulkmm.shell.errors import BulkmmError

SCHEMA_VERSION = 2
OLDER = (
    "is older than {}: convert the file, in a source checkout, with "
    "scripts/convert_results.py"
)
Key = tuple[str, str]  # scenario, variant
BULKMM = "bulkmm"
LIMIT = "limit"  # no peer: nothing can beat it
AGAIN = "again"  # measured twice: the A/A control
INTERVAL, RANGE = "95 %", "range"
INTERVAL_LEAST = 6  # samples: no interval of fewer covers 95 %
ALPHA = 0.05  # chance of any false positive among proven ratios
# unit of a sample: a time, or instructions by the clock of an emulated guest
NS, INSTRUCTIONS = "ns", "instructions"
STORES = "stores"  # of results of 0.1; not shown
ACCELERATORS = ("native", "KVM", "TCG")

Number = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Spread = tuple[Number, Number]
WORK = "Work is counted in an emulated guest, whose times measure nothing"
Unit = Annotated[
    str, Meta(pattern=f"^({NS}|{INSTRUCTIONS}|{STORES})$", description=WORK)
]


def spread_of(n: int) -> str:
    """Return the meaning of ``ci95`` for n samples; "" for one, without spread."""
    if n == 1:
        return ""
    # 0: a ratio written before n was recorded
    return INTERVAL if n == 0 or n >= INTERVAL_LEAST else RANGE


def _describe(text: str) -> Meta:
    return Meta(description=text)


class Result(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One arm of one scenario, with all samples in order of measurement."""

    scenario: Annotated[str, _describe("What was done, as shown")]
    variant: Annotated[str, _describe("Who did it and how, as shown")]
    operation: Annotated[str, _describe("clear, copy, memmap, populate, vmap, …")]
    size: Annotated[
        Count,
        _describe("Bytes of an extent, folio, range or device; 0: it has none"),
    ] = 0
    memory: Annotated[
        str,
        _describe("Its kind: thp, pmem-fsdax, …; of vmap its pages, such as order8"),
    ] = ""
    placement: Annotated[
        str,
        _describe("Of source, destination or what is used: misaligned, far, last, …"),
    ] = ""
    use: Annotated[
        str,
        _describe(
            "What for: again (it is in the cache), then-read, populate, …; of "
            "first-use what is done at first. Without: it is cold, and not used"
        ),
    ] = ""
    arm: Annotated[str, _describe("Whose code: bulkmm, glibc, stock, on, limit, …")]
    call: Annotated[str, _describe("Which of its calls: cached, streaming, …")] = ""
    backend: Annotated[
        str,
        _describe("Backend that was forced, or kind of the limit. Without: picked"),
    ] = ""
    threads: Annotated[int, Meta(ge=1)] = 1
    control: Annotated[
        Literal["", "again", "aligned"],
        _describe("again: the A/A control; aligned: the same, of aligned memory"),
    ] = ""
    unit: Unit
    bytes: Annotated[Count, Meta(description="Written by one operation")]
    samples: Annotated[list[Number], Meta(min_length=1)]
    median: Number
    ci95: Spread  # see spread_of()
    raw: Annotated[
        list[list[Count]], Meta(description="Times by process, by round")
    ] = field(default_factory=list)
    cv: Annotated[
        Number | None, Meta(description="Coefficient of variation of the samples")
    ] = None

    @property
    def spread(self) -> str:
        """Return the meaning of ``ci95``."""
        return spread_of(len(self.samples))

    @property
    def key(self) -> Key:
        """Return what ratios and picks name it by."""
        return self.scenario, self.variant

    @property
    def way(self) -> str:
        """Return arm, call and control: all of a variant but threads and backend."""
        return "-".join(filter(None, (self.arm, self.call, self.control)))

    @property
    def is_sized(self) -> bool:
        """Return whether it is of an operation that is measured over many sizes."""
        return self.operation in ("clear", "copy") and not self.memory and self.size > 0

    def matches(self, wanted: Mapping[str, object]) -> bool:
        """Return whether fields are as wanted: a value, or any of several."""
        return all(
            getattr(self, name) in values
            if isinstance(values, tuple | range)
            else getattr(self, name) == values
            for name, values in wanted.items()
        )


class Ratio(Struct, forbid_unknown_fields=True):
    """Time, or work, of the base divided by that of the variant."""

    scenario: str
    base: str
    variant: str
    ratio: Number
    ci95: Spread  # see spread_of()
    significant: bool
    n: Annotated[Count, Meta(description="Samples, or pairs; 0: unknown")] = 0
    unstable: Annotated[
        bool, Meta(description="In any process the A/A control moved by more")
    ] = False
    unit: Unit = NS

    @property
    def spread(self) -> str:
        """Return the meaning of ``ci95``."""
        return spread_of(self.n)


Measurement = tuple[list[Result], list[Ratio]]


class Check(Struct, forbid_unknown_fields=True):
    """A correctness check: name, verdict, and details."""

    name: str
    ok: bool
    detail: str


def _format_rows(member: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    """Return a member of a document: its rows without empty fields."""
    if not isinstance(member, list):
        return json.dumps(member, separators=(",", ":"))
    full = [{k: v for k, v in row.items() if v not in ([], None)} for row in member]
    return "[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in full) + "]"


class Document(Struct):
    """The complete result of one run."""

    machine: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def emulated(self) -> bool:
        """Return whether it was emulated, so its times are not of hardware."""
        return self.machine.get("accelerator") == "TCG"

    @property
    def counts_work(self) -> bool:
        """Return whether work is printed instead of times."""
        return self.emulated and any(r.unit == INSTRUCTIONS for r in self.results)

    @property
    def has_stores(self) -> bool:
        """Return whether it was counted as 0.1 did: a string instruction as one."""
        return any(r.unit == STORES for r in self.results)

    @property
    def scenarios(self) -> list[str]:
        """Return its scenarios, in order of measurement."""
        return list(dict.fromkeys(result.scenario for result in self.results))

    @property
    def arms(self) -> dict[Key, Result]:
        """Return its results by scenario and variant."""
        return {result.key: result for result in self.results}

    @property
    def failed(self) -> list[Check]:
        """Return the failed checks."""
        return [check for check in self.checks if not check.ok]

    @property
    def verdict(self) -> str:
        """Return the verdict of its checks."""
        many = len(self.checks)
        outcome = "FAILED" if self.failed else "passed"
        return f"{outcome} {many - len(self.failed)} of {many}"

    def printed(self) -> Self:
        """Return the part that is printed: work if emulated, else times.

        If no work was counted, emulated times remain, but not their ratios.
        """
        unit = INSTRUCTIONS if self.counts_work else NS
        rated = self.counts_work or not self.emulated
        return replace(
            self,
            results=[r for r in self.results if r.unit == unit],
            ratios=[r for r in self.ratios if rated and r.unit == unit],
        )

    def to_json(self) -> str:
        """Return the document as JSON, one line per row, keys in a stable order."""
        ordered = {"schema_version": SCHEMA_VERSION, **msgspec.to_builtins(self)}
        members = (f'"{name}":{_format_rows(held)}' for name, held in ordered.items())
        return "{" + ",\n".join(members) + "}\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the document in a file; raise an error that explains invalid ones."""
        try:
            content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
            _check_kind(content)
            version = content["schema_version"]
            if version != SCHEMA_VERSION:
                older = isinstance(version, int) and version < SCHEMA_VERSION
                why = OLDER.format(SCHEMA_VERSION) if older else "is not known"
                raise BulkmmError(f"{path}: schema version {version} {why}")
            msgspec.convert(content, File).check()
            return msgspec.convert(content, cls)
        except (ValueError, RecursionError) as error:
            raise BulkmmError(f"{path}: not a bulkmm result: {error}") from error

    def write(self, path: Path) -> None:
        """Write the document atomically."""
        files.write_file(path, self.to_json(), "the result")


def _check_kind(content: dict[str, Any]) -> None:
    """Reject a document of another command's, or of another program's."""
    if kind := content.get("kind"):
        takes = ": bulkmm report and worth --compare take it" if kind == "worth" else ""
        raise ValueError(f'it is of the kind "{kind}"{takes}')
    if "schema_version" not in content:
        raise ValueError("it is no file that -o of bulkmm bench or lab wrote")


# What is read of a machine and a run; both have further members.
class Cpu(TypedDict, total=False):
    """The CPU."""

    affinity: list[Count]
    mitigations: dict[str, Any]


class Machine(TypedDict, total=False):
    """What the figures were taken on; no host name, no path."""

    accelerator: Required[Literal["native", "KVM", "TCG"]]
    cpu: Cpu
    guest: dict[str, Any]


class Run(TypedDict, total=False):
    """What was asked for, and what else the run saw.

    Of several subjects, members of one as in ``clear.rounds``.
    """

    load: Annotated[Spread, Meta(description="Of a minute, before and after")]
    steal: Annotated[Number, Meta(description="Share of the CPU time, by a hypervisor")]
    bytes: Annotated[Count, Meta(description="Memory that the bench worked in")]
    huge_bytes: Annotated[Number, Meta(description="Of these, in huge pages")]
    picks: Annotated[
        dict[str, dict[str, str]],
        Meta(description="Backend that served, by scenario and variant"),
    ]
    argv: Annotated[list[str], Meta(description="The command, without bulkmm")]


class File(Struct, forbid_unknown_fields=True):
    """What a file must hold to be a document."""

    schema_version: Literal[2]
    machine: Machine
    results: list[Result]
    ratios: list[Ratio]
    checks: list[Check]
    run: Run

    def check(self) -> None:
        """Raise ValueError for rows that do not agree."""
        keys = set()
        for result in self.results:
            key = result.scenario, result.variant, result.unit
            name = ", ".join(key[:2])
            if len(result.raw) not in (0, len(result.samples)):
                raise ValueError(f"{name}: raw needs a list of times for each sample")
            if key in keys:
                raise ValueError(f"{name} is there twice")
            keys.add(key)
        for ratio in self.ratios:
            for name in (ratio.base, ratio.variant):
                if (ratio.scenario, name, ratio.unit) not in keys:
                    raise ValueError(f"{ratio.scenario}, {name}: a ratio of no result")


def format_schema() -> str:
    """Return the JSON schema of a document."""
    return json.dumps(msgspec.json.schema(File), indent=1)
