# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool``: the options."""

from pathlib import Path

from bulkmm import options

COMMON = """\
--json  print the result, and errors, as JSON
--root DIR  read /sys, /proc and /run below DIR (default: /)
"""
WANTED = f"""\
--page! SIZE  take pages of this size, as in 2M or 1G
--size! SIZE  change the pool by this much memory
--node N  change this node's part only (default: all nodes, evenly)
{options.DRY_RUN}"""
# per action: help, description, example, arguments
ACTIONS = {
    "grow": (
        "add pages to a pool",
        """Add huge pages to a pool, with several processes at once: writing to
        nr_hugepages allocates them one by one. All that is raised for it meanwhile is
        restored, by the next run if this one is killed. Ctrl-C leaves the pool as it
        was. Exit code 1: fewer pages were to be had; the reason is told for each
        node.""",
        "bulkmm pool grow --page 2M --size 64G",
        f"""\
{WANTED}
--jobs N<1..1024>|auto  allocate with N processes on each node (default: one per
    CPU of it)
--compact  compact the memory of the nodes first
""",
    ),
    "shrink": (
        "give free pages of a pool back",
        """Give free huge pages of a pool back to the system. Pages that are in use or
        reserved are left: a request for more than is free is refused.""",
        "bulkmm pool shrink --page 2M --size 64G --dry-run",
        WANTED,
    ),
    "zero": (
        "zero free pages ahead of use, for path prezero",
        """Zero the free pages of the pools, one by one and at the lowest priority, so
        that nobody who takes one has to wait for that. It takes path prezero of the
        module, which remembers them. Pages that are reserved, and the margin, stay
        free. Exit code 1: some were left; others need them.""",
        "bulkmm pool zero --watch",
        """\
--watch  go on, whenever pages come back
--margin PERCENT  keep so many of a node's pages free (default: 10%%)
--page SIZE  zero pages of this size (default: all sizes)
--node N  zero this node's pages (default: all nodes)
--threads N<1..1024>  zero with N threads (default: 1)
""",
    ),
}


def add_parser(sub: options.Subparsers) -> None:
    """Add ``pool`` and its actions; without one it shows the pools."""
    pool = options.add(
        sub,
        "pool",
        "show, grow, shrink and zero the pools of huge pages",
        """Show the pools of huge pages (hugetlb), by size and node. Grow and shrink
        them, and zero what is free.""",
        run="bulkmm.pool.run:show",
        example="bulkmm pool",
    )
    options.take(pool, COMMON, root=Path("/"))
    below = pool.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for name, (does, more, example, table) in ACTIONS.items():
        run = f"bulkmm.pool.run:{name}"
        one = options.add(below, name, does, more, run=run, example=example)
        options.take(one, f"{table.rstrip()}\n{COMMON}", root=Path("/"))
        if name == "grow":
            one.set_defaults(jobs="auto")
        if name == "zero":
            one.set_defaults(margin="10%", threads=1)
