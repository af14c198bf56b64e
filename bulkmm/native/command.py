# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench kernel``: a kernel's own code against the module's: its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bulkmm import options

if TYPE_CHECKING:
    import argparse

SUBJECTS = ("memmap", "clear", "vmap")  # that the module serves
ALONE = ("hotplug",)  # that it does not hook, for what is seen here
ABOUT = (
    "Run a stock kernel's own machine code, and the built module's, in a process on "
    "this CPU: no privilege, nothing loaded, no virtual machine. The module attaches "
    "to the kernel's functions as it would there, and all that it writes is compared "
    "with what the kernel's own code writes, in every round."
)


def add_parser(what: options.Subparsers[Any]) -> argparse.ArgumentParser:
    """Add ``kernel`` to the parser of ``bench``."""
    parser = options.add(
        what,
        "kernel",
        "time a stock kernel's own code against the module's",
        ABOUT,
        run="bulkmm.native.run:kernel",
        example="bulkmm bench kernel memmap --kernel 7.3 --quick",
    )
    parser.add_argument(
        "subject",
        nargs="?",
        default="all",
        choices=(*SUBJECTS, *ALONE, "all"),
        help="run these functions (default: all that the module serves)",
    )
    parser.add_argument(
        "--kernel",
        default="6.12",
        metavar="6.12|7.3|RELEASE|FILE",
        help="take this kernel: of the lab, below /boot, a vmlinuz, or a .deb "
        "(default: 6.12)",
    )
    parser.add_argument(
        "--module",
        metavar="FILE",
        help="take this bulkmm.ko, or none (default: the lab's, or the installed one, "
        "or one built against installed headers)",
    )
    parser.add_argument(
        "--mitigations",
        default="host",
        choices=("host", "on", "off"),
        help="patch returns as this machine's kernel has them, or with mitigations on, "
        "or off (default: host)",
    )
    parser.add_argument(
        "--size", metavar="SIZE", help="set the size of the device or of the clearing"
    )
    parser.add_argument(
        "--scenario",
        metavar="NAME",
        action="append",
        default=[],
        help="run this scenario only; may be given again",
    )
    parser.add_argument(
        "--fuzz",
        type=int,
        metavar="SECONDS",
        help="compare generated cases for so long, after those kept; 0: only those",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="generate the cases of this seed (default: 1)",
    )
    parser.add_argument(
        "--case",
        metavar="LINE",
        help="measure this case only or, with --fuzz, compare it",
    )
    parser.add_argument(
        "--break-one-word",
        action="store_true",
        help="break one word of what the module wrote: the run must fail",
    )
    return parser
