# SPDX-License-Identifier: GPL-2.0-only
"""The options of ``bulkmm lab``; what it does is in bulkmm.lab.commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bulkmm import options
from bulkmm.lab import choices, scenario
from bulkmm.lab.machine import arch, kinds

if TYPE_CHECKING:
    import argparse

RUN = "bulkmm.lab.commands"


def add_parser(sub: options.Subparsers[Any]) -> None:
    """Add ``lab`` and what stands below it."""
    lab = sub.add_parser("lab", help="measure on stock kernels in virtual machines")
    below = lab.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_list(below)
    _add_run(below)
    _add_matrix(below)
    _add_kernels(below)
    _add_prepare(below)
    options.add(
        below,
        "clean",
        "remove everything that the lab has cached",
        "Remove everything that the lab has cached: Debian roots, kernels, builds.",
        run=f"{RUN}.prepare:clean",
        example="bulkmm lab clean",
    )


def _add_list(below: options.Subparsers[Any]) -> None:
    one = options.add(
        below,
        "list",
        "list the scenarios",
        "List the scenarios: what each measures and checks, and what guest it needs. "
        "Each filter leaves those that fit; several leave those that fit all.",
        run=f"{RUN}.listing:show",
        example="bulkmm lab list --family clear --kernel 7.3 latency",
    )
    one.add_argument(
        "text", nargs="?", metavar="TEXT", help="keep those in which this is found"
    )
    one.add_argument(
        "--family", choices=scenario.FAMILIES, help="keep those of this family"
    )
    one.add_argument(
        "--kernel", metavar="NAME", help="keep those that run on this kernel"
    )
    one.add_argument(
        "--arch", choices=arch.NAMES, help="keep those that run on this architecture"
    )
    options.add_json(one, "the list")


def _add_run(below: options.Subparsers[Any]) -> None:
    one = options.add(
        below,
        "run",
        "run a scenario off and on in one boot",
        "Boot a stock kernel in a virtual machine and run a scenario with the module "
        "absent, off and on, in one boot, in random order; check every byte.",
        run=f"{RUN}.run:one",
        example="bulkmm lab run pmem-fsdax-100g --size 2G",
    )
    add_run_options(one)
    options.add_json(one)
    options.add_output(one, "the result, as JSON,")


def _add_matrix(below: options.Subparsers[Any]) -> None:
    every = options.add(
        below,
        "matrix",
        "run the scenarios on all kernels and architectures",
        "Run the scenarios on all kernels and architectures, one after the other, and "
        "print one table. All of it takes hours; --resume continues.",
        run=f"{RUN}.matrix:every",
        example="bulkmm lab matrix --quick --arch x86_64",
    )
    every.add_argument(
        "--quick", action="store_true", help="run one short scenario of each path only"
    )
    every.add_argument(
        "--arch", metavar="NAME", help="run on no other architecture (default: all)"
    )
    every.add_argument(
        "--debug",
        action="store_true",
        help="run on the kernels that the lab builds, with their own checks on",
    )
    every.add_argument(
        "--only", metavar="REGEX", help="keep only runs in whose name this is found"
    )
    _add_many(every, "of this module on these kernels, if it passed")


def _add_kernels(below: options.Subparsers[Any]) -> None:
    every = options.add(
        below,
        "kernels",
        "run the module natively on every kernel image of Debian's archive",
        "Fetch each kernel of the supported range that Debian's archive offers for "
        "x86-64, build the module for it, and run both natively: attached, "
        "prototypes, every result against the kernel's own, ratios. The newest of "
        "each series comes first.",
        run=f"{RUN}.kernels:every",
        example="bulkmm lab kernels --only cloud --list",
    )
    every.add_argument(
        "--only", metavar="REGEX", help="keep only releases in which this is found"
    )
    every.add_argument("--count", type=int, metavar="N", help="take only the first N")
    every.add_argument("--list", action="store_true", help="only list the kernels")
    _add_many(every, "of these sources, if it held")


def _add_many(every: argparse.ArgumentParser, kept: str) -> None:
    every.add_argument(
        "--json-dir", type=Path, metavar="DIR", help="write each result below DIR"
    )
    every.add_argument(
        "--resume", action="store_true", help=f"keep what --json-dir has {kept}"
    )
    options.add_markdown(every, "the page")
    options.add_output(every, "the page, in Markdown,", metavar="FILE.md")


def _add_prepare(below: options.Subparsers[Any]) -> None:
    ready = options.add(
        below,
        "prepare",
        "fetch and build everything that runs need",
        "Fetch and build everything that runs need, and boot nothing.",
        run=f"{RUN}.prepare:prepare",
        example="bulkmm lab prepare --kernel 7.3 --arch x86_64",
    )
    ready.add_argument(
        "--arch", metavar="NAME", help="prepare no other architecture (default: all)"
    )
    ready.add_argument(
        "--kernel",
        action="append",
        metavar="NAME",
        help="prepare no other kernel; may be given again",
    )
    _add_defines(ready)
    ready.add_argument(
        "--strict", action="store_true", help="fail on any compiler warning (W=1)"
    )


def _add_defines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--module-defines",
        nargs="+",
        default=[],
        metavar="NAME",
        help="build the module with these make variables, as in BMM_FAULTS=1",
    )


def add_run_options(one: argparse.ArgumentParser) -> None:
    """Add what a run is told; the lines of the matrix are told the same."""
    one.add_argument(
        "scenario", metavar="SCENARIO", help="run this (see: bulkmm lab list)"
    )
    _add_machine(one.add_argument_group("machine"))
    one.add_argument(
        "--rounds", type=int, metavar="N", help="visit each arm N times (default: 5)"
    )
    one.add_argument("--keep", action="store_true", help="keep the run's files")
    one.add_argument(
        "--seed", type=int, metavar="N", help="repeat the order of another run"
    )
    _add_defines(one)
    one.add_argument(
        "--break-one-word",
        action="store_true",
        help="change one word on purpose: the run must fail",
    )
    _add_families(one)
    one.add_argument_group("packages").add_argument(
        "--no-upgrade",
        action="store_true",
        help="install and purge only: DKMS builds once, not twice",
    )


def _add_machine(group: argparse._ArgumentGroup) -> None:
    names = " or ".join(arch.NAMES)
    usual = arch.X86_64.name
    group.add_argument(
        "--arch",
        default=usual,
        metavar="NAME",
        help=f"boot {names} (default: {usual})",
    )
    group.add_argument(
        "--kernel",
        default="",
        metavar="NAME",
        help="boot 6.12, 7.3, a full release, or one that the lab builds: "
        f"{', '.join(kinds.NAMES)} (default: 6.12; on arm64: 7.3)",
    )
    group.add_argument(
        "--accel",
        choices=choices.ACCEL,
        default="auto",
        help="use KVM if a guest boots under it, else TCG (default: auto)",
    )
    group.add_argument(
        "--cpu", default="", metavar="NAME", help="emulate QEMU's CPU (default: max)"
    )
    group.add_argument(
        "--append",
        default="",
        metavar="WORDS",
        help="add these to the kernel's command line",
    )


# Options that only some families of scenarios have, by their group's title.
FAMILIES: dict[str, dict[str, dict[str, Any]]] = {
    "persistent memory, hotplug": {
        "--size": {"metavar": "SIZE", "help": "make the device so large (default: "
                   "100G)"},
        "--align": {"choices": choices.ALIGNS, "help": "align devdax to this "
                    "(default: 2M)"},
        "--map": {"choices": choices.MAPS, "help": "put struct pages there (default: "
                  "dev)"},
        "--backend": {"metavar": "NAME", "help": "force this store backend"},
    },
    "huge pages": {
        "--folios": {"type": int, "metavar": "N", "help": "fault in N folios a visit"},
        "--way": {"action": "append", "metavar": "NAME",
                  "help": "fault in by this way (default: all)"},
        "--kib": {"action": "append", "type": int, "metavar": "N",
                  "help": "take folios of N KiB (mthp)"},
        "--init-on-alloc": {"choices": choices.INIT_ON_ALLOC, "help": "let the "
                            "allocator clear as well, or not (default: the kernel's)"},
        "--init-on-free": {"choices": choices.INIT_ON_ALLOC, "help": "let it clear "
                           "what is freed, or not (default: the kernel's)"},
        "--preempt": {"choices": choices.PREEMPT, "help": "boot with this preemption "
                      "model (default: the kernel's)"},
        "--seconds": {"type": int, "metavar": "N", "help": "run clear-faults and "
                      "vmap-faults so long (default: 60)"},
    },
    "kernel mappings": {
        "--arm": {"action": "append", "metavar": "NAME",
                  "help": "visit this arm (default: all)"},
        "--arrays": {"type": int, "metavar": "N", "help": "map N arrays of random "
                     "shape"},
        "--loops": {"type": int, "metavar": "N", "help": "loop vmap-upstream N times "
                    "(default: 1000)"},
    },
}  # fmt: skip


def _add_families(one: argparse.ArgumentParser) -> None:
    for title, named in FAMILIES.items():
        group = one.add_argument_group(title)
        for name, how in named.items():
            group.add_argument(name, **how)
