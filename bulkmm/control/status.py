# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm status``: the module's state, as text and as JSON."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bulkmm import files
from bulkmm.control import checks, needs, text
from bulkmm.control import kernel as kernels
from bulkmm.control import module as modules
from bulkmm.control.module import Backends, KernelPath, Module
from bulkmm.control.record import Record
from bulkmm.control.root import Root
from bulkmm.errors import Exit, UsageError, unknown

HEADINGS = ("path", "mode", "hook", "served", "bytes", "mean", "fallbacks")


@dataclass(frozen=True)
class KernelRecord:
    """The kernel, and how it clears huge pages, also in words.

    once: when they are faulted in; twice: in the allocator as well (before 6.13);
    allocator: there only (anonymous ones, 6.13 and later).
    """

    release: str
    init_on_alloc: bool | None
    zeroing: kernels.Zeroing
    says: str


@dataclass(frozen=True, kw_only=True)
class Status(Record):
    """Printed by status; parameters are those that can be changed at run time."""

    kind: Literal["status"] = "status"
    loaded: bool
    version: str | None
    kernel: KernelRecord
    parameters: dict[str, int]
    paths: list[KernelPath]


def status(args: argparse.Namespace) -> int:
    """Print or write the status, or the schema of what commands print."""
    if args.schema:
        import json

        from bulkmm.control import record

        said, code = json.dumps(record.schema(), indent=1) + "\n", Exit.OK
    else:
        said, code = _status(args)
    if args.output:
        files.write(args.output, said, "the status")
    else:
        print(said, end="")
    return code


def _status(args: argparse.Namespace) -> tuple[str, Exit]:
    root = Root.given(args.root)
    if args.json and args.format not in (None, "json"):
        raise UsageError(f"--json and --format {args.format} differ: give one")
    form = "json" if args.json else args.format or "text"
    found = document(root, args.path)
    if form == "prometheus":
        from bulkmm.control import prometheus

        said = prometheus.text(found)
    elif form == "json":
        said = found.json() + "\n"
    else:
        said = "\n".join(lines(found, detailed=bool(args.path))) + "\n"
    # Unloaded is a metric too: the collector needs it, and cron no failure.
    fine = form == "prometheus" or found.loaded
    return said, Exit.OK if fine else Exit.VERDICT


def document(root: Root, wanted: list[str]) -> Status:
    """Return the status as a document."""
    kernel = kernels.Kernel(root)
    case = kernel.zeroing
    module = modules.read(root)
    return Status(
        loaded=module is not None,
        version=module.version if module else None,
        kernel=KernelRecord(
            kernel.release, kernel.init_on_alloc, case, kernels.CASES[case]
        ),
        parameters=module.parameters if module else {},
        paths=select(root, module, wanted),
    )


def known(
    root: Root, module: Module | None, wanted: Iterable[str]
) -> dict[str, list[str]]:
    """Return the modes of all paths, loaded or not; reject unknown names."""
    table = module or needs.read(root.read(checks.ARCHITECTURE) or "")
    modes = {path.name: path.modes for path in table.paths}
    for name in wanted:
        if name not in modes:
            raise unknown("path", name, modes)
    return modes


def select(root: Root, module: Module | None, wanted: list[str]) -> list[KernelPath]:
    """Return the loaded paths of these names, or all; reject unknown names."""
    known(root, module, wanted)
    held = {path.name: path for path in module.paths} if module else {}
    return [held[name] for name in wanted or held if name in held]


def lines(found: Status, *, detailed: bool) -> list[str]:
    """Return the status as text."""
    kernel = found.kernel
    if not found.loaded:
        return [f"kernel {kernel.release}: {modules.NOT_LOADED}", kernel.says]
    rows = [_row(path) for path in found.paths]
    said = [f"bulkmm {found.version} on {kernel.release}"]
    said += ["", *text.columns([HEADINGS, *rows]), ""]
    for path in found.paths if detailed else ():
        said += _details(path)
    return [*said, kernel.says]


def _row(path: KernelPath) -> tuple[str, ...]:
    hits, served = path.counters.get("hits", 0), path.counters.get("bytes", 0)
    spent = path.counters.get("ns")
    left = [f"{reason} {count}" for reason, count in path.fallbacks.items() if count]
    return (
        path.name,
        path.mode,
        hook_state(path),
        str(hits),
        text.size(served) if hits else "",
        text.duration(spent / hits) if hits and spent is not None else "",
        ", ".join(left),
    )


def hook_state(path: KernelPath) -> str:
    """Return the state of a path's hooks in a word or two."""
    attached = [hook for hook in path.hooks if hook.attached]
    if path.hooks and len(attached) == len(path.hooks):
        return "attached"
    if attached:
        return f"{len(attached)} of {len(path.hooks)} attached"
    return "not attached"


def _details(path: KernelPath) -> list[str]:
    rows: list[tuple[str, str]] = [
        *((hook.symbol, hook.why) for hook in path.hooks),
        ("mode", _marked(path.modes, path.mode)),
        *((name, _rated(one)) for name, one in path.backends.items()),
        *((name, _marked(one.words, one.chosen)) for name, one in path.choices.items()),
        *((name, str(value)) for name, value in path.settings.items()),
        *((name, str(value)) for name, value in path.counters.items()),
        *((f"fallback_{name}", str(count)) for name, count in path.fallbacks.items()),
    ]
    return [f"{path.name}:", *text.columns(rows, indent="  "), ""]


def _marked(words: list[str], chosen: str) -> str:
    """Return a choice in sysfs's form."""
    return " ".join(f"[{w}]" if w == chosen else w for w in words)


def _rated(backends: Backends) -> str:
    """Return the backends with GB/s, and whether the one that serves is forced."""
    rated = {
        name: f"{name}={backends.gb_per_s[name]}" if name in backends.gb_per_s else name
        for name in backends.choices[1:]
    }
    said = _marked([*rated.values()], rated[backends.serving])
    return said if backends.chosen == modules.FASTEST else f"{said} (forced)"
