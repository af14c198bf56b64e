# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool`` (see bulkmm/options.py: add_all)."""

from bulkmm import options

COMMON = """\
--json  print the result, and errors, as JSON
--root DIR = /  read /sys, /proc and /run below DIR
"""
WANTED = f"""\
--page! SIZE  take pages of this size, as in 2M or 1G
--size! SIZE  change the pool by this much memory
--node N  change this node's part only (default: all nodes, evenly)
{options.DRY_RUN}"""
COMMANDS = f"""
pool: pool.run:show: ACTION
    show, grow, shrink and zero the pools of huge pages
    Show the pools of huge pages (hugetlb), by size and node. Grow and shrink them, and
    zero what is free.
{COMMON}
pool grow: pool.run:grow
    add pages to a pool
    example: --page 2M --size 64G
    Add huge pages to a pool, with several processes at once: writing to nr_hugepages
    allocates them one by one. All that is raised for it meanwhile is restored, by the
    next run if this one is killed. Ctrl-C leaves the pool as it was. Exit code 1: fewer
    pages were to be had; the reason is told for each node.
{WANTED}
--jobs N<1..1024>|auto = auto  allocate with N processes on each node, or with one per
    CPU of it
--compact  compact the memory of the nodes first
{COMMON}
pool shrink: pool.run:shrink
    give free pages of a pool back
    example: --page 2M --size 64G --dry-run
    Give free huge pages of a pool back to the system. Pages that are in use or reserved
    are left: a request for more than is free is refused.
{WANTED}
{COMMON}
pool zero: pool.run:zero
    zero free pages ahead of use, for path prezero
    example: --watch
    Zero the free pages of the pools, one by one and at the lowest priority, so that
    nobody who takes one has to wait for that. It takes path prezero of the module,
    which remembers them. Pages that are reserved, and the margin, stay free. Exit
    code 1: some were left; others need them.
--watch  go on, whenever pages come back
--margin PERCENT = 10%  keep so many of a node's pages free
--page SIZE  zero pages of this size (default: all sizes)
--node N  zero this node's pages (default: all nodes)
--threads N<1..1024> = 1  zero with N threads
{COMMON}"""
