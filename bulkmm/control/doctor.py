# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor``: what would attach on this kernel, and what not, and why.

A loaded module reports its hooks. What it has not tried yet, or everything if it
is not loaded, is judged by the kernel's information on the functions.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from bulkmm.control import checks, requirements, symbols, usefulness
from bulkmm.control import module as modules
from bulkmm.control.btf import Types
from bulkmm.control.checks import Check
from bulkmm.control.devices import survey_devices
from bulkmm.control.format import wrap_columns
from bulkmm.control.json_output import Record
from bulkmm.control.kernel import CASES, Kernel
from bulkmm.control.module import KernelPath
from bulkmm.control.requirements import Requirements, Table
from bulkmm.control.symbols import Symbol
from bulkmm.control.system_files import SystemFiles
from bulkmm.control.usefulness import Fit
from bulkmm.shell.errors import BulkmmError, Exit
from bulkmm.shell.width import wrap_line, wrap_lines

ATTACHED, WOULD, WOULD_NOT = "attached", "would attach", "would not attach"
NOT_NEEDED, CANNOT, UNKNOWN = "not needed", "cannot serve", "unknown"
BLOCKING = ("architecture", "kernel", "kernel.ftrace_enabled")
BTF = "/sys/kernel/btf/vmlinux"
MARKS = {checks.OK: "ok", checks.CARE: "care", checks.NO: "NO", checks.UNKNOWN: "?"}
INLINED = (
    "this kernel has the allocator's clearing inlined: of the two times that anonymous "
    "huge pages are cleared, the first stays as it is"
)
Finding = tuple[str, str]  # the verdict that it makes for, and why


@dataclass(frozen=True)
class Verdict:
    """The findings for one path."""

    name: str
    verdict: str  # ATTACHED and so on
    reasons: list[str]
    symbols: list[Symbol]


@dataclass(frozen=True, kw_only=True)
class Diagnosis(Record):
    """Printed by doctor: the answer, what is in the way, what to do about it."""

    kind: Literal["doctor"] = "doctor"
    release: str
    exit_code: int
    verdict: str
    blockers: list[str]
    remedies: list[str]
    checks: list[Check]
    paths: list[Verdict]
    fit: Fit  # whether this machine has work for the module

    def format_lines(self) -> list[str]:
        """Return it as text; remedies are left whole, since users copy them."""
        fit = f"{self.fit.verdict} ({usefulness.MEANINGS[self.fit.verdict]})"
        output = [*wrap_line(self.verdict), "", *wrap_line(f"for this machine: {fit}")]
        output += wrap_lines(f"  {why}" for why in self.fit.reasons)
        if self.blockers:
            lines = wrap_lines(f"  {line}" for line in self.blockers)
            output += ["", "in the way:", *lines]
        if self.remedies:
            output += ["", "what to do:", *(f"  {line}" for line in self.remedies)]
        output.append("")
        for path in self.paths:
            # what is in the way stands above
            whys = path.reasons if path.verdict not in (WOULD_NOT, UNKNOWN) else ()
            why = f": {'; '.join(whys)}" if whys else ""
            output += wrap_line(f"{path.name}: {path.verdict}{why}")
        rows = [(MARKS[one.state], one.name, one.says) for one in self.checks]
        return [*output, "", *wrap_columns(rows)]


@dataclass(frozen=True)
class Evidence:
    """What is known of the kernel."""

    kernel: Kernel
    checks: list[Check]
    symbols: dict[str, Symbol]
    types: Types | None
    prototypes: dict[str, list[str]]


def print_diagnosis(args: argparse.Namespace) -> int:
    """Print what would attach on this kernel."""
    diagnosis = examine_kernel(SystemFiles.from_argument(args.root))
    diagnosis.print_output(diagnosis.format_lines(), as_json=args.json)
    return diagnosis.exit_code


