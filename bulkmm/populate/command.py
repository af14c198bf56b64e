# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: fill a file of memory before its user starts: the options."""

from bulkmm import options

ABOUT = """Fill a file of tmpfs or hugetlbfs, or a DAX device, by as many threads as
pay: its pages are in memory, zeroed, before the program that maps it starts. What the
file holds already stays. With --memfd the memory has no name: the command that follows
-- is run and finds it where its words say {}."""
TABLE = """
words:FILE...  fill this file; with --memfd run this command, behind --
--memfd  fill a memfd, and run a command with it
--huge 2M|1G  take huge pages of this size for the memfd
--size SIZE  fill so many bytes, as in 4G; a file is made or grows (default: all)
--node N  take pages of this memory node alone
--threads N|auto  start no more than N threads (default: as many as pay)
--json  print what was done as JSON, and errors too
"""


def add_parser(sub: options.Subparsers) -> None:
    """Add ``populate`` to the parser of the whole command."""
    parser = options.add(
        sub,
        "populate",
        "fill memory before its user starts",
        ABOUT,
        run="bulkmm.populate.run:populate",
        example="bulkmm populate /dev/shm/guest --size 4G",
    )
    options.take(parser, TABLE, threads="auto")
