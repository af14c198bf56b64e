# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab kernels``: check every kernel image of the archive natively."""

import argparse

from bulkmm import files
from bulkmm.errors import Exit, UsageError
from bulkmm.lab import breadth, run
from bulkmm.lab.commands.matrix import need_places, pattern
from bulkmm.lab.machine import archive, root
from bulkmm.lab.paths import locked, need_sources
from bulkmm.lab.progress import Progress
from bulkmm.sheet import Sheet


def every(args: argparse.Namespace) -> int:
    """Check the kernels of the archive one after the other."""
    need_places(args)
    if args.count is not None and args.count < 1:
        raise UsageError(f"--count {args.count}: give 1 or more")
    chosen = pattern(args.only)
    need_sources()
    run.need_root()
    progress = Progress()
    with locked(progress) as cache:
        held = archive.Archive(root.ensure(cache, progress))
        held.update(progress)
        found = [one for one in held.offers() if chosen.search(one.release)]
    looked_at = found[: args.count]
    if args.list:
        for one in looked_at:
            print(one.release, "" if one.headers else "(no headers)")
        return Exit.OK
    rows, page = [], ""
    with breadth.place(args.json_dir) as to:
        for number, one in enumerate(looked_at, 1):
            progress.note(f"kernel {number} of {len(looked_at)}: {one.release}")
            row = breadth.kept(one, to) if args.resume else None
            rows.append(row or breadth.look_at(held, one, to, progress))
            page = breadth.markdown(rows, len(found))
            if args.output:  # keeps partial results if interrupted
                files.write(args.output, page, "the page")
    if args.markdown:
        print(page, end="")
    else:
        Sheet(breadth.HEADINGS, [row.cells() for row in rows]).print()
        print(breadth.summary(rows, len(found)))
    return Exit.OK if all(row.ok for row in rows) else Exit.VERDICT
