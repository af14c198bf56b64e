# SPDX-License-Identifier: GPL-2.0-only
"""What a user can choose of a run: each option once, with its range.

A scenario names those that it takes; ``lab run`` refuses the others.
"""

import argparse
import re
from typing import Any

from bulkmm.shell import files, options, size
from bulkmm.shell.errors import UsageError
from bulkmm.shell.size import MIB

ACCEL = ("auto", "kvm", "tcg")
ALIGNS = {"4K": 4 << 10, "2M": 2 << 20, "1G": 1 << 30}
PREEMPT = ("none", "voluntary", "full", "lazy")
CPUS = 2  # of a guest
# of scenarios; the help must not wait for these to be loaded
FAMILIES = (
    *("pmem", "hmm", "clear", "populate", "copy"),
    *("prezero", "vmap", "hotplug", "suites", "packages"),
)
LARGEST = "1T"  # what the guest's address space has room for
REGION_ALIGN = 16 * MIB  # of libnvdimm on x86: other sizes cannot make a namespace
BACKEND = re.compile(r"[a-z][a-z0-9_-]{0,30}")
# By heading (see bulkmm/shell/options.py: take). The most workers: CREW_MOST of
# module/memmap_stamp.c.
TABLES = {
    "visits": """
--rounds N<1..>  visit each arm N times (default: the scenario's, mostly 5)
--seed N  repeat the order of another run
--break-one-word  change one word on purpose: the run must fail
--arm arms:NAME...  visit this arm, such as absent: without the module; may be given
    again (default: all)
""",
    "persistent memory, hotplug": f"""
--size SIZE  make the device so large (default: the scenario's)
--align {{{",".join(ALIGNS)}}} = 2M  align devdax to this
--map {{dev,mem}} = dev  put struct pages there
--backend BACKEND  force this store backend
--workers N<0..32> = 0  use N CPUs for stamping; 0: by size
""",
    "huge pages": f"""
--folios N<1..>  fault in N folios a visit
--way ways:NAME...  fault in by this way; may be given again (default: all)
--kib N...  take folios of N KiB (mthp, clear-latency); may be given again
--init-on-alloc {{0,1}}  let the allocator clear as well, or not (default: the kernel's)
--init-on-free {{0,1}}  let it clear what is freed, or not (default: the kernel's)
--preempt {{{",".join(PREEMPT)}}}  boot with this preemption model (default: the
    kernel's)
--seconds N<1..3600> = 60  run hook-storm, clear-faults, vmap-faults, stress, or each
    test of upstream-mm, so long
""",
    "kernel mappings": """
--arrays N<1..>  map N arrays of random shape
--loops N<1..> = 1000  loop upstream-vmalloc N times
""",
    "suites": """
--part parts:NAME...  run this part; may be given again (default: all)
""",
    "packages": """
--no-upgrade  skip the upgrade, for which DKMS builds in the guest
""",
}


def device_size(text: str) -> int:
    """Return the bytes of a size such as 100G; reject impossible device sizes."""
    nbytes = size.parse_size(text, LARGEST)
    if nbytes % REGION_ALIGN:
        raise UsageError(f"size {text} is no multiple of 16M")
    return nbytes


def parse_backend(text: str) -> str:
    """Return the name of a backend; the guest's module knows which there are."""
    if not BACKEND.fullmatch(text):
        raise UsageError(f"bad backend name {text}")
    return text


def _take(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    reads = {**options.TYPES, "SIZE": device_size, "BACKEND": parse_backend}
    return [
        one
        for title, table in TABLES.items()
        for one in options.add_arguments(parser.add_argument_group(title), table, reads)
    ]


_parser = argparse.ArgumentParser(add_help=False)
FLAGS = {one.dest: one.option_strings[-1] for one in _take(_parser)}
USUAL = vars(_parser.parse_args([]))  # values where a scenario has no other


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options; those that are not given are not parsed."""
    for action in _take(parser):
        action.help = str(action.help) % vars(action)
        action.default = argparse.SUPPRESS


def collect_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return those that a command line sets."""
    return {name: getattr(args, name) for name in FLAGS if name in args}


def compile_pattern(regex: str | None) -> re.Pattern[str]:
    """Return the pattern a name must contain; without --only it is empty."""
    try:
        return re.compile(regex or "")
    except re.error as error:
        raise UsageError(f"--only {regex}: {error}") from error


def need_places(args: argparse.Namespace) -> None:
    """Reject unwritable outputs before hours of work."""
    if args.output:
        files.need_place(args.output, "the page")
    if args.resume and not args.json_dir:
        raise UsageError("--resume needs --json-dir: it says where the results lie")
    if args.json_dir:
        args.json_dir.mkdir(parents=True, exist_ok=True)
