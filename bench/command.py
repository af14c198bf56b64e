# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench``: measure natively (see bulkmm/shell/options.py: add_all)."""

from bench import amount
from bench.kernel import scenarios
from bulkmm.shell import options
from lab.machine import kernel_kinds
from lab.machine.arch import X86_64

LAB_KERNELS = kernel_kinds.list_names(X86_64)
SCENARIOS = "; ".join(
    f"{subject}: {', '.join(scenarios.list_scenarios(subject))}"
    for subject in scenarios.SOURCES
)
HOW = """In several processes, each with fresh memory and an order of its own; in each
    round of a process every variant runs once, in random order. Every output is
    verified."""
ENDS = f"""\
--quick  measure less of each
{options.JSON}
{options.SAMPLES}
--submit-file FILE  write the result without anything that tells whose machine it is,
    to be sent to the project (docs/contributing.md)
"""
OFTEN = f"""\
--processes N<1..{amount.MOST}>  run N processes (default: {amount.FULL_PROCESSES},
    --quick {amount.QUICK_PROCESSES})
--rounds N<1..{amount.MOST}>  run N rounds (default: {amount.FULL_ROUNDS}, --quick
    {amount.QUICK_ROUNDS})
"""
COMMON = f"{OFTEN}{options.ALL_ROWS}\n{ENDS}"
BACKEND = f"--backend NAME  force bulkmm to use this backend\n{COMMON}"
COMMANDS = f"""
bench: : WHAT
    measure natively on this machine
    example: all --quick -o a.json
    Measure in processes on this CPU, without a virtual machine and with nothing loaded:
    the core and its peers, the ways to populate, and the own code of stock kernels.

bench clear: bench.run:run_bench
    time the ways to zero memory, and what they cost its next user
    example: --quick -o clear.json
    Time the ways to zero memory by extents of 4 KiB to 1 GiB: REP STOSB over the extent
    or page by page, glibc's memset, libpmem2, a plain loop, bulkmm leaving the extent
    in the cache or bypassing it; cold, hot, and with every extent read in order,
    written, or read in random order at once. {HOW}
{BACKEND}
bench copy: bench.run:run_bench
    time the ways to copy memory, by size
    example: --quick --all-rows
    Time the ways to copy memory, from 4 KiB to 1 GiB at a time: glibc's memcpy,
    libpmem2, a plain loop, REP MOVSB, bulkmm; cold, hot and misaligned. {HOW}
{BACKEND}
bench first-use: bench.run:run_bench
    time what it costs to measure the backends at first use
    example: --quick
    Time a gigabyte of work that begins with nothing measured, and the same work once
    calibration is done. {HOW}
{BACKEND}
bench all: bench.run:run_bench
    measure all of these: one table, one result
    example: --quick -o a.json
    Measure clear, copy and first-use in one result. {HOW}
{COMMON}
bench populate: bench.run:run_populate
    time the ways to make memory resident, those of other programs too
    example: --quick --kind thp
    Time the ways to make memory resident, by kind of page: memset, MAP_POPULATE,
    MADV_POPULATE_WRITE by one thread and by plain shares of several, bulkmm by at most
    so many threads, and the same from Python; numpy's fill; QEMU's prealloc, a JVM's
    AlwaysPreTouch and perf's own bench where they are installed; memory that is
    already resident; and the limit of the stores. Each sample is a process of its own.
--size SIZE  populate so many bytes (default: 1G, --quick 256M)
--kind {{4k,thp,memfd,hugetlb}}...  measure these pages only; may be given again
--reserve  reserve huge pages for hugetlb while it runs (root)
--processes N<1..{amount.MOST}>  take N samples of each variant
{ENDS}
bench serve: bench.run:run_serve
    time starts with memory of a server
    example: --page 4K
    Time QEMU's start with memory that has no pages yet, with its own prealloc, and with
    memory of "bulkmm pool serve"; and the start of a program whose content is read from
    the page cache, or was kept by the server. Needs root for huge pages of a pool,
    which it reserves while it runs.
--size SIZE  give QEMU so much (default: 4G, --quick 256M)
--keep SIZE  keep so much by name (default: 2G, --quick 128M)
--page {{4K,2M}}...  measure these pages only; may be given again
--processes N<1..{amount.MOST}>  take N samples of each variant
{ENDS}
bench stage: bench.run:run_stage
    time the ways to have a file in memory, those of other programs too
    example: --quick
    Time the ways to have a file in memory, from the disk and from the page cache:
    bulkmm, copies out of a mapping, and, where they are installed, what fio reads with
    O_DIRECT, dd, cp to tmpfs and vmtouch. Huge pages are reserved while it runs (root).
--size SIZE  make a file of so many bytes in /var/tmp (default: 4G, --quick 256M)
--file FILE  read this file, of whole 2 MiB, instead
--processes N<1..{amount.MOST}>  take N samples of each variant
{ENDS}
bench kernel: bench.kernel.run:run_kernel
    time a stock kernel's own code against the module's
    example: memmap --kernel 7.3 --quick
    Run a stock kernel's own machine code, and the built module's, in a process on this
    CPU: nothing loaded, no virtual machine, and root only to fetch a kernel of the lab.
    The module attaches to the
    kernel's functions as it would there, and all that it writes is compared with what
    the kernel's own code writes, in every round. With --against, another kernel's code
    runs in turn with this one's, in place of the module. With --quick and nothing else
    chosen, eight scenarios run, for about a minute: what people wait for, and where
    the module may cost.
[subject:{{memmap,clear,copy,vmap,hotplug,all}}] = all  run these functions, or all:
    hotplug with --against only
--kernel {"|".join(X86_64.tested)}|RELEASE|FILE = {X86_64.series[0]}  take this kernel:
    of the lab ({", ".join(LAB_KERNELS)}, too), below /boot, a vmlinuz, or a .deb
--module FILE  take this bulkmm.ko, none, or the default: the lab's, or the installed
    one, or one built against installed headers
--against KERNEL  compare with this kernel, named in the same ways. With --module, the
    first kernel's module where it attaches, other methods and the CPU's limit run, too
--mitigations {{host,on,off}} = host  patch returns as this machine's kernel has them,
    or with mitigations on, or off
--size SIZE  set the size of the device or of the clearing
--scenario NAME...  run this scenario only; may be given again. There are {SCENARIOS}
--fuzz SECONDS<0..540>  compare kept cases, then generated ones for this long;
    0: only kept
--seed N = 1  generate the cases of this seed
--case LINE  measure this case only or, with --fuzz, compare it
--break-one-word  break one word of what the module wrote: the run must fail
{COMMON}
bench history: bench.kernel.history:measure_history
    time the own code of the newest kernel of each series
    example: 6.12 7.3 --quick
    Run the own machine code of the newest kernel of each series that Debian's archive
    offers (root), or of the kernels named, in processes on this CPU: what memmap,
    clear, copy and vmap take, and the ratio to the oldest.
kernels:KERNEL...  run these instead, named as for "bench kernel": of the lab, below
    /boot, a vmlinuz, or a .deb
{OFTEN}{options.MARKDOWN}
{ENDS}
bench goals: bench.run:print_goals
    tell which goals kept results reach
    example: a.json
    Tell for each goal whether the ratios in kept results reach it.
{options.RESULTS}
"""
