# SPDX-License-Identifier: GPL-2.0-only
"""The commands that look at the module and switch it: their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bulkmm import options

if TYPE_CHECKING:
    import argparse

FORMATS = ("text", "json", "prometheus")
RUN = "bulkmm.control.run"


def add_parser(sub: options.Subparsers[Any]) -> None:
    """Add the commands to the parser of the whole command."""
    _add_status(sub)
    _add_doctor(sub)
    _add_on(sub)
    _add_off(sub)
    _add_tune(sub)
    _add_watch(sub)


def _add(
    sub: options.Subparsers[Any], name: str, does: str, more: str, example: str
) -> argparse.ArgumentParser:
    run = f"{RUN}:{name}"
    one = options.add(sub, name, does, more, run=run, example=f"bulkmm {example}")
    options.add_json(one, "what it says")
    options.add_root(one)
    return one


def _add_status(sub: options.Subparsers[Any]) -> None:
    one = _add(
        sub,
        "status",
        "show what the loaded module is doing",
        "Show what each path of the loaded module does: mode, hook, requests served, "
        "requests that fell back to the kernel; and who clears huge pages on this "
        "kernel. For paths that are named everything is shown. Exit code 1 if the "
        "module is not loaded.",
        "status clear",
    )
    one.add_argument("path", nargs="*", metavar="PATH", help="show all of this path")
    one.add_argument(
        "--format",
        choices=FORMATS,
        help="print text, JSON, or metrics for Prometheus' textfile collector "
        "(default: text)",
    )
    options.add_output(one, "it")


def _add_doctor(sub: options.Subparsers[Any]) -> None:
    one = _add(
        sub,
        "doctor",
        "tell what would attach on this kernel, and what is in the way",
        "Tell for each path whether the module can hook its functions on this kernel, "
        "loaded or not: the verdict, then what is in the way, then what to do about "
        "it. Exit code 0: all that is needed here would attach; 1: something would "
        "not; 3: it cannot be told (root can read more).",
        "doctor",
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
        help="use this bulkmm.ko, or none (default: the installed one, or one built "
        "against installed headers)",
    )


def _add_on(sub: options.Subparsers[Any]) -> None:
    one = _add(
        sub,
        "on",
        "switch a path on",
        "Switch a path on, in the mode given, or in its first that is not off.",
        "on clear --persist",
    )
    one.add_argument("path", metavar="PATH", help="name the path (see: bulkmm status)")
    one.add_argument(
        "mode",
        nargs="?",
        metavar="MODE",
        help="name the mode (see: bulkmm status PATH; default: the first but off)",
    )
    _add_switch(one)


def _add_off(sub: options.Subparsers[Any]) -> None:
    one = _add(
        sub,
        "off",
        "switch a path off, or all of them",
        "Switch a path off, or all of them: their functions are unhooked, the kernel's "
        "own code does the work, and the module can be unloaded.",
        "off",
    )
    one.add_argument(
        "path", nargs="?", metavar="PATH", help="name the path (default: all)"
    )
    one.set_defaults(mode="off")
    _add_switch(one)


def _add_switch(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--persist",
        action="store_true",
        help="write it to /etc/modprobe.d/bulkmm.conf as well, for every load of the "
        "module; without a loaded module, write that alone",
    )
    options.add_dry_run(one)


def _add_tune(sub: options.Subparsers[Any]) -> None:
    one = _add(
        sub,
        "tune",
        "change settings of the loaded module, or list them",
        "Change settings: PATH.FILE as in sysfs, or a module parameter. All are "
        "checked before the first is written. Without any, all are listed.",
        "tune clear.latency_us=500",
    )
    one.add_argument(
        "settings",
        nargs="*",
        metavar="KEY=VALUE",
        help="set this, as in clear.latency_us=500",
    )
    options.add_dry_run(one)


def _add_watch(sub: options.Subparsers[Any]) -> None:
    one = _add(
        sub,
        "watch",
        "show live rates and latencies",
        "Show rates and the mean time of a request, path by path: a table on a "
        "terminal, lines elsewhere. Only reads, unless --trace is given.",
        "watch clear --interval 0.5",
    )
    one.add_argument("path", nargs="*", metavar="PATH", help="show only this path")
    one.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="wait so long between two reads (default: 1)",
    )
    one.add_argument(
        "--count",
        type=int,
        metavar="N",
        help="end after N reads (default: when interrupted)",
    )
    one.add_argument(
        "--trace",
        action="store_true",
        help="add medians and worst cases from the tracepoints, by a trace instance "
        "of its own (root)",
    )
