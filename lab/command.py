# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab`` (see bulkmm/shell/options.py: add_all), which is in lab/commands."""

import argparse

from bulkmm.shell import options
from lab import choices
from lab.machine import arch, kernel_kinds

ARCH, USUAL = ",".join(arch.NAMES), arch.X86_64.name
SERIES, LAB_KERNELS = arch.X86_64.tested, ", ".join(kernel_kinds.NAMES)
DEFINES = """\
--module-defines NAME+  build the module with these make variables, as in BMM_FAULTS=1
"""
RUN = f"""\
SCENARIO  run this (see: bulkmm lab list; with --full also how long it takes)
--keep  keep the run's files
{DEFINES}"""
MACHINE = f"""\
--arch NAME = {USUAL}  boot {" or ".join(arch.NAMES)}
--kernel NAME  boot {", ".join(SERIES)}, a full release, or one that the lab builds:
    {LAB_KERNELS} (default: {arch.X86_64.series[0]}; on arm64: {arch.ARM64.series[0]})
--accel {{{",".join(choices.ACCEL)}}} = auto  use KVM if a guest boots under it,
    else TCG
--cpu NAME  emulate this CPU of QEMU's (default: max)
--cpus N = {choices.CPUS}  boot with N CPUs
--append WORDS  add these to the kernel's command line
"""
PAGE = """\
--json-dir DIR  write each result below DIR
--resume  keep what --json-dir has of the same sources, if it passed
-o, --output FILE.md  write the page to this file
"""
COMMANDS = f"""
lab: : ACTION
    measure on stock kernels in virtual machines
    example: run pmem-fsdax-100g --size 2G
    Run the module on stock Debian kernels in virtual machines, and check all that it
    writes. What is booted and built is in a cache. All but list needs root.

lab list: lab.commands.listing:list_scenarios
    list the scenarios
    example: --family clear --kernel 7.3 latency
    List the scenarios and what each does. Each filter keeps those that fit; several
    keep those that fit all.
[TEXT]  keep those in which this is found
--full  print also what each checks and takes, and what guest it needs
--family {{{",".join(choices.FAMILIES)}}}  keep those of this family
--kernel NAME  keep those that run on this kernel
--arch {{{ARCH}}}  keep those that run on this architecture
--json  print the list as JSON, and errors too

lab run: lab.commands.run:run_scenario
    run a scenario off and on in one boot
    example: pmem-fsdax-100g --size 2G
    Boot a stock kernel in a virtual machine and run a scenario with the module absent,
    off and on, in one boot, in random order; check every byte. The first run of a
    kernel takes minutes more: the lab fetches and builds what is missing.
{RUN}{options.JSON}
{options.SAMPLES}

lab matrix: lab.commands.matrix:run_matrix
    run the scenarios on all kernels and architectures
    example: --quick --arch x86_64
    Run the scenarios on all kernels and architectures, one after the other, and print
    one table. All of it takes hours; --resume continues. With --only or --kernel, what
    the page has of other scenarios and kernels stays.
--quick  run one short scenario of each path only
--arch NAME  run on no other architecture (default: all)
--kernel NAME...  run on no other kernel; may be given again (default: those whose
    releases lab/versions.txt pins)
--debug  run on the kernels that the lab builds, with their own checks on
--newest  run on the newest release of each series, where it is not the one pinned
--only REGEX  keep only runs in whose name this is found
{PAGE}
lab kernels: bench.kernel.every:check_archive
    run the module natively on the kernel images of Debian's archive
    example: --only cloud --list
    Fetch kernels that Debian's archive offers for x86-64, from the oldest to the newest
    series tested, build the module for each, and run both natively: attached,
    prototypes, every result against the kernel's own, ratios. Without --all, what the
    page has of other releases stays.
--only REGEX  take every release in which this is found (default: the newest of each
    series and flavour)
--all  take every release, which takes hours, and rewrite the page
--count N  take only the first N
--list  only list the kernels
{PAGE}
lab callers: bench.kernel.callers:update_table
    record which functions call those that the module hooks
    example: 7.3 ./linux-image-7.3.4+deb13-arm64.deb
    Read kernel images, and add the callers of each hooked function to
    module/callers.def: with what it has there, the module compares the running kernel.
kernels:KERNEL...  read these, named as for "bench kernel"; an image for arm64, too
--only REGEX  read those of Debian's archive in whose release this is found

lab prepare: lab.commands.prepare:prepare_runs
    fetch and build everything that runs need
    example: --kernel 7.3 --arch x86_64
    Fetch and build everything that runs need, and boot nothing.
--arch NAME  prepare no other architecture (default: all)
--kernel NAME...  prepare no other kernel; may be given again
{DEFINES}--strict  fail on any compiler warning (W=1)

lab clean: lab.commands.prepare:clean_cache
    remove everything that the lab has cached
    Remove everything that the lab has cached: Debian roots, kernels, builds. What
    --keep has kept stays.
"""


def add_parser(sub: options.Subparsers) -> None:
    """Add ``lab`` and its subcommands."""
    parsers = options.add_all(COMMANDS, sub)
    parsers["lab prepare"].set_defaults(module_defines=[])
    _add_options(parsers["lab run"])


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run, which lines of the matrix accept too."""
    options.add_arguments(parser, RUN)
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    options.add_arguments(parser.add_argument_group("machine"), MACHINE)
    choices.add_options(parser)
    parser.set_defaults(module_defines=[], kernel="", cpu="", append="")