def examine_kernel(root: SystemFiles) -> Diagnosis:
    """Inspect the kernel below a root."""
    table = requirements.read_table(root.read(checks.ARCHITECTURE) or "")
    kernel = Kernel(root)
    module = modules.read_module(root)
    loaded = {path.name: path for path in module.paths} if module else {}
    devices = survey_devices(root, module)
    results = checks.check_all(kernel, table, devices)
    names = [
        name for path in table.paths for name in path.symbols + path.without_functions
    ]
    functions = symbols.look_up(root, names)
    evidence = Evidence(
        kernel, results, functions, _read_types(root, table), table.prototypes
    )
    paths = [_judge_path(path, loaded.get(path.name), evidence) for path in table.paths]
    attach = {
        one.name: None if one.verdict == UNKNOWN else one.verdict in (ATTACHED, WOULD)
        for one in paths
        if one.verdict != NOT_NEEDED
    }
    return Diagnosis(
        release=kernel.release,
        exit_code=_exit_code(results, paths),
        verdict=_summarize_verdicts(kernel.release, paths),
        blockers=_list_blockers(results, paths),
        remedies=_list_remedies(results, paths),
        checks=results,
        paths=paths,
        fit=usefulness.judge_usefulness(kernel, devices, attach),
    )


def _exit_code(results: list[Check], paths: list[Verdict]) -> int:
    """Return 1 if something would not work, 3 if that is unknown, else 0."""
    verdicts = {path.verdict for path in paths}
    if WOULD_NOT in verdicts or any(one.state == checks.NO for one in results):
        return int(Exit.VERDICT)
    return int(Exit.ENVIRONMENT if UNKNOWN in verdicts else Exit.OK)


def _summarize_verdicts(release: str, paths: list[Verdict]) -> str:
    """Return the verdict in one sentence."""
    kinds: dict[str, list[str]] = {}
    for path in paths:
        kinds.setdefault(path.verdict, []).append(path.name)
    order = (WOULD_NOT, UNKNOWN, ATTACHED, WOULD, NOT_NEEDED, CANNOT)
    details = "; ".join(f"{', '.join(kinds[k])} {k}" for k in order if k in kinds)
    where = "this kernel" if release == UNKNOWN else release
    if {*kinds} == {UNKNOWN}:
        return f"what attaches on {where} is unknown: too little can be read"
    summary = "not all attach"
    if not {*kinds} - {WOULD_NOT, NOT_NEEDED, CANNOT}:
        summary = "nothing attaches"
    elif WOULD_NOT not in kinds:
        exception = f" but {', '.join(kinds[CANNOT])}" if CANNOT in kinds else ""
        summary = f"all{exception} attach"
        summary = f"unknown whether {summary}" if UNKNOWN in kinds else summary
    return f"{summary} on {where}: {details}"


def _list_blockers(results: list[Check], paths: list[Verdict]) -> list[str]:
    """Return each blocker once: those of all paths first, rest with their paths."""
    blocked = [path for path in paths if path.verdict in (WOULD_NOT, UNKNOWN)]
    names: dict[str, list[str]] = {}
    for path in blocked:
        for why in path.reasons:
            names.setdefault(why, []).append(path.name)
    several = len(blocked) > 1
    shared = [why for why in names if several and len(names[why]) == len(blocked)]
    shared = [*dict.fromkeys((*_list_failures(results), *shared))]
    rest = [f"{', '.join(names[why])}: {why}" for why in names if why not in shared]
    return shared + rest


def _list_remedies(results: list[Check], paths: list[Verdict]) -> list[str]:
    """Return the remedies, then the cautions unless a path would not work."""
    verdicts = {path.verdict for path in paths}
    states = [checks.NO]
    states += [checks.UNKNOWN] if UNKNOWN in verdicts else []
    states += [checks.CARE] if WOULD_NOT not in verdicts else []
    remedies = [one.remedy for state in states for one in results if one.state == state]
    for path in paths:
        if path.verdict in (WOULD_NOT, UNKNOWN):
            remedies += [symbol.remedy for symbol in path.symbols]
    return list(dict.fromkeys(filter(None, remedies)))


def _read_types(root: SystemFiles, table: Table) -> Types | None:
    """Return the kernel's types, against which the module checks prototypes."""
    members = chain(*(path.without_members for path in table.paths))
    structs = (member.partition(".")[0] for member in members)
    try:
        return Types(root.at(BTF).read_bytes(), [*table.prototypes, *structs])
    except (OSError, BulkmmError):
        return None


