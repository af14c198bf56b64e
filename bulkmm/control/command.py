# SPDX-License-Identifier: GPL-2.0-only
"""The commands that look at the module and switch it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulkmm.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse

    from bulkmm.control.change import Change
    from bulkmm.control.root import Root

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001

SHORTEST, LONGEST = 0.05, 86_400.0  # seconds between two looks
FORMATS = ("text", "json", "prometheus")


def add_parser(sub: Subparsers) -> None:
    """Add the commands to the parser of the whole command."""
    _add_status(sub)
    _add_doctor(sub)
    _add_switches(sub)
    _add_tune(sub)
    _add_watch(sub)


def _add(sub: Subparsers, name: str, about: str, more: str) -> argparse.ArgumentParser:
    one = sub.add_parser(name, help=about, description=more)
    one.add_argument("--json", action="store_true", help="print JSON, errors too")
    one.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="read /sys, /proc and /boot below DIR (default: /)",
    )
    return one


def _add_status(sub: Subparsers) -> None:
    one = _add(
        sub,
        "status",
        "what the module is doing",
        "Say what each path of the loaded module does: mode, hook, requests served, "
        "requests left to the kernel; and who clears huge pages on this kernel. Of "
        "paths that are named everything is shown. Exit code 1 if the module is not "
        "loaded.",
    )
    one.add_argument("path", nargs="*", metavar="PATH", help="show all of this path")
    one.add_argument(
        "--format",
        choices=FORMATS,
        help="text, json, or prometheus for a textfile collector (default: text)",
    )
    one.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write it, in one step"
    )
    one.set_defaults(run=run_status)


def _add_doctor(sub: Subparsers) -> None:
    one = _add(
        sub,
        "doctor",
        "what would work on this kernel, and why not",
        "Say for each path whether the module can take its functions over on this "
        "kernel, loaded or not, and why not. Exit code 0: all that is needed here "
        "would attach; 1: something would not; 3: it cannot be told (root can "
        "read more).",
    )
    one.add_argument(
        "--measure",
        action="store_true",
        help="measure instead what each path would gain: this kernel's own code "
        "against the module's in a process, without root, with nothing loaded",
    )
    one.add_argument(
        "--kernel",
        metavar="RELEASE|FILE",
        help="measure this kernel (default: the image of the one that runs)",
    )
    one.add_argument(
        "--module",
        metavar="FILE",
        help="bulkmm.ko for it, or none (default: installed, or built against its "
        "headers)",
    )
    one.set_defaults(run=run_doctor)


def _add_switches(sub: Subparsers) -> None:
    on = _add(
        sub,
        "on",
        "switch a path on",
        "Switch a path on, in a mode of its own, or in the first that is not off.",
    )
    on.add_argument("path", metavar="PATH", help="see: bulkmm status")
    on.add_argument("mode", nargs="?", metavar="MODE", help="as bulkmm status PATH has")
    off = _add(
        sub,
        "off",
        "leave a path to the kernel again",
        "Switch a path off, or all of them: their functions are unhooked, the "
        "kernel's own code does the work, and the module can be unloaded.",
    )
    off.add_argument(
        "path", nargs="?", metavar="PATH", help="see: bulkmm status (default: all)"
    )
    off.set_defaults(mode="off")
    for one in (on, off):
        _add_dry_run(one)
        one.set_defaults(run=run_switch)


def _add_tune(sub: Subparsers) -> None:
    one = _add(
        sub,
        "tune",
        "change settings of the loaded module",
        "Change settings: PATH.FILE as in sysfs, or a module parameter. All are "
        "looked at before the first is written. Without any, all are listed.",
    )
    one.add_argument(
        "settings", nargs="*", metavar="KEY=VALUE", help="as in clear.latency_us=500"
    )
    _add_dry_run(one)
    one.set_defaults(run=run_tune)


def _add_watch(sub: Subparsers) -> None:
    one = _add(
        sub,
        "watch",
        "live rates and latencies",
        "Show rates and the mean time of a request, path by path: a table on a "
        "terminal, lines elsewhere. Only reads, unless --trace is given.",
    )
    one.add_argument("path", nargs="*", metavar="PATH", help="only this path")
    one.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="between two looks (default: 1)",
    )
    one.add_argument(
        "--count", type=int, metavar="N", help="of looks (default: until interrupted)"
    )
    one.add_argument(
        "--trace",
        action="store_true",
        help="medians and worst cases from the tracepoints, by a trace instance of "
        "its own (root)",
    )
    one.set_defaults(run=run_watch)


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be written, write nothing",
    )


def _root(args: argparse.Namespace) -> Root:
    from bulkmm.control.root import Root  # noqa: PLC0415 - keeps --help fast

    if not args.root.is_dir():
        raise UsageError(f"{args.root} is no directory")
    return Root(args.root)


def _json(held: dict[str, Any]) -> str:
    import json  # noqa: PLC0415 - keeps --help fast

    return json.dumps(held, indent=1) + "\n"


def run_status(args: argparse.Namespace) -> int:
    """Print or write the status."""
    from bulkmm.control import module, prometheus, status  # noqa: PLC0415

    root = _root(args)
    if args.json and args.format not in (None, "json"):
        raise UsageError(f"--json and --format {args.format} are two formats: give one")
    form = "json" if args.json else args.format or "text"
    if form == "prometheus":
        said = prometheus.text(root, args.path)
    elif form == "json":
        said = _json(status.document(root, args.path))
    else:
        said = "\n".join(status.lines(root, args.path)) + "\n"
    _hand_over(said, args.output)
    # A collector is to get the metric that says so, not to be failed by cron.
    if form == "prometheus" or module.loaded(root):
        return Exit.OK
    return Exit.VERDICT


def _hand_over(said: str, file: Path | None) -> None:
    """Print, or write so that whoever reads the file never sees half of it."""
    if not file:
        print(said, end="")
        return
    from bulkmm import files  # noqa: PLC0415 - keeps --help fast

    files.write(file, said, "the status")


def run_doctor(args: argparse.Namespace) -> int:
    """Print what would attach on this kernel."""
    from bulkmm.control import doctor  # noqa: PLC0415 - keeps --help fast

    if args.measure:
        return _measure(args)
    if args.kernel or args.module:
        raise UsageError("--kernel and --module say what to --measure")
    found = doctor.examine(_root(args))
    print(
        _json(found.document()) if args.json else "\n".join(found.lines()) + "\n",
        end="",
    )
    return found.exit_code()


def _measure(args: argparse.Namespace) -> int:
    """Print what the module would be worth."""
    from bulkmm.control.kernel import Kernel  # noqa: PLC0415 - keeps --help fast
    from bulkmm.lab.progress import Progress  # noqa: PLC0415
    from bulkmm.native import command  # noqa: PLC0415

    command.need_packages("doctor --measure")
    from bulkmm.native import worth  # noqa: PLC0415 - needs the packages

    release = Kernel(_root(args)).release
    document = worth.examine(release, args.kernel, args.module, Progress())
    if args.json:
        print(document.to_json(), end="")
    else:
        print("\n".join(worth.lines(document)))
    return Exit.OK if all(check.ok for check in document.checks) else Exit.VERDICT


def run_switch(args: argparse.Namespace) -> int:
    """Switch a path on or off."""
    from bulkmm.control import change  # noqa: PLC0415 - keeps --help fast

    root = _root(args)
    module = change.need(root)
    if args.path:
        return _make(args, root, [change.to_mode(module, args.path, args.mode)])
    return _show(args, change.all_off(root, module, dry=args.dry_run))


def run_tune(args: argparse.Namespace) -> int:
    """Change settings, or list them."""
    from bulkmm.control import change, text  # noqa: PLC0415 - keeps --help fast

    root = _root(args)
    module = change.need(root)
    if args.settings:
        return _make(args, root, [change.to_value(module, p) for p in args.settings])
    if args.json:
        print(_json(change.listed(module)), end="")
        return Exit.OK
    rows = [(k, v, " ".join(w)) for k, (_, v, w) in change.settings(module).items()]
    print("\n".join(text.columns([("key", "value", "choices"), *rows])))
    return Exit.OK


def _make(args: argparse.Namespace, root: Root, changes: list[Change]) -> int:
    from bulkmm.control import change  # noqa: PLC0415 - keeps --help fast

    if not args.dry_run:
        change.apply(root, changes)
    return _show(args, changes)


def _show(args: argparse.Namespace, changes: list[Change]) -> int:
    from bulkmm.control import change  # noqa: PLC0415 - keeps --help fast

    if args.json:
        print(_json(change.document(changes, dry=args.dry_run)), end="")
    else:
        print("\n".join(one.says(dry=args.dry_run) for one in changes))
    return Exit.OK


def run_watch(args: argparse.Namespace) -> int:
    """Show what happens until told to stop."""
    from bulkmm.control import change, status, watch  # noqa: PLC0415

    if not SHORTEST <= args.interval <= LONGEST:
        raise UsageError(f"--interval {args.interval:g}: give 0.05 to 86400 seconds")
    if args.count is not None and args.count < 1:
        raise UsageError(f"--count {args.count}: give 1 or more")
    root = _root(args)
    status.select(change.need(root), args.path)
    return watch.run(root, args)
