# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor``: what would attach on this kernel, and what not, and why.

A loaded module reports its hooks. What it has not tried yet, or everything if it
is not loaded, is judged by the kernel's information on the functions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bulkmm.control import checks, fit, needs, symbols, text
from bulkmm.control import kernel as kernels
from bulkmm.control import module as modules
from bulkmm.control.checks import Check
from bulkmm.control.fit import Fit
from bulkmm.control.kernel import Kernel
from bulkmm.control.module import KernelPath
from bulkmm.control.needs import Needs
from bulkmm.control.record import Record
from bulkmm.control.root import Root
from bulkmm.control.symbols import Symbol
from bulkmm.errors import BulkmmError, Exit
from bulkmm.native import prototypes
from bulkmm.native.btf import Types

ATTACHED, WOULD, WOULD_NOT = "attached", "would attach", "would not attach"
NOT_NEEDED, UNKNOWN = "not needed", "unknown"
BLOCKING = ("architecture", "kernel", "kernel.ftrace_enabled")
BTF = "/sys/kernel/btf/vmlinux"
MARKS = {checks.OK: "ok", checks.CARE: "care", checks.NO: "NO", checks.UNKNOWN: "?"}


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

    def lines(self) -> list[str]:
        """Return it as text."""
        said = [self.verdict, "", f"for this machine: {self.fit.verdict}"]
        said += [f"  {why}" for why in self.fit.reasons]
        for title, lines in (
            ("in the way", self.blockers),
            ("what to do", self.remedies),
        ):
            if lines:
                said += ["", f"{title}:", *(f"  {line}" for line in lines)]
        said.append("")
        for path in self.paths:
            why = f": {'; '.join(path.reasons)}" if path.reasons else ""
            said.append(f"{path.name}: {path.verdict}{why}")
        rows = [(MARKS[one.state], one.name, one.says) for one in self.checks]
        return [*said, "", *text.columns(rows)]


@dataclass(frozen=True)
class Seen:
    """What is known of the kernel."""

    kernel: Kernel
    checks: list[Check]
    symbols: dict[str, Symbol]
    types: Types | None
    prototypes: dict[str, list[str]]


def examine(root: Root) -> Diagnosis:
    """Inspect the kernel below a root."""
    table = needs.read(root.read(checks.ARCHITECTURE) or "")
    kernel = kernels.Kernel(root)
    module = modules.read(root)
    loaded = {path.name: path for path in module.paths} if module else {}
    found = checks.all_checks(root, table)
    wanted = [name for path in table.paths for name in path.symbols]
    seen = Seen(
        kernel=kernel,
        checks=found,
        symbols=symbols.look_up(root, wanted),
        types=_types(root),
        prototypes=table.prototypes,
    )
    paths = [_judge(path, loaded.get(path.name), seen) for path in table.paths]
    attach = {one.name: one.verdict in (ATTACHED, WOULD) for one in paths}
    return Diagnosis(
        release=kernel.release,
        exit_code=_exit_code(found, paths),
        verdict=_verdict(kernel.release, paths),
        blockers=_blockers(found, paths),
        remedies=_remedies(found, paths),
        checks=found,
        paths=paths,
        fit=fit.judge(root, kernel, attach),
    )


def _exit_code(found: list[Check], paths: list[Verdict]) -> int:
    """Return 1 if something would not work, 3 if that is unknown, else 0."""
    verdicts = {path.verdict for path in paths}
    if WOULD_NOT in verdicts or any(one.state == checks.NO for one in found):
        return int(Exit.VERDICT)
    return int(Exit.ENVIRONMENT if UNKNOWN in verdicts else Exit.OK)


def _verdict(release: str, paths: list[Verdict]) -> str:
    """Return the verdict in one sentence."""
    kinds: dict[str, list[str]] = {}
    for path in paths:
        kinds.setdefault(path.verdict, []).append(path.name)
    order = (WOULD_NOT, UNKNOWN, ATTACHED, WOULD, NOT_NEEDED)
    said = "; ".join(f"{', '.join(kinds[k])} {k}" for k in order if k in kinds)
    what = "not all attach"
    if not {*kinds} & {WOULD_NOT, UNKNOWN}:
        what = "all is well"
    elif {*kinds} == {WOULD_NOT}:
        what = "nothing attaches"
    return f"{what} on {release}: {said}"


def _blockers(found: list[Check], paths: list[Verdict]) -> list[str]:
    """Return the blockers, those of all paths first."""
    said = [*_general(found)]
    for path in paths:
        if path.verdict in (WOULD_NOT, UNKNOWN):
            own = [why for why in path.reasons if why not in said]
            said += [f"{path.name}: {why}" for why in own]
    return said