def _judge_path(
    path: Requirements, loaded: KernelPath | None, evidence: Evidence
) -> Verdict:
    functions = [evidence.symbols[name] for name in path.symbols]
    if loaded and loaded.hooks and loaded.hooks[0].attached:
        without = [f"without {h.symbol}: {h.why}" for h in loaded.hooks if h.errno]
        return Verdict(path.name, ATTACHED, without, functions)
    if name := _find_replacement(path, evidence):
        why = f"the kernel does its work itself: it has {name}"
        return Verdict(path.name, NOT_NEEDED, [why], functions)
    findings = [*_of_kernel(evidence), *_of_path(path, loaded, evidence)]
    kinds = {kind for kind, _ in findings}
    verdict = next((kind for kind in (WOULD_NOT, UNKNOWN) if kind in kinds), WOULD)
    reasons = [why for kind, why in dict.fromkeys(findings) if kind == verdict]
    # If the path has nothing to do here, its absence is no fault.
    case = evidence.kernel.zeroing
    if verdict == WOULD_NOT and path.only and case not in ("unknown", path.only):
        verdict = CANNOT if case == "twice" else NOT_NEEDED
        reasons = [INLINED if case == "twice" else CASES[case]]
    return Verdict(path.name, verdict, reasons, functions)


def _find_replacement(path: Requirements, evidence: Evidence) -> str | None:
    """Return what tells that the kernel does a path's work itself."""
    signs = [f"{n}()" for n in path.without_functions if evidence.symbols[n].count]
    if evidence.types:
        signs += filter(evidence.types.has_member, path.without_members)
    return next(iter(signs), None)


def _list_failures(results: list[Check]) -> list[str]:
    return [f"{one.name}: {one.says}" for one in results if one.state == checks.NO]


def _of_kernel(evidence: Evidence) -> Iterator[Finding]:
    """Yield what keeps every path from attaching."""
    yield from ((WOULD_NOT, why) for why in _list_failures(evidence.checks))
    for check in evidence.checks:
        if check.state == checks.UNKNOWN and check.name in BLOCKING:
            yield UNKNOWN, f"{check.name}: {check.says}"
    if evidence.kernel.config is None:
        yield UNKNOWN, "the kernel's configuration cannot be read"


def _of_path(
    path: Requirements, loaded: KernelPath | None, evidence: Evidence
) -> Iterator[Finding]:
    """Yield what keeps one path from attaching, or what it would make do without."""
    for hook in loaded.hooks[:1] if loaded else ():
        if hook.errno != modules.NOT_TRIED:
            yield WOULD_NOT, f"the module reports for {hook.symbol}: {hook.why}"
    for name in path.without_options:
        if evidence.kernel.has_option(name):
            yield WOULD_NOT, f"CONFIG_{name} is set"
    for name in path.with_options:
        if evidence.kernel.has_option(name) is False:
            yield WOULD_NOT, f"CONFIG_{name} is not set"
    yield from _of_functions(path, evidence)
    for name in (name for group in path.hooks.values() for name in group):
        if why := evidence.symbols[name].unknown:
            yield UNKNOWN, why
    if path.lender:
        yield from _of_lender(path.lender, evidence)


def _of_lender(path: Requirements, evidence: Evidence) -> Iterator[Finding]:
    """Yield what keeps the hooks of a path from another that needs them."""
    if sign := _find_replacement(path, evidence):
        why = f"{path.name}, whose hook it needs, stays off: the kernel has {sign}"
        yield WOULD_NOT, why
    yield from _of_path(path, None, evidence)


def _of_functions(path: Requirements, evidence: Evidence) -> Iterator[Finding]:
    first, *calls = path.needed
    absent = list(_none_hooked(first, evidence.symbols))
    for group in calls:
        whys = [evidence.symbols[name].absent for name in group]
        if all(whys):
            absent.append(f"{' or '.join(group)}: {whys[0]}")
    yield from ((WOULD_NOT, why) for why in absent)
    for group in path.optional:
        yield from (
            (WOULD, f"without {w}") for w in _none_hooked(group, evidence.symbols)
        )
    if evidence.types:
        _, mismatches = evidence.types.compare_prototypes(
            path.optional, evidence.prototypes
        )
        yield from ((WOULD, f"without {mismatch}") for mismatch in mismatches)
        for mismatch in evidence.types.list_obstacles(path, evidence.prototypes):
            if not absent and mismatch not in mismatches:
                yield WOULD_NOT, f"prototype in the kernel's BTF: {mismatch}"


def _none_hooked(group: list[str], functions: dict[str, Symbol]) -> Iterator[str]:
    """Yield why none of these functions, of which a kernel has one, can be hooked."""
    names = [
        name for name in group if functions[name].count != 0 or functions[name].clones
    ]
    whys = [functions[name].refusal for name in names or group]
    if all(whys):
        yield f"{' or '.join(names or group)}: {whys[0]}"
