# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm status``: the module's state, as text and as JSON."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bulkmm.control import checks, requirements
from bulkmm.control import kernel as kernels
from bulkmm.control import module as modules
from bulkmm.control.format import format_duration, format_size, wrap_columns
from bulkmm.control.json_output import Record
from bulkmm.control.module import Backends, KernelPath, Module
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell import files
from bulkmm.shell.errors import BulkmmError, Exit, UsageError, unknown_word
from bulkmm.shell.width import wrap_line

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


def print_status(args: argparse.Namespace) -> int:
    """Print or write the status, or the schema of what commands print."""
    if args.schema:
        import json

        from bulkmm.control import json_output

        output, code = json.dumps(json_output.make_schema(), indent=1) + "\n", Exit.OK
    else:
        output, code = _render_status(args)
    if args.output:
        files.write_file(args.output, output, "the status")
    else:
        print(output, end="")
    return code


def _render_status(args: argparse.Namespace) -> tuple[str, Exit]:
    root = SystemFiles.from_argument(args.root)
    if args.json and args.format not in (None, "json"):
        raise UsageError(f"--json and --format {args.format} differ: give one")
    form = "json" if args.json else args.format or "text"
    state = read_status(root, args.path)
    if form == "prometheus":
        from bulkmm.control import prometheus

        output = prometheus.format_metrics(state)
    elif form == "json":
        output = state.to_json() + "\n"
    else:
        lines = format_status(root, state, detailed=bool(args.path))
        output = "\n".join(lines) + "\n"
    # Unloaded is a metric too: the collector needs it, and cron no failure.
    fine = form == "prometheus" or state.loaded
    return output, Exit.OK if fine else Exit.VERDICT


def read_status(root: SystemFiles, wanted: list[str]) -> Status:
    """Return the status as a document."""
    kernel = kernels.Kernel(root)
    case = kernel.zeroing
    if not root.is_dir(modules.KERNEL):
        raise BulkmmError(modules.explain_unloaded(root))
    module = modules.read_module(root)
    return Status(
        loaded=module is not None,
        version=module.version if module else None,
        kernel=KernelRecord(
            kernel.release, kernel.init_on_alloc, case, kernels.CASES[case]
        ),
        parameters=module.parameters if module else {},
        paths=select_paths(root, module, wanted),
    )


def read_modes(
    root: SystemFiles, module: Module | None, wanted: Iterable[str]
) -> dict[str, list[str]]:
    """Return the modes of all paths, loaded or not; reject unknown names."""
    table = module or _read_table(root)
    modes = {path.name: path.modes for path in table.paths}
    for name in wanted:
        if name not in modes:
            raise unknown_word("path", name, modes)
    return modes


def list_keys(root: SystemFiles) -> list[str]:
    """Return what can be tuned once the module is loaded."""
    return [key for path in _read_table(root).paths for key in path.settings]


def _read_table(root: SystemFiles) -> requirements.Table:
    return requirements.read_table(root.read(checks.ARCHITECTURE) or "")


def select_paths(
    root: SystemFiles, module: Module | None, wanted: list[str]
) -> list[KernelPath]:
    """Return the loaded paths of these names, or all; reject unknown names."""
    read_modes(root, module, wanted)
    paths = {path.name: path for path in module.paths} if module else {}
    return [paths[name] for name in wanted or paths if name in paths]


def format_status(root: SystemFiles, state: Status, *, detailed: bool) -> list[str]:
    """Return the status as text."""
    kernel = state.kernel
    if not state.loaded:
        unloaded = f"kernel {kernel.release}: {modules.explain_unloaded(root)}"
        return [*wrap_line(unloaded), *wrap_line(kernel.says)]
    rows = [_make_row(path) for path in state.paths]
    output = [f"bulkmm {state.version} on {kernel.release}"]
    output += ["", *wrap_columns([HEADINGS, *rows]), ""]
    for path in state.paths if detailed else ():
        output += _list_details(path)
    return [*output, *wrap_line(kernel.says)]


def _make_row(path: KernelPath) -> tuple[str, ...]:
    hits, nbytes = path.counters.get("hits", 0), path.counters.get("bytes", 0)
    ns = path.counters.get("ns")
    fallbacks = [
        f"{reason} {count}" for reason, count in path.fallbacks.items() if count
    ]
    return (
        path.name,
        path.mode,
        hook_state(path),
        str(hits),
        format_size(nbytes) if hits else "",
        format_duration(ns / hits) if hits and ns is not None else "",
        ", ".join(fallbacks),
    )


def hook_state(path: KernelPath) -> str:
    """Return the state of a path's hooks in a word or two."""
    attached = [hook for hook in path.hooks if hook.attached]
    if path.hooks and len(attached) == len(path.hooks):
        return "attached"
    if attached:
        return f"{len(attached)} of {len(path.hooks)} attached"
    return "not attached"


def _list_details(path: KernelPath) -> list[str]:
    rows: list[tuple[str, str]] = [
        *((hook.symbol, hook.why) for hook in path.hooks),
        ("mode", _mark_choice(path.modes, path.mode)),
        *((name, _rate_backends(one)) for name, one in path.backends.items()),
        *(
            (name, _mark_choice(one.words, one.chosen))
            for name, one in path.choices.items()
        ),
        *((name, str(value)) for name, value in path.settings.items()),
        *((name, str(value)) for name, value in path.counters.items()),
        *((f"fallback_{name}", str(count)) for name, count in path.fallbacks.items()),
    ]
    return [f"{path.name}:", *wrap_columns(rows, indent="  "), ""]


def _mark_choice(words: list[str], current: str) -> str:
    """Return a choice in sysfs's form."""
    return " ".join(f"[{w}]" if w == current else w for w in words)


def _rate_backends(backends: Backends) -> str:
    """Return the backends with GB/s, and whether the one that serves is forced."""
    rated = {
        name: f"{name}={backends.gb_per_s[name]}" if name in backends.gb_per_s else name
        for name in backends.choices[1:]
    }
    words = _mark_choice([*rated.values()], rated[backends.serving])
    return words if backends.chosen == modules.FASTEST else f"{words} (forced)"
