# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor``: what would attach on this kernel, and what not, and why.

A loaded module is asked; what it has not tried yet, or all of it where it is
not loaded, is judged by what the kernel says of the functions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bulkmm.control import checks, needs, symbols, text
from bulkmm.control import kernel as kernels
from bulkmm.control import module as modules
from bulkmm.control.status import SCHEMA_VERSION
from bulkmm.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bulkmm.control.checks import Check
    from bulkmm.control.kernel import Kernel
    from bulkmm.control.module import KernelPath
    from bulkmm.control.needs import Needs
    from bulkmm.control.root import Root
    from bulkmm.control.symbols import Symbol

ATTACHED, WOULD, WOULD_NOT = "attached", "would attach", "would not attach"
NOT_NEEDED, UNKNOWN = "not needed", "cannot be told"
NOT_TRIED = -19  # -ENODEV: what a hook says before it is switched on
BLOCKING = ("architecture", "kernel", "kernel.ftrace_enabled")
MARKS = {checks.OK: "ok", checks.CARE: "care", checks.NO: "NO", checks.UNKNOWN: "?"}


@dataclass(frozen=True)
class Verdict:
    """What is to be said of one path."""

    name: str
    verdict: str
    reasons: list[str]
    symbols: list[Symbol]


@dataclass(frozen=True)
class Report:
    """All that was found."""

    release: str
    checks: list[Check]
    paths: list[Verdict]

    def exit_code(self) -> int:
        """Return 1 if something would not work, 3 if that cannot be told."""
        verdicts = {path.verdict for path in self.paths}
        if WOULD_NOT in verdicts or any(c.state == checks.NO for c in self.checks):
            return Exit.VERDICT
        return Exit.ENVIRONMENT if UNKNOWN in verdicts else Exit.OK

    def document(self) -> dict[str, Any]:
        """Return it as docs/control.schema.json describes it."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "doctor",
            "release": self.release,
            "exit_code": int(self.exit_code()),
            "checks": [asdict(check) for check in self.checks],
            "paths": [asdict(path) for path in self.paths],
        }

    def lines(self) -> list[str]:
        """Return it as text."""
        rows = [(MARKS[one.state], one.name, one.says) for one in self.checks]
        said = [*text.columns(rows), ""]
        for path in self.paths:
            why = f": {'; '.join(path.reasons)}" if path.reasons else ""
            said.append(f"{path.name}: {path.verdict}{why}")
        return said


def examine(root: Root) -> Report:
    """Look at the kernel below a root."""
    table = needs.read(root.read(checks.ARCHITECTURE) or "")
    kernel = kernels.Kernel(root)
    module = modules.read(root)
    loaded = {path.name: path for path in module.paths} if module else {}
    found = checks.all_checks(root, table)
    wanted = [name for path in table.paths for name in path.symbols]
    known = symbols.look_up(root, wanted)
    return Report(
        release=kernel.release,
        checks=found,
        paths=[
            _judge(path, loaded.get(path.name), known, kernel, found)
            for path in table.paths
        ],
    )


def _judge(
    path: Needs,
    loaded: KernelPath | None,
    known: dict[str, Symbol],
    kernel: Kernel,
    found: list[Check],
) -> Verdict:
    mine = [known[name] for name in path.symbols]
    if loaded and loaded.hooks and loaded.hooks[0].attached:
        without = [f"without {h.symbol}: {h.why}" for h in loaded.hooks if h.errno]
        return Verdict(path.name, ATTACHED, without, mine)
    case = kernels.zeroing(kernel)
    against = [*_general(found), *_refusals(path, loaded, known, kernel)]
    # Where nothing is left to be done for it, its absence is no fault.
    if against and path.only and case is not kernels.UNKNOWN and case.case != path.only:
        return Verdict(path.name, NOT_NEEDED, against, mine)
    if against:
        return Verdict(path.name, WOULD_NOT, against, mine)
    unknown = [*_unknown_options(path, kernel, found), *_unknowns(path, known)]
    if unknown:
        return Verdict(path.name, UNKNOWN, unknown, mine)
    return Verdict(path.name, WOULD, list(_lacking(path, known)), mine)


def _general(found: list[Check]) -> Iterator[str]:
    for check in found:
        if check.state == checks.NO:
            yield f"{check.name}: {check.says}"


def _refusals(
    path: Needs, loaded: KernelPath | None, known: dict[str, Symbol], kernel: Kernel
) -> Iterator[str]:
    """Say all that keeps a path from being attached."""
    for hook in loaded.hooks[:1] if loaded else ():
        if hook.errno != NOT_TRIED:
            yield f"the module says of {hook.symbol}: {hook.why}"
    for name in path.without_options:
        if kernel.option(name):
            yield f"CONFIG_{name} is set"
    for name in path.with_options:
        if kernel.option(name) is False:
            yield f"CONFIG_{name} is not set"
    yield from _functions(path, known)


def _functions(path: Needs, known: dict[str, Symbol]) -> Iterator[str]:
    if why := known[path.hooks[0]].refused:
        yield f"{path.hooks[0]}: {why}"
    for group in path.calls:
        whys = [known[name].absent for name in group]
        if all(whys):
            yield f"{' or '.join(group)}: {whys[0]}"


def _lacking(path: Needs, known: dict[str, Symbol]) -> Iterator[str]:
    """Say which of its other functions it would do without."""
    for name in path.hooks[1:]:
        if why := known[name].refused:
            yield f"without {name}: {why}"


def _unknown_options(path: Needs, kernel: Kernel, found: list[Check]) -> list[str]:
    if kernel.config is None and (path.with_options or path.without_options):
        return ["the kernel's configuration cannot be read"]
    return [f"{c.name}: {c.says}" for c in found if _matters(c)]


def _matters(check: Check) -> bool:
    option = check.name.startswith("CONFIG_")
    return check.state == checks.UNKNOWN and (option or check.name in BLOCKING)


def _unknowns(path: Needs, known: dict[str, Symbol]) -> list[str]:
    said = [why for name in path.hooks if (why := known[name].unknown)]
    return list(dict.fromkeys(said))
