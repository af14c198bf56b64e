# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate`` (see bulkmm/options.py: add_all)."""

COMMANDS = """
populate: populate.run:populate
    fill memory before its user starts
    example: /dev/shm/guest --size 4G
    Fill a file of tmpfs or hugetlbfs, or a DAX device, with as many threads as help:
    its pages are in memory, zeroed, before the program that maps it starts. Existing
    content is kept. With --memfd the memory has no name: the command after -- is run,
    with its path in place of {}.
words:FILE...  fill this file; with --memfd run this command, after --
--memfd  fill a memfd, and run a command with it
--huge 2M|1G  take huge pages of this size for the memfd
--size SIZE  fill SIZE bytes, as in 4G; a file is created or extended (default: all)
--node N<0..1023>  take pages of this memory node only
--threads N<1..65536>|auto = auto  start no more than N threads, or as many as help
--json  print the result, and errors, as JSON
"""