def _remedies(found: list[Check], paths: list[Verdict]) -> list[str]:
    """Return the remedies, then the cautions unless a path would not work."""
    verdicts = {path.verdict for path in paths}
    states = [checks.NO]
    states += [checks.UNKNOWN] if UNKNOWN in verdicts else []
    states += [checks.CARE] if WOULD_NOT not in verdicts else []
    said = [one.remedy for state in states for one in found if one.state == state]
    for path in paths:
        if path.verdict in (WOULD_NOT, UNKNOWN):
            said += [symbol.remedy for symbol in path.symbols]
    return list(dict.fromkeys(filter(None, said)))


def _types(root: Root) -> Types | None:
    """Return the kernel's types, against which the module checks prototypes."""
    try:
        return Types(root.at(BTF).read_bytes())
    except (OSError, BulkmmError):
        return None


def _judge(path: Needs, loaded: KernelPath | None, seen: Seen) -> Verdict:
    mine = [seen.symbols[name] for name in path.symbols]
    if loaded and loaded.hooks and loaded.hooks[0].attached:
        without = [f"without {h.symbol}: {h.why}" for h in loaded.hooks if h.errno]
        return Verdict(path.name, ATTACHED, without, mine)
    case = kernels.zeroing(seen.kernel)
    against = [*_general(seen.checks), *_refusals(path, loaded, seen)]
    # If the path has nothing to do here, its absence is no fault.
    if against and path.only and case not in ("unknown", path.only):
        return Verdict(path.name, NOT_NEEDED, against, mine)
    if against:
        return Verdict(path.name, WOULD_NOT, against, mine)
    unknown = [*_unknown_options(path, seen), *_unknowns(path, seen.symbols)]
    if unknown:
        return Verdict(path.name, UNKNOWN, unknown, mine)
    return Verdict(path.name, WOULD, list(_lacking(path, seen)), mine)


def _general(found: list[Check]) -> Iterator[str]:
    for check in found:
        if check.state == checks.NO:
            yield f"{check.name}: {check.says}"


def _refusals(path: Needs, loaded: KernelPath | None, seen: Seen) -> Iterator[str]:
    """Yield all that keeps a path from attaching."""
    for hook in loaded.hooks[:1] if loaded else ():
        if hook.errno != modules.NOT_TRIED:
            yield f"the module reports for {hook.symbol}: {hook.why}"
    for name in path.without_options:
        if seen.kernel.option(name):
            yield f"CONFIG_{name} is set"
    for name in path.with_options:
        if seen.kernel.option(name) is False:
            yield f"CONFIG_{name} is not set"
    there = list(_functions(path, seen.symbols))
    yield from there
    if seen.types and not there:
        _, others = prototypes.lacking(path, seen.types, seen.prototypes)
        for one in prototypes.against(path, seen.types, seen.prototypes):
            if one not in others:
                yield f"prototype in the kernel's BTF: {one}"


def _functions(path: Needs, known: dict[str, Symbol]) -> Iterator[str]:
    first, *called = path.needed
    yield from _none_hooked(first, known)
    for group in called:
        whys = [known[name].absent for name in group]
        if all(whys):
            yield f"{' or '.join(group)}: {whys[0]}"


def _none_hooked(group: list[str], known: dict[str, Symbol]) -> Iterator[str]:
    """Yield why none of these functions, of which a kernel has one, can be hooked."""
    there = [name for name in group if known[name].count != 0 or known[name].clones]
    whys = [known[name].refused for name in there or group]
    if all(whys):
        yield f"{' or '.join(there or group)}: {whys[0]}"


def _lacking(path: Needs, seen: Seen) -> Iterator[str]:
    """Yield the other functions that it would make do without."""
    for group in path.optional:
        yield from (f"without {why}" for why in _none_hooked(group, seen.symbols))
    if seen.types:
        _, others = prototypes.lacking(path, seen.types, seen.prototypes)
        yield from (f"without {one}" for one in others)


def _unknown_options(path: Needs, seen: Seen) -> list[str]:
    if seen.kernel.config is None and (path.with_options or path.without_options):
        return ["the kernel's configuration cannot be read"]
    return [f"{c.name}: {c.says}" for c in seen.checks if _matters(c)]


def _matters(check: Check) -> bool:
    option = check.name.startswith("CONFIG_")
    return check.state == checks.UNKNOWN and (option or check.name in BLOCKING)


def _unknowns(path: Needs, known: dict[str, Symbol]) -> list[str]:
    hooked = [name for group in path.hooks.values() for name in group]
    return list(dict.fromkeys(why for name in hooked if (why := known[name].unknown)))
